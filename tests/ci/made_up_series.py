# SPDX-License-Identifier: Apache-2.0
"""A repository like this one, around a made-up release with a series of three patches.

The real ci/per_patch.sh runs in it with the real patch tool. Its SGLang is three small modules,
and each patch has a unit test; the second has a slow test as well.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import patchset_project as made

NUMBERS = ("0010", "0020", "0030")
NAMES = tuple(f"{number}-patch.patch" for number in NUMBERS)
CORE = "python/sglang/core.py"
EXTRA = "python/sglang/extra.py"
SLOW = "tests/engine/test_slow.py"
UNIT = {number: f"tests/patches/test_{number}_core.py" for number in NUMBERS}
TRAILERS = {number: UNIT[number] for number in NUMBERS} | {"0020": f"{UNIT['0020']}, {SLOW}"}
NOTES = "notes.txt"


def levels(**changed: bytes) -> list[made.Tree]:
    """The files at level 0 (upstream) to 3; CORE or EXTRA of level k is `changed["core_k"]`."""
    found = []
    for k in range(4):
        tree = {
            "python/sglang/__init__.py": (0o644, b""),
            "python/sglang/_version.py": (0o644, f"version = '{made.VERSION}'\n".encode()),
            CORE: (0o644, changed.get(f"core_{k}", f"LEVEL = {k}\n".encode())),
        }
        if k >= 2:
            tree[EXTRA] = (0o644, changed.get(f"extra_{k}", b"EXTRA = 1\n"))
        found.append(tree)
    return found


class Repository:
    """The repository, materialised and with its whole series applied."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.patches = root / "patches" / made.VERSION

    def create(self, scratch: Path, trees: list[made.Tree], trailers: dict[str, str]) -> None:
        """Make everything; `scratch` is an empty folder for git."""
        self.patches.mkdir(parents=True)
        for folder in ("ci", "scripts"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(made.REPOSITORY / folder, self.root / folder, ignore=ignored)
        (self.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
        self._write_series(scratch, trees, trailers)
        self._write_tests()
        self._materialise(trees[0])
        self._make_venv()

    def _write_series(self, scratch: Path, trees: list[made.Tree], trailers: dict[str, str]):
        made.plain_git(scratch, "init", "-q", ".")
        made.write_tree(scratch, trees[0])
        made.plain_git(scratch, "add", "-A")
        files = {}
        for name, tree in zip(NAMES, trees[1:], strict=True):
            made.write_tree(scratch, tree)
            made.plain_git(scratch, "add", "-N", ".")
            diff = made.plain_git(scratch, "diff", "--full-index", "--no-renames")
            made.plain_git(scratch, "add", "-A")
            all_tests = b"Test: tests/patches/test_all.py::test\n"
            own_tests = f"Test: {trailers[name[:4]]}\n".encode()
            files[name] = made.header(name).replace(all_tests, own_tests) + diff
        for name, data in files.items():
            (self.patches / name).write_bytes(data)
        (self.patches / "series").write_text("".join(f"{name}\n" for name in NAMES))
        (self.patches / "series.lock").write_text(made.lock_text(files, trees))

    def _write_tests(self) -> None:
        level = "from sglang.core import LEVEL\n"
        for number, path in UNIT.items():
            self.write(path, f"{level}def test(): assert LEVEL >= {int(number) // 10}\n")
        test = f"def test(): Path({NOTES!r}).open('a').write(str(LEVEL))\n"
        self.write(SLOW, f"from pathlib import Path\n{level}{test}")

    def _materialise(self, base: made.Tree) -> None:
        wheel = self.root / made.wheel_name(made.TAG)
        contents = {path.removeprefix("python/"): entry for path, entry in base.items()}
        metadata = f"Name: sglang\nVersion: {made.VERSION}\n".encode()
        contents[f"sglang-{made.VERSION}.dist-info/METADATA"] = (0o644, metadata)
        sha256 = {made.TAG: made.write_wheel(wheel, contents)}
        upstream = made.upstream_toml(sha256, made.tree_id(base))
        (self.root / "upstream.toml").write_text(upstream)
        made.Project(self.root).materialise("--wheel", wheel)

    def _make_venv(self) -> None:
        """An environment with this Python's packages, and the made-up SGLang in place of ours."""
        folder = self.root / ".venv"
        venv.create(folder, symlinks=True)
        (site,) = folder.glob("lib/python*/site-packages")
        paths = [self.root / "sglang" / made.VERSION / "python", sysconfig.get_path("purelib")]
        (site / "made-up.pth").write_text("".join(f"{path}\n" for path in paths))
        (folder / "bin" / "ruff").symlink_to(Path(sys.executable).parent / "ruff")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def per_patch(self, *arguments: str) -> subprocess.CompletedProcess:
        script = self.root / "ci" / "per_patch.sh"
        return subprocess.run([script, *arguments], capture_output=True, text=True)

    def level(self) -> str:
        """The LEVEL of the files on disk."""
        return (self.root / "sglang" / made.VERSION / CORE).read_text()
