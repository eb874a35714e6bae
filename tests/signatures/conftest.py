# SPDX-License-Identifier: Apache-2.0
"""A made-up package to call into, and the releases that are unpacked here."""

from __future__ import annotations

import pytest
from callcheck.calls import check
from callcheck.release import kernel_signatures
from callcheck.sources import Sources

FACTS = {
    "version": "0.0.1",
    "functions": {"walk_trees": {"parameters": "out, tree, coins, exact=True", "operator": None}},
}
UPSTREAM = {
    "__init__.py": "",
    "pool.py": """
from __future__ import annotations
from dataclasses import dataclass, field
from typing import List, Optional

class Pool:
    def __init__(self, size, *, device="cpu"):
        self.size = size

    def free(self, slots):
        ...

    @staticmethod
    def of_bytes(n):
        ...

    @classmethod
    def empty(cls):
        return cls(0)

class PagedPool(Pool):
    def alloc(self, n, page=1):
        ...

@dataclass
class Batch:
    pool: PagedPool
    mask: Optional[list] = None
    pools: Optional[List[Pool]] = None
    spare: list = field(default_factory=list)
    hidden: int = field(init=False, default=0)
""",
    "all.py": "from .pool import *\n",
}


@pytest.fixture
def problems(tmp_path):
    """A function: what `check` finds wrong in the source of a module `up.series`."""
    for name, text in UPSTREAM.items():
        (tmp_path / "up").mkdir(exist_ok=True)
        (tmp_path / "up" / name).write_text(text)

    def find(source: str, lines: set[int] | None = None) -> list[str]:
        (tmp_path / "up" / "series.py").write_text(source)
        module = Sources(tmp_path, "up").module("up.series")
        found = list(check(module, lines, kernel_signatures(FACTS)))
        assert found or lines is not None, "no callee was found"
        return [one.problem for one in found if one.problem]

    return find
