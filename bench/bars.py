# SPDX-License-Identifier: Apache-2.0
"""A bar chart as SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_COLOURS = ("#4263eb", "#2f9e44", "#f08c00", "#ae3ec9")
_BAR, _GAP, _LEFT, _WIDTH = 14, 10, 250, 760


def bar_chart(
    title: str, series: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]], unit: str
) -> str:
    """Horizontal bars: each row is a label and one value per series."""
    greatest = max(value for _, values in rows for value in values) or 1.0
    group = len(series) * _BAR + _GAP
    height = 70 + len(rows) * group
    parts = [f'<text x="16" y="24" class="h">{escape(title)}</text>']
    for i, name in enumerate(series):
        x = 16 + 200 * i
        parts.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{_COLOURS[i]}"/>')
        parts.append(f'<text x="{x + 18}" y="47">{escape(name)}</text>')
    for r, (label, values) in enumerate(rows):
        y = 62 + r * group
        middle = y + len(series) * _BAR / 2 + 4
        parts.append(f'<text x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>')
        for i, value in enumerate(values):
            width = max(1.0, (_WIDTH - _LEFT - 110) * value / greatest)
            top = y + i * _BAR
            parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 2}" '
                f'fill="{_COLOURS[i]}"/><text x="{_LEFT + width + 6:.1f}" y="{top + 10}">'
                f"{value:.3g} {escape(unit)}</text>"
            )
    style = "text{font:12px sans-serif;fill:#212529}.h{font-size:15px;font-weight:600}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}">'
        f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )
