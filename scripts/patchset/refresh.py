# SPDX-License-Identifier: Apache-2.0
"""Fold edits of the materialised files into a patch, and export the series again.

The edits become the new result of one patch; each later patch is carried over by a three-way merge
of whole trees. All new files are made and proven in memory before the first one is replaced.
"""

from __future__ import annotations

import email.utils
import re
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from .errors import DoesNotApply, UsageError, WrongBase
from .git import Git, GitFailed
from .ladder import Ladder, climb
from .merge import merge_trees
from .patchfile import PatchFormatError, parse, split_header
from .root import Root
from .series import Locked, Patch, Series, format_lock, series_names, write_all
from .survey import Survey, naming, nearest

TODO = "TODO: say why this patch is needed, and what fails without it."

_TEMPLATE = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: sglang-ddtree <sglang-ddtree@localhost>
Date: {date}
Subject: [PATCH] {subject}

{todo}

Forwarded: no
Depends: none
Test: tests/patches/test_{module}.py
Remove-When: upstream has the same change
---
"""
MARKER = re.compile(rb"^(<{7}|>{7}|\|{7})( |$)", re.MULTILINE)


@dataclass(frozen=True)
class Refreshed:
    """What a refresh wrote: file names, and the patch that the edits belong to (None: no edits)."""

    written: list[str]
    patch: Patch | None


def refresh(root: Root, series: Series, found: Survey, number: str, new: str) -> Refreshed:
    """Fold the edits on disk into patch `number` ('' = the topmost applied one).

    With `new` (NNNN-kebab-subject), make a new patch of them after the topmost applied one. When
    the files are as the tool left them and only the series was changed since, export that. Raises
    UsageError when there is nothing to export, DoesNotApply when a later patch conflicts; no file
    has changed then.
    """
    git, ladder, disk = root.git, found.ladder, found.disk.tree
    patches, trees, level = list(series.patches), list(ladder.trees), None
    if found.kind != "outdated":
        level = _level(git, series, found, number)
        _refuse_markers(root, [change.path for change in git.changes(trees[level], disk)])
        if new:
            patches.insert(level, _new_patch(series, level, new, disk != trees[level]))
            trees.insert(level + 1, disk)
            level += 1
        elif level == 0 and disk != trees[0]:
            raise UsageError("no patch is applied: make one of the edits with --new NNNN-NAME")
        trees[level] = disk
        trees = _carry(git, patches, ladder, trees, level, bool(new))
    elif number or new:
        raise UsageError(
            "the series was changed since it was applied: first --refresh alone, then apply"
        )
    exported = export_patches(git, patches, trees)
    # A shared patch that changes becomes the series' own.
    exported = [
        patch if patch.data == old.data else replace(patch, lender="")
        for patch, old in zip(exported, patches, strict=True)
    ]
    files = {
        series.folder / patch.name: patch.data
        for patch, old in zip(exported, patches, strict=True)
        if patch.data != old.data or new == patch.title
    }
    if [patch.listed for patch in exported] != [patch.listed for patch in series.patches]:
        files[series.folder / "series"] = _series_text(series, exported)
    lock = format_lock(_prove(git, root, series, exported, trees))
    if lock != (series.folder / "series.lock").read_bytes():
        files[series.folder / "series.lock"] = lock
    if not files:
        raise UsageError(
            "nothing to export: the files are exactly as "
            f"{'the series' if level is None else series.title(level)} has them"
        )
    write_all(files)
    if level is not None:
        root.remember(disk, found.disk.index)
    return Refreshed([path.name for path in files], exported[level - 1] if level else None)


def _level(git: Git, series: Series, found: Survey, number: str) -> int:
    """The level that the edits start from. Raises UsageError when the files do not tell."""
    if isinstance(found.problem, WrongBase):
        raise found.problem
    given = series.level(number) if number else None
    if not found.candidates:
        if given == found.highest:
            return given
        why = "the files are of several levels: apply again to complete an interrupted run"
        if found.missing:
            why = f"{naming(found.missing)}: missing: apply again to restore it"
        raise UsageError(
            f"{why}, or take that for an edit of {series.title(found.highest)} with --refresh NNNN"
        )
    fitting = naming([series.title(k) for k in found.candidates])
    if given is not None:
        if given in found.candidates:
            return given
        raise UsageError(f"--refresh {number}: the files are at {fitting}: run --to {number} first")
    touched = sorted(found.ladder.states[0])
    best = nearest(git, found.ladder, found.disk.tree, found.candidates, touched)
    if best == found.candidates[-1]:
        return best
    raise UsageError(f"the edits fit {fitting}: say which one with --refresh NNNN")


def _refuse_markers(root: Root, paths: list[str]) -> None:
    for path in paths:
        file = root.path / path
        if file.is_file() and MARKER.search(file.read_bytes()):
            raise UsageError(f"{path} has conflict markers: resolve them first; nothing changed")


def _new_patch(series: Series, level: int, title: str, edited: bool) -> Patch:
    """A patch that has only a header yet, to stand after `level`."""
    found = re.fullmatch(r"(\d{4})-([a-z0-9]+(?:-[a-z0-9]+)*)", title)
    if not found:
        raise UsageError(f"--new: expected NNNN-kebab-subject, found '{title}'")
    after = series.patches[level - 1].number if level else "0000"
    before = series.patches[level].number if level < len(series.patches) else "9999+"
    if not after < found[1] < before:
        raise UsageError(
            f"--new {title}: the files are at {series.title(level)}, so the number must be "
            f"after {after} and before {before}"
        )
    if not edited:
        raise UsageError(f"--new {title}: nothing to export, no file differs from this level")
    if (series.folder / f"{title}.patch").exists():
        raise UsageError(f"{series.folder / title}.patch exists and is not in the series: move it")
    header = _TEMPLATE.format(
        date=email.utils.format_datetime(datetime.now(timezone.utc)),
        subject=found[2].replace("-", " "),
        todo=TODO,
        module=title.replace("-", "_"),
    )
    return Patch(f"{title}.patch", header.encode())


def _carry(
    git: Git, patches: list[Patch], ladder: Ladder, trees: list[str], level: int, inserted: bool
) -> list[str]:
    """`trees` with the step of each patch above `level` merged onto the new tree below it."""
    carried = trees[: level + 1]
    for k in range(level + 1, len(trees)):
        before = ladder.trees[k - 1 - inserted]
        carried.append(_merge(git, before, carried[-1], trees[k], patches[k - 1]))
    return carried


def _merge(git: Git, base: str, ours: str, theirs: str, patch: Patch) -> str:
    """The tree `ours` with the step from `base` to `theirs`. Raises DoesNotApply on a conflict."""
    merged = merge_trees(git, base, ours, theirs)
    if merged.conflicts:
        raise DoesNotApply(
            f"{patch.name} conflicts with the edits in {next(iter(merged.conflicts))} "
            f"({_place(git, ours, patch)}): make room for it, or make the edits at its own level; "
            "nothing was changed"
        )
    return merged.tree


def _place(git: Git, tree: str, patch: Patch) -> str:
    """The hunk of `patch` that does not fit `tree`, in git's words."""
    try:
        git.apply(git.new_index(tree), patch.content.diff, strip=1)
    except GitFailed as problem:
        return problem.reason
    return "the hunks touch the same lines"


