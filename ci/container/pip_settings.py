# SPDX-License-Identifier: Apache-2.0
"""Let pip in an image's build find packages where pip on this machine does.

    python ci/container/pip_settings.py FILE

writes a pip.conf to FILE and prints one argument of `buildah bud` a line: volumes of that file and
of the local folders and certificates that it names. Hashes in requirements/ decide what is
installed, wherever it comes from. Settings that choose versions or targets are left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

CARRIED = ("cert", "index-url", "extra-index-url", "find-links", "proxy", "trusted-host")


def settings(listing: str) -> dict[str, str]:
    """What `pip config list` printed; of several sources of a setting, the last one listed wins,
    but the environment wins over all."""
    rows = re.findall(r"^(\S+?)\.([a-z-]+)='(.*)'$", listing.replace("\\n", " "), re.MULTILINE)
    rows.sort(key=lambda row: row[0] == ":env:")
    return {name: value for _, name, value in rows if name in CARRIED}


def local_paths(found: dict[str, str]) -> list[Path]:
    """The existing files and folders of this machine that settings name.

    The pages of a local index link to files beside it, so of an index it is the folder above.
    """
    paths = set()
    for name, value in found.items():
        for word in value.split() if name != "proxy" else ():
            path = Path(unquote(word.removeprefix("file://")))
            if path.is_absolute() and path.exists():
                above = name.endswith("index-url") and path.parent != path.parent.parent
                paths.add(path.parent if above else path)
    return sorted(paths)


def main() -> None:
    target = Path(sys.argv[1]).resolve()
    command = [sys.executable, "-m", "pip", "config", "list"]
    found = settings(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    target.write_text("[global]\n" + "".join(f"{n} = {v}\n" for n, v in sorted(found.items())))
    print(f"--volume={target}:/etc/pip.conf:ro")
    roots = local_paths(found)
    for path in roots:
        if not any(other in path.parents for other in roots):
            print(f"--volume={path}:{path}:ro")


if __name__ == "__main__":
    main()
