# SPDX-License-Identifier: Apache-2.0
"""Which function or class a line of Python belongs to, and whether a patch's lines still do."""

from __future__ import annotations

import ast
import difflib

from ..patchfile import Hunk
from .syntax import DEFINITIONS, statements

MODULE = "the module itself"


class Scopes:
    """The enclosing definition of every line of a parsed file."""

    def __init__(self, tree: ast.Module):
        self._ranges: list[tuple[int, int, str]] = []
        self._fill(tree, [])

    def _fill(self, node: ast.AST, outer: list[str]) -> None:
        for child in statements(node):
            inner = outer
            if isinstance(child, DEFINITIONS):
                inner = [*outer, child.name]
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                self._ranges.append((first, child.end_lineno, f"`{'.'.join(inner)}`"))
            self._fill(child, inner)

    def at(self, line: int) -> str:
        """The dotted name, in backquotes, of what encloses a line (from 1), or MODULE."""
        # Inner definitions come after the ones that they are in.
        names = [name for first, last, name in self._ranges if first <= line <= last]
        return names[-1] if names else MODULE


def relocated(
    want: list[tuple[int, Hunk]], have: list[Hunk], sign: bytes, was: Scopes, now: Scopes
) -> dict[int, str]:
    """Which hunks of a patch have a line that now belongs to another definition, and how.

    want: the patch's hunks with their numbers. have: what the merge made of them. sign: `+` to look
    at added lines, with `was` and `now` the files after the change; `-` for removed lines, with
    the files before it.
    """
    wanted = [(number, *pair) for number, hunk in want for pair in hunk.numbered(sign)]
    found = [pair for hunk in have for pair in hunk.numbered(sign)]
    match = difflib.SequenceMatcher(
        None, [text.strip() for *_, text in wanted], [text.strip() for _, text in found], False
    )
    result: dict[int, str] = {}
    for a, b, size in match.get_matching_blocks():
        for step in range(size):
            number, line, text = wanted[a + step]
            before, after = was.at(line), now.at(found[b + step][0])
            if before != after and text.strip():
                result.setdefault(number, f"was in {before}, is now in {after}")
    return result
