# SPDX-License-Identifier: Apache-2.0
"""Find out from the files alone which level of the series a root is at, and what was edited."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from .errors import LocalEdits, LockMismatch, PatchsetError, WrongBase
from .git import Git
from .ladder import Ladder, States, apply_one, climb, declared_changes, level_states, same_state
from .ladder import verify as verify_ladder
from .root import Root, Snapshot
from .series import Series
from .upstream import PACKAGE, Release

_NAMED = 3  # paths that a message names before it only counts


@dataclass(frozen=True)
class Survey:
    """Where a root is.

    kind: "clean"; "edited" (a touched file fits no level, the others tell which one it is);
        "mixed" (touched files of several levels, as an interrupted run leaves them); "outdated"
        (as the tool left it, but the series was changed since); "refused" (see `problem`).
    level: the level that the files are at; None unless clean or edited.
    candidates: every level that the unedited touched files agree with.
    highest: the lowest level that no unedited touched file is above.
    edited: touched files that fit no level.
    missing: touched files that are not there, but should be by all that are.
    others: edited, added, or removed files that no patch touches (materialised roots only).
    unedited: tree of the files as the tool last left them, without the edits.
    problem: why the tool must not move anything, or None.
    """

    kind: str
    level: int | None
    candidates: list[int]
    highest: int
    edited: list[str]
    missing: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    unedited: str = ""
    disk: Snapshot | None = None
    ladder: Ladder | None = None
    problem: PatchsetError | None = None


def survey(root: Root, series: Series, release: Release, verify: bool = True) -> Survey:
    """Read the files under `root` and place them on the series.

    With `verify`, the patches and the levels must be what series.lock and the patches' index lines
    say. Raises DoesNotApply or LockMismatch when the series itself is at fault.
    """
    if root.base is None:
        found = _survey_foreign(root, series, release)
    else:
        found = _survey_materialised(root, series, release, verify)
    if verify:
        # Also where the files do not show it: a foreign root has no tree id to compare with.
        series.require_locked()
    return found


def naming(paths: list[str]) -> str:
    """The first few of `paths`, and how many more there are."""
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f", and {more} more" if more > 0 else "")


def _fit(states: list[States], disk: States) -> tuple[list[int], int, list[str]]:
    """(levels that all unedited paths agree with, highest, paths that agree with no level)."""
    levels, highest, edited = set(range(len(states))), 0, []
    for path in sorted(states[0], key=os.fsencode):
        fits = {k for k, level in enumerate(states) if same_state(disk[path], level[path])}
        if fits:
            levels &= fits
            highest = max(highest, min(fits))
        else:
            edited.append(path)
    return sorted(levels), highest, edited


def _missing(states: list[States], disk: States) -> list[str]:
    """Absent paths that are present at each level that the unedited files on disk agree with."""
    absent = [path for path, entry in disk.items() if entry is None]
    present = [{p: e for p, e in level.items() if disk[p] is not None} for level in states]
    levels, _, _ = _fit(present, disk)
    missing = [path for path in absent if levels and all(states[k][path] for k in levels)]
    return sorted(missing, key=os.fsencode)


def _survey_materialised(root: Root, series: Series, release: Release, verify: bool) -> Survey:
    git = root.git
    ladder = climb(git, root.base, series, root.strip)
    if verify:
        verify_ladder(ladder, series, root.strip, full=True)
    states = ladder.states
    snapshot = root.snapshot(states[0])
    changed = {change.path: change.new for change in git.changes(root.base, snapshot.tree)}
    disk = {path: changed.get(path, base) for path, base in states[0].items()}
    levels, highest, edited = _fit(states, disk)
    others = [path for path in changed if path not in states[0]]
    missing = [] if levels and not edited else _missing(states, disk)
    found = Survey(
        "refused", None, levels, highest, edited, missing, others, disk=snapshot, ladder=ladder
    )
    if levels and not edited:
        level = levels[-1]
        return replace(found, kind="clean", level=level, unedited=ladder.trees[level])
    if (tree := _as_left(root, snapshot.tree, set(states[0]))) is not None:
        # Files of an older series are the tool's own, and no edits.
        others = [change.path for change in git.changes(tree, snapshot.tree)]
        return replace(found, kind="outdated", unedited=tree, edited=[], missing=[], others=others)
    version = root.found_version()
    if version != release.version:
        return replace(found, problem=_wrong_base(root, release, version, edited))
    if levels:
        level = nearest(git, ladder, snapshot.tree, levels, edited)
        return replace(found, kind="edited", level=level, unedited=ladder.trees[level])
    if edited:
        why = "edited, and the other patched files are of different levels"
        if missing:
            why = f"edited, and others are missing ({naming(missing)})"
        return replace(
            found,
            problem=LocalEdits(
                f"{naming(edited)}: {why}: "
                f"undo the edits, or remove {root.path} and run scripts/bootstrap.sh"
            ),
        )
    # Every file is one that the tool itself writes, so an interrupted run can be completed.
    return replace(found, kind="mixed", unedited=git.with_entries(root.base, disk))


def nearest(git: Git, ladder: Ladder, disk: str, levels: list[int], paths: list[str]) -> int:
    """The one of `levels` with the fewest changed lines in `paths`; the lowest of equals."""

    def distance(level: int) -> int:
        rows = git.text(
            "--literal-pathspecs", "diff-tree", "-r", "--numstat", "--no-renames",
            ladder.trees[level], disk, "--", *paths,
        )  # fmt: skip
        counts = (row.split("\t")[:2] for row in rows.splitlines())
        return sum(int(n) if n.isdigit() else 1 for pair in counts for n in pair)

    return min(levels, key=distance)


def _as_left(root: Root, disk: str, touched: set[str]) -> str | None:
    """The tree that the tool last left here, if no file that it can have changed differs."""
    tree = root.remembered()
    if tree is None:
        return None
    relevant = touched | {change.path for change in root.git.changes(root.base, tree)}
    edited = {change.path for change in root.git.changes(tree, disk)}
    return tree if relevant.isdisjoint(edited) else None


def _survey_foreign(root: Root, series: Series, release: Release) -> Survey:
    git = root.git
    declared = [declared_changes(patch, root.strip) for patch in series.patches]
    for patch in series.patches:
        for section in patch.content.sections:
            if section.lines and not section.full_index:
                raise LockMismatch(
                    f"{patch.name}: {section.new_path} has no full index line, so the result "
                    "cannot be verified here: run --refresh"
                )
    states = level_states(declared)
    snapshot = root.snapshot(states[0])
    entries = git.entries(snapshot.tree)
    disk = {path: entries.get(path) for path in states[0]}
    levels, highest, edited = _fit(states, disk)
    found = Survey("refused", None, levels, highest, edited, disk=snapshot)
    if edited or not levels:
        found = replace(found, missing=_missing(states, disk))
        return replace(found, problem=_foreign_problem(root, release, states, found, entries))
    level = levels[-1]
    index = git.new_index(snapshot.tree)
    for patch in reversed(series.patches[:level]):
        apply_one(git, index, patch, root.strip, reverse=True)
    ladder = climb(git, git.write_tree(index), series, root.strip)
    verify_ladder(ladder, series, root.strip, full=False)
    return replace(found, kind="clean", level=level, unedited=ladder.trees[level], ladder=ladder)


def _foreign_problem(
    root: Root, release: Release, states: list[States], found: Survey, entries: dict
) -> PatchsetError:
    if not entries and any(states[0].values()):
        return WrongBase(
            f"{root.path} has none of the files that the series changes (such as "
            f"{next(path for path, entry in states[0].items() if entry)}): expected a checkout of "
            f"{PACKAGE} {release.version}, or with --strip 2 a site-packages folder"
        )
    version = root.found_version()
    # A path whose content no patch says (only its mode) is no evidence.
    recognised = any(
        entry and entry.blob and path in entries and path not in found.edited
        for path, entry in states[0].items()
    )
    if version != release.version and (version is not None or not recognised):
        return _wrong_base(root, release, version, found.edited)
    if found.missing:
        return LocalEdits(
            f"{naming(found.missing)}: missing: restore {PACKAGE} {release.version} and apply "
            "again; nothing was changed"
        )
    if found.edited:
        return LocalEdits(
            f"{naming(found.edited)}: not as {PACKAGE} {release.version} has it at any level of "
            "the series: undo the edits; nothing was changed"
        )
    return WrongBase(
        f"{root.path}: the patched files are of different levels of the series: restore "
        f"{PACKAGE} {release.version} and apply again"
    )


def _wrong_base(root: Root, release: Release, version: str | None, paths: list[str]) -> WrongBase:
    where = f" (for example {naming(paths)})" if paths else ""
    return WrongBase(
        f"{root.path} is not {PACKAGE} {release.version}: expected version {release.version} "
        f"({release.tag}), found {version or 'an unknown version'}{where}; nothing was changed"
    )
