# SPDX-License-Identifier: Apache-2.0
"""A draft tree as text: light lines for what was drafted, a heavy one for what was accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .draft_tree import DraftTree
from .terminal import paint

_TOKEN_COLUMNS = 24
_ACCEPTED, _OTHER = "1;32", "2"  # ANSI bold green, and faint


@dataclass(frozen=True)
class _Row:
    branch: str
    label: str
    log_q: float | None = None
    path_log_q: float | None = None
    note: str = ""

    @property
    def width(self) -> int:
        return len(self.branch) + len(self.label)


def quote(text: str) -> str:
    """A token's text in quotes, so that its white space can be seen; cut if it is long."""
    quoted = repr(text)
    if len(quoted) <= _TOKEN_COLUMNS:
        return quoted
    return quoted[: _TOKEN_COLUMNS - 2] + "…" + quoted[-1]


def draw_tree(tree: DraftTree, text_of: Callable[[int], str], colour: bool = False) -> list[str]:
    """The lines of a drawing, a heading first.

    Args:
        tree: what to draw.
        text_of: text of a token id.
        colour: use ANSI styles: bold green for the accepted path, faint for the rest.
    """
    root = _Row("", quote(text_of(tree.tokens[0])), note="root: the last token so far")
    rows = [root, *_rows_below(tree, text_of, 0, 0.0, "")]
    columns = max(row.width for row in rows)
    lines = [paint(f"{'token':<{columns}}   {'log q':>6}   {'path':>6}", _OTHER, colour)]
    for row in rows:
        line = f"{row.branch}{row.label}{'':<{columns - row.width}}"
        if row.log_q is not None:
            line += f"   {row.log_q:6.2f}   {row.path_log_q:6.2f}"
        elif row.note:
            line += " " * 18
        line += f"   {row.note}" if row.note else ""
        lines.append(paint(line, _ACCEPTED if row.note else _OTHER, colour))
    return lines


def _rows_below(
    tree: DraftTree, text_of: Callable[[int], str], node: int, path_log_q: float, indent: str
) -> Iterator[_Row]:
    """The rows of a node's descendants, and of the bonus token below the last accepted node."""
    children = tree.children(node)
    has_bonus = tree.bonus is not None and node == tree.accepted[-1]
    heavy = len(children) if has_bonus else -1
    for place, child in enumerate(children):
        if child in tree.accepted:
            heavy = place
    last = len(children) if has_bonus else len(children) - 1
    for place, child in enumerate(children):
        branch, below = _branch(place, heavy, last)
        total = path_log_q + tree.log_q[child]
        note = "accepted" if place == heavy else ""
        label = quote(text_of(tree.tokens[child]))
        yield _Row(indent + branch, label, tree.log_q[child], total, note)
        yield from _rows_below(tree, text_of, child, total, indent + below)
    if has_bonus:
        note = "bonus: the target's own choice"
        yield _Row(indent + _branch(last, heavy, last)[0], quote(text_of(tree.bonus)), note=note)


def _branch(place: int, heavy: int, last: int) -> tuple[str, str]:
    """The lines to the child at a place, and beside all that is below that child.

    The heavy line comes from above and turns off to the child at place `heavy`; -1 is none.
    """
    if place == heavy:
        return ("┗━ ", "   ") if place == last else ("┡━ ", "│  ")
    if place < heavy:
        return "┠─ ", "┃  "
    return ("└─ ", "   ") if place == last else ("├─ ", "│  ")
