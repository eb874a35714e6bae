# SPDX-License-Identifier: Apache-2.0
"""A made-up release 9.9.1, a series of five patches for it, and how 9.9.2 can differ.

`draft` and `verify` look alike on purpose, over more lines than a patch has context. Each patch
stands on something that can go: 0020 on a function, 0030 on a line, 0040 on what 0030 adds, 0050 on
names of another module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import patchset_project as made
from patchset_project import Tree

NEWER = "9.9.2"
NAMES = (
    "0010-tree.patch",
    "0020-hook.patch",
    "0030-flag.patch",
    "0040-more-of-the-flag.patch",
    "0050-free.patch",
)
NUMBERS = tuple(name[:4] for name in NAMES)
SRT = "python/sglang/srt"
WORKER = f"{SRT}/worker.py"
ARGS = f"{SRT}/args.py"
POOL = f"{SRT}/pool.py"
TREE = f"{SRT}/tree.py"

_DRAFT = """\
    def draft(self, batch):
        width = 1
        depth = 2
        limit = 3
        rows = batch.rows
        count = len(rows)
        total = count * width * depth
        return rows, total, limit
"""
_VERIFY = _DRAFT.replace("draft", "verify")
_WORKER = f"""\
import os


class Worker:
    name = os.name

{_DRAFT}
{_VERIFY}
    def close(self):
        self.pool = None
"""
_ARGS = """\
FLAGS = [
    "--alpha",
    "--beta",
    "--gamma",
    "--delta",
    "--epsilon",
    "--zeta",
]
"""
_POOL = """\
LIMIT = 8


class Pool:
    def free(self, slots):
        self.free_slots = slots
"""


def _text(text: str) -> tuple[int, bytes]:
    return 0o644, text.encode()


def levels() -> list[Tree]:
    """The files of 9.9.1 at level 0 (upstream) to 5 (all patches)."""
    trees = [
        {
            "python/sglang/__init__.py": _text(""),
            "python/sglang/_version.py": _text("__version__ = version = '9.9.1'\n"),
            WORKER: _text(_WORKER),
            ARGS: _text(_ARGS),
            POOL: _text(_POOL),
        }
    ]

    def step(**changes: tuple[int, bytes]) -> None:
        paths = {"worker": WORKER, "args": ARGS, "tree": TREE}
        trees.append({**trees[-1], **{paths[name]: entry for name, entry in changes.items()}})

    step(tree=_text("def build(rows):\n    return rows\n"))
    hooked = _VERIFY.replace("rows = batch.rows", "rows = batch.rows[: len(os.sep)]")
    step(worker=_text(_WORKER.replace(_VERIFY, hooked)))
    flagged = _ARGS.replace('    "--delta",\n', '    "--delta",\n    "--tree",\n')
    step(args=_text(flagged))
    step(args=_text(flagged.replace("--tree", "--tree-budget")))
    step(
        tree=_text(
            "from sglang.srt.pool import LIMIT, Pool\n\n\n"
            "def build(rows):\n    return rows[:LIMIT]\n\n\n"
            "def free(pool: Pool):\n    return pool.free(slots=pool.free_slots)\n"
        )
    )
    return trees


def newer(**edits: tuple[str, str]) -> Tree:
    """9.9.2: upstream's files of 9.9.1, with `old` replaced by `new` in the named file."""
    tree = dict(levels()[0])
    tree["python/sglang/_version.py"] = _text("__version__ = version = '9.9.2'\n")
    for name, (old, new) in edits.items():
        path = f"{SRT}/{name}.py"
        text = tree[path][1].decode()
        assert old in text
        tree[path] = _text(text.replace(old, new, 1))
    return tree


def moved(tree: Tree, old: str, new: str) -> Tree:
    """`tree` with a file under another name."""
    return {new if path == old else path: entry for path, entry in tree.items()}


def swapped() -> Tree:
    """9.9.2 has `verify` before `draft`."""
    return newer(worker=(f"{_DRAFT}\n{_VERIFY}", f"{_VERIFY}\n{_DRAFT}"))


@dataclass
class Newer(made.Project):
    """The project of this series, and a wheel of 9.9.2 beside it."""

    def release(self, tree: Tree) -> Path:
        """Write 9.9.2's wheel; returns its path."""
        path = self.root / "wheels" / made.wheel_name(made.TAG, NEWER)
        made.write_wheel(path, made.wheel_files(made.TAG, tree, NEWER))
        return path

    def rows(self, onto: str | Path, code: int) -> dict[str, dict]:
        """--report --json: number to row. The exit code must be `code`."""
        result = self.tool("--report", "--json", "--onto", onto)
        assert result.code == code, result.err
        found = json.loads(result.out)
        assert found["safe"] == (code == 0)
        rows = {row["number"]: row for row in found["patches"]}
        assert tuple(rows) == NUMBERS
        return rows


def make_project(root: Path, scratch: Path) -> Newer:
    """Write the repository of the series, nothing materialised."""
    patches = root / "patches" / made.VERSION
    for folder in (patches, root / "wheels", root / "tests" / "patches"):
        folder.mkdir(parents=True)
    (root / "tests" / "patches" / "test_all.py").write_text("")
    trees = levels()
    wheel = root / "wheels" / made.wheel_name(made.TAG)
    digest = made.write_wheel(wheel, made.wheel_files(made.TAG, trees[0]))
    (root / "upstream.toml").write_text(
        made.upstream_toml({made.TAG: digest}, made.tree_id(trees[0]))
    )
    files = made.make_patches(scratch, trees, NAMES)
    for name, data in files.items():
        (patches / name).write_bytes(data)
    (patches / "series").write_text("".join(f"{name}\n" for name in NAMES))
    (patches / "series.lock").write_text(made.lock_text(files, trees))
    return Newer(root)
