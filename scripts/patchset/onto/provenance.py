# SPDX-License-Identifier: Apache-2.0
"""Which patch put a line where it is, to tell a conflict of its own from one that it inherits."""

from __future__ import annotations

from collections.abc import Iterable

from ..merge import split_lines
from ..patchfile import Hunk
from ..series import Patch
from .sources import Sources

Origin = tuple[str, str, int]
"""Patch number, path, and index of the hunk that added a line."""


class Provenance:
    """The origin of each line of the touched files, level by level; None for upstream's lines."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Origin | None]] = {}
        self._failed: set[Origin] = set()

    def of(self, path: str, source: bytes) -> list[Origin | None]:
        """One origin for each line of `source`, the file before the patch that is looked at."""
        if path not in self._lines:
            self._lines[path] = [None] * len(split_lines(source))
        return self._lines[path]

    def of_hunk(self, path: str, source: bytes, hunk: Hunk, sign: bytes) -> list[Origin | None]:
        """The origins of the lines that a hunk removes (`-`) or leaves (a space)."""
        origins = self.of(path, source)
        found, at = [], hunk.old_index
        for line in hunk.lines:
            if line[:1] == sign:
                found.append(origins[at])
            at += line[:1] != b"+"
        return found

    def fail(self, number: str, path: str, hunks: Iterable[int]) -> None:
        """Note that these hunks (from 0) could not be carried."""
        self._failed.update((number, path, hunk) for hunk in hunks)

    def blockers(self, origins: Iterable[Origin | None]) -> tuple[str, ...]:
        """Numbers of the patches that these lines are from, and that could not be carried."""
        return tuple(sorted({origin[0] for origin in origins if origin in self._failed}))

    def failed_in(self, path: str) -> bool:
        return any(failed[1] == path for failed in self._failed)

    def follow(self, patch: Patch, before: Sources) -> None:
        """Go on to the level after `patch`; `before` is the level that it starts from."""
        for section in patch.content.sections:
            path = section.new_path
            lines = self.of(path, before.read(path) or b"")
            result: list[Origin | None] = []
            at = 0
            for index, hunk in enumerate(section.hunks):
                result += lines[at : hunk.old_index]
                at = hunk.old_index
                for line in hunk.lines:
                    if line[:1] == b"+":
                        result.append((patch.number, path, index))
                        continue
                    if line[:1] == b" ":
                        result.append(lines[at])
                    at += 1
            self._lines[path] = result + lines[at:]
