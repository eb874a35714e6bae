# SPDX-License-Identifier: Apache-2.0
"""What a report says: a row for each patch, with its files and hunks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a patch, a file of it, or a hunk fares on another release; in order of concern.

    EXACT: every hunk is where the patch says.
    OFFSET: all context is there, at other lines.
    MERGED: the context changed, a three-way merge is clean.
    RENAMED: the file has another name there, and the merge followed it.
    UPSTREAMED: upstream has the change already.
    RELOCATED: the merge is clean, but lines ended in another function or class.
    SYMBOL_GONE: the merge is clean, but uses a name that is no longer there.
    BLOCKED: stands on lines of an earlier patch that could not be carried.
    MISSING: the file to change is not there.
    CONFLICT: upstream changed the same lines.
    """

    EXACT = "EXACT"
    OFFSET = "OFFSET"
    MERGED = "MERGED"
    RENAMED = "RENAMED"
    UPSTREAMED = "UPSTREAMED"
    RELOCATED = "RELOCATED"
    SYMBOL_GONE = "SYMBOL-GONE"
    BLOCKED = "BLOCKED"
    MISSING = "MISSING"
    CONFLICT = "CONFLICT"

    @property
    def safe(self) -> bool:
        """Whether the patch can be carried without a person looking at it."""
        return self in (Kind.EXACT, Kind.OFFSET, Kind.MERGED, Kind.RENAMED, Kind.UPSTREAMED)


_ORDER = list(Kind)


def worst(kinds: list[Kind]) -> Kind:
    """The one of most concern. UPSTREAMED only if all are: the rest is still to be carried."""
    if all(kind is Kind.UPSTREAMED for kind in kinds):
        return Kind.UPSTREAMED
    return max((kind for kind in kinds if kind is not Kind.UPSTREAMED), key=_ORDER.index)


@dataclass(frozen=True)
class HunkRow:
    """A hunk that a person must look at, or that upstream has already.

    number: from 1, in its file. line: of its `@@` line in the patch file. blockers: numbers of
    the patches that it stands on, for BLOCKED.
    """

    number: int
    line: int
    kind: Kind
    detail: str
    blockers: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileRow:
    """new_path: the file's name in the other release, where it has another one."""

    path: str
    kind: Kind
    detail: str = ""
    new_path: str | None = None
    hunks: tuple[HunkRow, ...] = ()


@dataclass(frozen=True)
class PatchRow:
    """gone: names that it uses and that are no longer there. look: what a person should look at
    although git was content."""

    number: str
    title: str
    files: tuple[FileRow, ...]
    gone: tuple[str, ...] = ()
    look: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return worst([file.kind for file in self.files] + [Kind.SYMBOL_GONE] * bool(self.gone))

    @property
    def blockers(self) -> list[str]:
        """Numbers of the patches that must be carried before this one can be judged."""
        rows = [row for file in self.files for row in file.hunks]
        return sorted({number for row in rows for number in row.blockers})
