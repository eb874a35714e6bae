# SPDX-License-Identifier: Apache-2.0
"""Bring the files under a root from the level they are at to another one, or refuse."""

from __future__ import annotations

from .errors import LocalEdits
from .git import GitFailed
from .root import Root
from .survey import Survey, naming
from .swap import swap


def move(root: Root, found: Survey, level: int, dry_run: bool = False) -> list[str]:
    """Change the files from `found.unedited` to `level` of the series; returns the changed paths.

    Edits in other files stay. Raises the survey's own problem, LocalEdits when a file that must
    change was edited or stands in the way, or UsageError when a file cannot be written; the files
    are then what they were.
    """
    if found.problem is not None:
        raise found.problem
    git, target = root.git, found.ladder.trees[level]
    changes = git.changes(found.unedited, target)
    paths = [change.path for change in changes]
    edited = {change.path for change in git.changes(found.unedited, found.disk.tree)}
    overlap = [path for path in paths if path in edited]
    if overlap:
        what = "missing" if set(overlap) <= set(found.missing) else "edited"
        raise LocalEdits(
            f"{naming(overlap)}: {what} here, and the series must change it: save or undo the "
            "edit (or fold it in with --refresh); nothing was changed"
        )
    if not paths:
        return []
    index = found.disk.index
    git.run("read-tree", "-m", found.unedited, index=index)
    git.run("update-index", "-q", "--refresh", index=index, allow=(0, 1))
    try:
        git.run("read-tree", "-m", "-u", "--dry-run", found.unedited, target, index=index)
    except GitFailed as problem:
        raise LocalEdits(f"{problem.reason}: nothing was changed") from None
    if dry_run:
        return paths
    swap(root.path, changes, lambda blob: git.run("cat-file", "blob", blob).stdout)
    _confirm(root, target, paths)
    git.run("read-tree", "-i", "-m", found.unedited, target, index=index)
    git.run("update-index", "-q", "--refresh", index=index, allow=(0, 1))
    root.remember(target, index)
    return paths


def _confirm(root: Root, target: str, paths: list[str]) -> None:
    """Read the moved files back. Raises LocalEdits when a file is not what it should be."""
    disk = root.snapshot(paths).tree
    wrong = {change.path for change in root.git.changes(target, disk)}.intersection(paths)
    if wrong:
        raise LocalEdits(
            f"{naming(sorted(wrong))}: changed by something else while the series was applied: "
            "run again"
        )
