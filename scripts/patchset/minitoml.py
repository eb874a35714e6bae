# SPDX-License-Identifier: Apache-2.0
"""The part of TOML that upstream.toml uses, for Python 3.10, which has no tomllib.

Comments, `[tables.with."quoted.parts"]`, and `key = "plain string"`. Everything else is an error.
"""

from __future__ import annotations

import re

_PART = r'(?:[A-Za-z0-9_-]+|"[^"\\]*")'
_TABLE = re.compile(rf"\[({_PART}(?:\.{_PART})*)\]\s*(?:#.*)?")
_PAIR = re.compile(rf'({_PART})\s*=\s*"([^"\\]*)"\s*(?:#.*)?')


def loads(text: str) -> dict:
    """Parse `text`. Raises ValueError with the line number."""
    root: dict = {}
    table = root
    opened = set()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if found := _TABLE.fullmatch(line):
            parts = tuple(part.strip('"') for part in re.findall(_PART, found[1]))
            if parts in opened:
                raise ValueError(f"line {number}: table {found[1]} is there twice")
            opened.add(parts)
            table = root
            for part in parts:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise ValueError(f"line {number}: {part} is a value and not a table")
        elif found := _PAIR.fullmatch(line):
            key = found[1].strip('"')
            if key in table:
                raise ValueError(f"line {number}: key {key} is there twice")
            table[key] = found[2]
        else:
            raise ValueError(f"line {number}: expected a table or key = \"string\", found '{line}'")
    return root
