# SPDX-License-Identifier: Apache-2.0
"""The levels of a series: level 0 is the base, level k is the tree after the first k patches."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import DoesNotApply, LockMismatch, UsageError
from .git import Change, Entry, Git, GitFailed
from .series import Patch, Series

States = dict[str, "Entry | None"]


@dataclass(frozen=True)
class Ladder:
    """Every level of a series on one base."""

    trees: list[str]
    changes: list[list[Change]]

    @property
    def states(self) -> list[States]:
        return level_states(self.changes)


def level_states(changes: list[list[Change]]) -> list[States]:
    """For each level, what every touched path holds there.

    A patch that changes only a file's mode does not say its blob; the blob is then taken from the
    patches around it, and is left open when none of them says it.
    """
    base: States = {}
    for step in changes:
        for change in step:
            base.setdefault(change.path, change.old)
    levels = [base]
    for step in changes:
        level = dict(levels[-1])
        for change in step:
            new, before = change.new, level[change.path]
            if new is not None and before is not None:
                new = Entry(new.mode or before.mode, new.blob or before.blob)
            level[change.path] = new
        levels.append(level)
    return levels


def same_state(a: Entry | None, b: Entry | None) -> bool:
    return a.matches(b) if a is not None and b is not None else a is b


def declared_changes(patch: Patch, strip: int) -> list[Change]:
    """What the patch file says it does, with paths as they are under the root.

    Raises UsageError when a path has too few folders for `strip`.
    """

    def stripped(path: str) -> str:
        parts = PurePosixPath(path).parts
        if len(parts) < strip:
            raise UsageError(f"--strip {strip} leaves nothing of '{path}' ({patch.name})")
        return "/".join(parts[strip - 1 :])

    return [Change(stripped(c.path), c.old, c.new) for c in patch.content.changes()]


def apply_one(git: Git, index: Path, patch: Patch, strip: int, reverse: bool = False) -> None:
    """Apply a patch to an index. Raises DoesNotApply, with git's own first reason."""
    try:
        git.apply(index, patch.content.diff, strip, reverse)
    except GitFailed as problem:
        verb = "cannot be taken back" if reverse else "does not apply"
        raise DoesNotApply(f"{patch.name} {verb}: {problem.reason}: nothing was changed") from None


def climb(git: Git, base: str, series: Series, strip: int) -> Ladder:
    """Apply the whole series to `base` in a temporary index. Raises DoesNotApply."""
    index = git.new_index(base)
    trees, changes = [base], []
    for patch in series.patches:
        apply_one(git, index, patch, strip)
        trees.append(git.write_tree(index))
        changes.append(git.changes(trees[-2], trees[-1]))
        if not changes[-1]:
            raise DoesNotApply(f"{patch.name} changes nothing: remove it from the series")
    return Ladder(trees, changes)


def verify(ladder: Ladder, series: Series, strip: int, full: bool) -> None:
    """Compare each level with the patch's own index lines and, on a full tree, with series.lock.

    Raises LockMismatch for the first difference.
    """
    for level, patch in enumerate(series.patches, 1):
        for want, have in _pairs(declared_changes(patch, strip), ladder.changes[level - 1]):
            if want != have and not (want and have and _agree(want, have)):
                path = (want or have).path
                raise LockMismatch(
                    f"{patch.name} applies, but {path} is not what its index line says "
                    f"(expected {_show(want)}, found {_show(have)}): restore the patch, or run "
                    "--refresh if you edited it"
                )
        if full:
            row = series.lock.get(patch.number)
            tree = ladder.trees[level]
            if row is None or row.tree != tree:
                expected = row.tree if row else "a line for it"
                raise LockMismatch(
                    f"{patch.name} applies, but series.lock has another tree (expected {expected}, "
                    f"found {tree}): restore the patch, or run --refresh"
                )


def _pairs(want: list[Change], have: list[Change]) -> list[tuple[Change | None, Change | None]]:
    wanted, found = {c.path: c for c in want}, {c.path: c for c in have}
    paths = sorted(wanted.keys() | found.keys(), key=os.fsencode)
    return [(wanted.get(path), found.get(path)) for path in paths]


def _agree(want: Change, have: Change) -> bool:
    return same_state(want.old, have.old) and same_state(want.new, have.new)


def _show(change: Change | None) -> str:
    if change is None:
        return "no change"
    ends = (change.old, change.new)
    return " -> ".join(f"{e.mode} {e.blob[:12]}".strip() if e else "absent" for e in ends)
