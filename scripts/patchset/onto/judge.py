# SPDX-License-Identifier: Apache-2.0
"""Carry a series to another release in memory, patch by patch, and say how each one fares."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ..git import EMPTY_TREE, Git, GitFailed
from ..ladder import climb, verify
from ..merge import Merge, merge_trees
from ..patchfile import Section, added_lines, parse_diff
from ..series import Patch, Series
from .drift import Drift
from .hunkwise import Hunkwise
from .provenance import Provenance
from .rows import FileRow, HunkRow, Kind, PatchRow, worst
from .scopes import relocated
from .sources import Library, Sources
from .symbols import used


@dataclass(frozen=True)
class Carried:
    """tree: the other release with the patch, or with as much of it as fits. merge: the whole
    patch, with conflict markers where it does not."""

    row: PatchRow
    tree: str
    merge: Merge


class Judge:
    """Holds both releases, cut down to the paths that matter: git then has little to compare.

    levels: the series on the release it was written for. start: the other release. Both have only
    the paths that the series touches, under the names that they have there; `whole` adds the rest.
    """

    def __init__(self, git: Git, series: Series, old: str, new: str):
        """old, new: whole trees. Raises DoesNotApply or LockMismatch for a faulty series."""
        self.git = git
        self.library = Library(git)
        self._old, self._new = Sources(self.library, old), Sources(self.library, new)
        touched = {c.path for patch in series.patches for c in patch.content.changes()}
        base = self._cut(self._old, touched)
        self._levels = climb(git, base, series, 1)
        verify(self._levels, series, 1, full=False)
        self._renames = self._renamed(touched)
        self._scope = frozenset(touched | set(self._renames.values()))
        self.start = self.cut(new)
        self._provenance = Provenance()
        self._drift = Drift(self._old, self._new, self._names(series))

    def cut(self, tree: str) -> str:
        """A whole tree of the other release, without what the series does not touch."""
        sources = self._new if tree == self._new.tree else Sources(self.library, tree)
        return self._cut(sources, self._scope)

    def whole(self, tree: str, rest: str, more: frozenset[str] = frozenset()) -> str:
        """The whole tree `rest` with what `tree` has at the paths that it is about, and `more`."""
        entries = self.git.entries(tree)
        scope = sorted(self._scope | more)
        return self.git.with_entries(rest, {path: entries.get(path) for path in scope})

    def _cut(self, sources: Sources, paths: Iterable[str]) -> str:
        found = {path: sources.entries[path] for path in paths if path in sources.entries}
        return self.git.with_entries(EMPTY_TREE, found)

    def _renamed(self, touched: set[str]) -> dict[str, str]:
        """Touched files that the other release has under another name."""
        gone = touched & self._old.entries.keys() - self._new.entries.keys()
        if not gone:
            return {}
        added = self._new.entries.keys() - self._old.entries.keys()
        raw = self.git.run(
            "diff-tree", "-r", "-z", "-M", "-l0", "--diff-filter=R", "--name-status",
            self._cut(self._old, gone), self._cut(self._new, added), work=False,
        ).stdout.split(b"\0")  # fmt: skip
        names = [os.fsdecode(name) for name in raw]
        return dict(zip(names[1::3], names[2::3], strict=False))

    def _names(self, series: Series) -> frozenset[str]:
        """Names that the series itself defines."""
        found: set[str] = set()
        for patch, tree in zip(series.patches, self._levels.trees[1:], strict=True):
            after = self._on_old(tree)
            for path, lines in added_lines(patch.content.sections).items():
                if module := after.module(path):
                    found |= used(module, path, lines).binds
        return frozenset(found)

    def _on_old(self, tree: str) -> Sources:
        return Sources(self.library, tree, self._old, self._scope)

    def _on_new(self, tree: str) -> Sources:
        return Sources(self.library, tree, self._new, self._scope)

    def carry(self, patch: Patch, level: int, current: str) -> Carried:
        """Bring `patch`, the step to `level` (from 1), into the cut-down tree `current`.

        The patches before it must have been carried by the same object.
        """
        before, after = map(self._on_old, self._levels.trees[level - 1 : level + 1])
        here = self._on_new(current)
        sections = patch.content.sections
        merge = merge_trees(self.git, before.tree, current, after.tree)
        plain = self._apply(patch, current)
        without = self._without(patch, here) if plain is None else None
        if without is not None:
            steps = self._steps(without, current)
            sources = (before, after, self._on_new(without), here)
            rows = [
                self._placed(FileRow(section.new_path, Kind.UPSTREAMED), sections, sources, steps)
                for section in sections
            ]
            self._provenance.follow(patch, before)
            return Carried(_row(patch, rows), current, Merge(current, {}))
        if merge.conflicts and plain is not None:
            merge = Merge(plain, {})
        rows, doubtful = [], {}
        hunkwise = Hunkwise(self.git, patch.number, before, here, self._provenance)
        for section in sections:
            target = self._target(section, here)
            if why := self._in_the_way(section):
                # The file would replace upstream's, which may well be outside the scope.
                self._provenance.fail(patch.number, target, range(len(section.hunks)))
                rows.append(FileRow(target, Kind.CONFLICT, why))
                doubtful[target] = None
                merge = replace(merge, tree=self.git.with_entries(merge.tree, {target: None}))
            elif target in merge.conflicts or self._provenance.failed_in(section.new_path):
                row, doubtful[target] = hunkwise.carry(section, target)
                rows.append(row)
        tree = self.git.with_entries(merge.tree, doubtful) if doubtful else merge.tree
        result = self._on_new(tree)
        steps = self._steps(current, tree)
        applied = None if plain is None else self._on_new(plain)
        for section in sections:
            target = self._target(section, here)
            if target not in doubtful:
                rows.append(self._clean(section, target, result, steps.get(target), applied))
        rows = [self._placed(row, sections, (before, after, here, result), steps) for row in rows]
        gone, look = self._drift.of(after, here, result, added_lines(steps.values()))
        self._provenance.follow(patch, before)
        return Carried(_row(patch, rows, gone, look), tree, merge)

    def gone(self, level: int, before: str, result: str) -> tuple[str, ...]:
        """Names that are gone and that the step to `level` uses, as a person has left it.

        before, result: whole trees of the other release, before and after it.
        """
        here, there = self.cut(before), self.cut(result)
        added = added_lines(self._steps(here, there).values())
        after = self._on_old(self._levels.trees[level])
        return self._drift.of(after, self._on_new(here), self._on_new(there), added)[0]

    def _in_the_way(self, section: Section) -> str:
        """Why a new file cannot be where the patch puts it, or ''."""
        if section.old is not None or section.new is None:
            return ""
        path = section.new_path
        if self._new.has_path(path):
            return "upstream has a folder of this name"
        for folder in map(str, PurePosixPath(path).parents):
            if folder in self._new.entries:
                return f"upstream has a file {folder}, where the patch needs a folder"
        return ""

    def _target(self, section: Section, here: Sources) -> str:
        """The name that the section's file has in the other release."""
        path = section.new_path
        if section.old is not None and path not in here.entries:
            return self._renames.get(path, path)
        return path

    def _apply(self, patch: Patch, tree: str, reverse: bool = False) -> str | None:
        """The tree that `git apply` makes, which looks at the context only; None if it refuses."""
        index = self.git.new_index(tree)
        try:
            self.git.apply(index, patch.content.diff, 1, reverse)
        except GitFailed:
            return None
        return self.git.write_tree(index)

    def _without(self, patch: Patch, here: Sources) -> str | None:
        """The tree with the patch taken back, None if it cannot be: upstream lacks some of it.

        That says nothing of a patch that removes what an earlier one could not bring.
        """
        if any(self._provenance.failed_in(section.new_path) for section in patch.content.sections):
            return None
        targets = {self._target(section, here) for section in patch.content.sections}
        if targets.isdisjoint(here.entries):
            return None
        return self._apply(patch, here.tree, reverse=True)

    def _steps(self, old: str, new: str) -> dict[str, Section]:
        """What differs between two trees, by path."""
        diff = self.git.diff(old, new, text=True)
        return {section.new_path: section for section in parse_diff(diff)}

    def _clean(
        self,
        section: Section,
        target: str,
        result: Sources,
        step: Section | None,
        applied: Sources | None,
    ) -> FileRow:
        """The row of a file whose change came over whole.

        result, step: what the merge made of it. applied: what `git apply` made, if it could.
        """
        path = section.new_path
        if step is None:
            new_path = target if target != path else None
            return FileRow(path, Kind.UPSTREAMED, "nothing is left to do", new_path)
        if target != path:
            return FileRow(path, Kind.RENAMED, f"now {target}", target)
        if applied is not None and applied.entries.get(path) != result.entries.get(path):
            why = "git apply puts a hunk into another place than a three-way merge"
            return FileRow(path, Kind.RELOCATED, why)
        if [hunk.lines for hunk in section.hunks] != [hunk.lines for hunk in step.hunks]:
            return FileRow(path, Kind.MERGED, "upstream changed lines beside it")
        moved = [b.old_start - a.old_start for a, b in zip(section.hunks, step.hunks, strict=True)]
        if any(moved):
            return FileRow(path, Kind.OFFSET, _span(moved))
        return FileRow(path, Kind.EXACT)

    def _placed(
        self,
        row: FileRow,
        sections: list[Section],
        sources: tuple[Sources, Sources, Sources, Sources],
        steps: dict[str, Section],
    ) -> FileRow:
        """`row`, or RELOCATED if lines that were carried have another enclosing definition."""
        before, after, here, result = sources
        target = row.new_path or row.path
        section = next(section for section in sections if section.new_path == row.path)
        if section.old is None or section.new is None or target not in steps:
            return row
        if before.entries[row.path] == here.entries.get(target):
            return row  # upstream did not change the file
        left = {hunk.number for hunk in row.hunks}
        want = [(n, hunk) for n, hunk in enumerate(section.hunks, 1) if n not in left]
        found: dict[int, str] = {}
        for sign, old, new in ((b"-", before, here), (b"+", after, result)):
            was, now = old.module(row.path), new.module(target)
            if was and now:
                found |= relocated(want, steps[target].hunks, sign, was.scopes, now.scopes)
            elif was and sign == b"+" and here.module(target):
                return replace(row, kind=Kind.CONFLICT, detail="the result is not valid Python")
        if not found:
            return row
        lines = {n: hunk.line for n, hunk in enumerate(section.hunks, 1)}
        moved = [HunkRow(n, lines[n], Kind.RELOCATED, why) for n, why in found.items()]
        hunks = sorted([*row.hunks, *moved], key=lambda hunk: hunk.number)
        kind = worst([row.kind, Kind.RELOCATED])
        return replace(row, kind=kind, detail="", hunks=tuple(hunks))


def _row(patch: Patch, files: list[FileRow], gone=(), look=()) -> PatchRow:
    files = sorted(files, key=lambda row: os.fsencode(row.path))
    return PatchRow(patch.number, patch.title, tuple(files), gone, look)


def _span(moved: list[int]) -> str:
    low, high = min(moved), max(moved)
    return f"{low:+d} lines" if low == high else f"{low:+d} to {high:+d} lines"
