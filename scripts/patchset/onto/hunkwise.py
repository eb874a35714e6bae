# SPDX-License-Identifier: Apache-2.0
"""Carry one file hunk by hunk: what fits is taken, and each hunk that does not says why."""

from __future__ import annotations

from dataclasses import dataclass

from ..git import Entry, Git
from ..merge import merge_file, split_lines, with_hunks
from ..patchfile import Hunk, Section
from .provenance import Provenance
from .rows import FileRow, HunkRow, Kind, worst
from .sources import Sources

Refusal = tuple[Kind, str, tuple[str, ...]]
"""Class, detail and blockers of a hunk that does not fit."""


@dataclass(frozen=True)
class Hunkwise:
    """number: of the patch. before: the level it starts from, on the release it was written for.
    here: what the other release has so far."""

    git: Git
    number: str
    before: Sources
    here: Sources
    provenance: Provenance

    def carry(self, section: Section, target: str) -> tuple[FileRow, Entry | None]:
        """The row for the file that is `target` there, and what it holds afterwards."""
        path = section.new_path
        new_path = target if target != path else None
        entry, base = self.here.entries.get(target), self.before.read(path)
        if entry is None and base is not None:
            return self._without_file(section, base), None
        if base is None or section.new is None or not section.hunks:
            self.provenance.fail(self.number, path, range(len(section.hunks)))
            why = "upstream has another file of this name"
            if base is not None:
                why = "the patch removes it or changes its mode, and upstream changed it"
            return FileRow(path, Kind.CONFLICT, why, new_path), entry
        ours = self.here.read(target)
        content, fitting, rows = ours, [], []
        for index, hunk in enumerate(section.hunks):
            refusal = self._blocked(path, base, hunk, b"-", "changes")
            if refusal is None:
                merged = merge_file(self.git, base, ours, with_hunks(base, [*fitting, hunk]))
                if merged is not None:
                    fitting.append(hunk)
                    content = merged
                    continue
                refusal = self._misfit(path, base, ours, hunk)
            row = HunkRow(index + 1, hunk.line, *refusal)
            rows.append(row)
            if row.kind is not Kind.UPSTREAMED:
                self.provenance.fail(self.number, path, [index])
        kind = worst([row.kind for row in rows] + [Kind.MERGED] * bool(fitting))
        row = FileRow(path, kind, "", new_path, tuple(rows))
        return row, Entry(entry.mode, self.git.write_blob(content))

    def _without_file(self, section: Section, base: bytes) -> FileRow:
        """The row of a file that is not there, nor under another name."""
        path = section.new_path
        rows = []
        for index, hunk in enumerate(section.hunks):
            stands_on = [
                origin
                for sign in (b"-", b" ")
                for origin in self.provenance.of_hunk(path, base, hunk, sign)
            ]
            if blockers := self.provenance.blockers(stands_on):
                why = f"stands on lines of {', '.join(blockers)}"
                rows.append(HunkRow(index + 1, hunk.line, Kind.BLOCKED, why, blockers))
        self.provenance.fail(self.number, path, range(len(section.hunks)))
        if rows and len(rows) == len(section.hunks):
            return FileRow(path, Kind.BLOCKED, hunks=tuple(rows))
        return FileRow(path, Kind.MISSING, "no such file, and none like it", hunks=tuple(rows))

    def _blocked(self, path: str, base: bytes, hunk: Hunk, sign: bytes, how: str) -> Refusal | None:
        """Why a hunk cannot be judged, if the lines that it removes (`-`) or leaves are missing."""
        lines = self.provenance.of_hunk(path, base, hunk, sign)
        if blockers := self.provenance.blockers(lines):
            return Kind.BLOCKED, f"{how} lines of {', '.join(blockers)}", blockers
        return None

    def _misfit(self, path: str, base: bytes, ours: bytes, hunk: Hunk) -> Refusal:
        """Why a hunk does not merge."""
        if _contains(split_lines(ours), hunk.new):
            return Kind.UPSTREAMED, "upstream has these lines", ()
        if blocked := self._blocked(path, base, hunk, b" ", "stands beside"):
            return blocked
        line = next((n for n, _ in hunk.numbered(b"-")), hunk.old_index + len(hunk.old) // 2)
        module = self.before.module(path)
        where = module.scopes.at(line) if module else "the file"
        return Kind.CONFLICT, f"upstream changed the same lines of {where}", ()


def _contains(lines: list[bytes], wanted: list[bytes]) -> bool:
    size = len(wanted)
    return any(lines[at : at + size] == wanted for at in range(len(lines) - size + 1))
