# SPDX-License-Identifier: Apache-2.0
"""What must hold inside a running container of the image; standard library only.

Exits 1 with a line for each thing that does not.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

ROOT = Path("/opt/sglang-ddtree")


def stale_bytecode(folder: Path) -> list[str]:
    """Modules without bytecode that Python would use as it is."""
    found = []
    for source in folder.rglob("*.py"):
        cached = Path(importlib.util.cache_from_source(source))
        try:
            head, facts = cached.read_bytes()[:16], source.stat()
        except FileNotFoundError:
            found.append(str(source))
            continue
        flags, time, size = (int.from_bytes(head[at : at + 4], "little") for at in (4, 8, 12))
        current = (0, int(facts.st_mtime), facts.st_size)
        if head[:4] != importlib.util.MAGIC_NUMBER or (flags, time, size) != current:
            found.append(str(source))
    return found


def main() -> int:
    wrong = []
    if os.getuid() == 0:
        wrong.append("expected a user without privileges, found root")
    try:
        (ROOT / "probe").touch()
        wrong.append(f"expected {ROOT} to be read-only, found that it can be written")
    except OSError:
        pass
    package = Path(importlib.util.find_spec("sglang").origin).parent
    release = json.loads((ROOT / "series.json").read_text())["release"]
    if package != ROOT / "sglang" / release / "python" / "sglang":
        wrong.append(f"expected the patched sglang of {ROOT}, found {package}")
    for folder in (package, ROOT / "scripts"):
        if stale := stale_bytecode(folder):
            what = f"{len(stale)} without, the first {stale[0]}"
            wrong.append(f"expected bytecode of every module, found {what}")
    left = ROOT / "sglang" / release / ".patchset.git"
    if left.exists():
        wrong.append(f"expected nothing that only the build needs, found {left}")
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