def export_patches(git: Git, patches: list[Patch], trees: list[str]) -> list[Patch]:
    """The patches for the steps between `trees`, each with the header that it had."""
    exported = []
    for patch, old, new in zip(patches, trees[:-1], trees[1:], strict=True):
        diff = git.diff(old, new)
        if not diff:
            raise UsageError(
                f"{patch.name} would become empty: undo the edits, or take it out of the series"
            )
        try:
            header, _ = split_header(patch.data)
            data = header + diff
            parse(data)
        except PatchFormatError as problem:
            raise UsageError(f"{patch.name} cannot be exported: {problem}") from None
        exported.append(replace(patch, data=data))
    return exported


def _prove(
    git: Git, root: Root, series: Series, exported: list[Patch], trees: list[str]
) -> dict[str, Locked]:
    """Apply the exported patches to the base: they must give `trees`. Returns the new lock."""
    ladder = climb(git, root.base, replace(series, patches=exported), root.strip)
    for patch, want, have in zip(exported, trees[1:], ladder.trees[1:], strict=True):
        if want != have:
            raise DoesNotApply(f"{patch.name}: the export gives {have}, expected {want}")
    return {p.number: Locked(p.sha256, tree) for p, tree in zip(exported, trees[1:], strict=True)}


def _series_text(series: Series, exported: list[Patch]) -> bytes:
    """The series file with the lines of `exported`; a new one stands after its predecessor's."""
    text = (series.folder / "series").read_text(encoding="utf-8")
    lines = text.splitlines()
    found = series_names(text)
    at = {p.number: line - 1 for p, (line, _) in zip(series.patches, found, strict=True)}
    for patch, (line, listed) in zip(series.patches, found, strict=True):
        now = next(other.listed for other in exported if other.number == patch.number)
        lines[line - 1] = lines[line - 1].replace(listed, now, 1)
    for before, patch in zip([None, *exported], exported, strict=False):
        if patch.number not in at:
            first = min(at.values(), default=len(lines))
            lines.insert(at[before.number] + 1 if before else first, patch.listed)
    return "".join(f"{line}\n" for line in lines).encode()
