# SPDX-License-Identifier: Apache-2.0
"""Three-way merges: of whole trees, which follows renames, and of one file hunk by hunk."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .git import Entry, Git, GitFailed
from .patchfile import Hunk

BASE, OURS, THEIRS = 1, 2, 3

Stages = dict[int, Entry]
"""What a conflicted path holds on each side, as in git's index."""


@dataclass(frozen=True)
class Merge:
    """tree: the merged one; conflicted files are in it with conflict markers. sides: the names that
    the markers give to ours and theirs."""

    tree: str
    conflicts: dict[str, Stages]
    sides: tuple[str, str] = ("", "")


def merge_trees(git: Git, base: str, ours: str, theirs: str) -> Merge:
    """Bring the step from `base` to `theirs` into `ours`. No file is touched.

    A file that `ours` has under another name than `base` is found by its content.
    """
    if base == ours:
        return Merge(theirs, {})
    root = git.commit(base)
    sides = git.commit(ours, root), git.commit(theirs, root)
    # No limit: upstream can move thousands of files. A new file stays where the patch puts it.
    done = git.run(
        "-c", "merge.renameLimit=0", "-c", "merge.directoryRenames=false",
        "-c", "merge.conflictStyle=diff3",
        "merge-tree", "--write-tree", "-z", "--no-messages", *sides, allow=(0, 1), work=False,
    )  # fmt: skip
    tree, *rows = done.stdout.split(b"\0")
    conflicts: dict[str, Stages] = {}
    for row in filter(None, rows):
        meta, path = row.split(b"\t", 1)
        mode, blob, stage = meta.decode().split(" ")
        conflicts.setdefault(os.fsdecode(path), {})[int(stage)] = Entry(mode, blob)
    return Merge(tree.decode(), conflicts, sides)


def merge_file(git: Git, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """`ours` with the step from `base` to `theirs`, or None when they conflict."""
    with tempfile.TemporaryDirectory(dir=git.scratch) as folder:
        paths = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(data)
        names = [str(path) for path in paths]
        try:
            return git.run("merge-file", "-p", "-q", *names, work=False).stdout
        except GitFailed:
            return None


def with_hunks(base: bytes, hunks: list[Hunk]) -> bytes:
    """`base` with only these of its hunks, which are in order."""
    lines = split_lines(base)
    result: list[bytes] = []
    at = 0
    for hunk in hunks:
        result += lines[at : hunk.old_index]
        result += hunk.new
        at = hunk.old_index + len(hunk.old)
    return b"".join([*result, *lines[at:]])


def split_lines(data: bytes) -> list[bytes]:
    """Split at newlines only: a carriage return is content."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
