# SPDX-License-Identifier: Apache-2.0
"""A bar chart in characters, so that a Markdown report stays one file."""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH = 40
# A full block and the eighths of one.
_FULL, _EIGHTHS = "█", " ▏▎▍▌▋▊▉"


def bar(value: float, greatest: float) -> str:
    """A bar whose length is `value` of `greatest`, to an eighth of a column."""
    eighths = round(8 * _WIDTH * value / greatest) if greatest > 0 else 0
    return _FULL * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def bar_lines(groups: Sequence[tuple[str, Sequence[tuple[str, float]]]], unit: str) -> list[str]:
    """Lines of a chart; each group is a title and its bars' names and values."""
    values = [value for _, rows in groups for _, value in rows]
    names = [name for _, rows in groups for name, _ in rows]
    greatest, columns = max(values, default=0.0), max(map(len, names), default=0)
    lines = []
    for title, rows in groups:
        lines += ["", title]
        for name, value in rows:
            lines.append(f"  {name:<{columns}}  {bar(value, greatest)} {value:,.1f} {unit}")
    return lines[1:]
