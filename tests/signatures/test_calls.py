# SPDX-License-Identifier: Apache-2.0
"""Calls of a made-up series into a made-up package: what fits, and every kind of misfit."""

import pytest

KERNEL = "from sgl_kernel import walk_trees\n"
POOL = "from up.pool import Batch, PagedPool, Pool\n"

FITS = [
    KERNEL + "walk_trees(1, 2, coins=3)",
    KERNEL + "walk_trees(1, 2, 3, False)",
    KERNEL + "walk_trees(*both, coins=3)",
    KERNEL + "walk_trees(1, **rest)",
    POOL + "Pool(3, device='cuda')",
    POOL + "PagedPool(3).alloc(2, page=4)",
    POOL + "Batch(PagedPool(1), spare=[1])",
    POOL + "Pool.of_bytes(1); Pool.empty()",
    "import up.pool\nfrom up import pool\npool.Pool(1)",
    "from up.all import Pool\nPool(1)",
    POOL + "def f(batch: Batch):\n    batch.pool.free(1)",
    POOL + "def f(pool: 'PagedPool | None'):\n    pool.alloc(1)",
    POOL
    + "class Mine(PagedPool):\n    def grow(self):\n        super().alloc(1)\n        self.free(2)",
    # A local import under another name: both functions that the name can stand for.
    "def g(a): ...\ndef f():\n    h = g\n    from up.pool import Pool as h\n    h(1)",
]

MISFITS = {
    "an unknown keyword": (KERNEL + "walk_trees(1, 2, 3, coin=4)", "unexpected keyword"),
    "a missing argument": (KERNEL + "walk_trees(1, 2)", "missing a required argument: 'coins'"),
    "one argument too many": (KERNEL + "walk_trees(1, 2, 3, True, 5)", "too many positional"),
    "an argument given twice": (KERNEL + "walk_trees(1, 2, 3, out=4)", "multiple values"),
    "a surplus beside *": (KERNEL + "walk_trees(*a, 1, 2, 3, 4, 5)", "too many positional"),
    "an unknown name beside **": (KERNEL + "walk_trees(coin=3, **a)", "unexpected keyword"),
    "a function without facts": ("from sgl_kernel import other\nother(1)", "facts of"),
    "a name that is not defined": ("from up.pool import free\nfree(1)", "found none"),
    "a module that is not there": ("from up.gone import free\nfree(1)", "found none"),
    "a name of a module": ("from up import pool\npool.free(1)", "found none"),
    "a keyword-only argument": (POOL + "Pool(3, 'cuda')", "too many positional"),
    "an unknown method": (POOL + "def f(p: Pool):\n    p.release(1)", "found none"),
    "a method's argument": (POOL + "def f(b: Batch):\n    b.pool.free()", "missing a required"),
    "a static method's": (POOL + "Pool.of_bytes()", "missing a required"),
    "a class method's": (POOL + "Pool.empty(1)", "too many positional"),
    "self's": (POOL + "class M(Pool):\n    def g(self):\n        self.free(1, 2)", "too many"),
    "super's": (POOL + "class M(Pool):\n    def g(self):\n        super().free()", "missing a"),
    "a loop's": (
        POOL
        + "def f(b: Batch):\n    for i, (n, p) in enumerate(zip(a, b.pools)):\n        p.free()",
        "missing a required",
    ),
    "a field": (POOL + "Batch(pool=1, masks=2)", "unexpected keyword"),
    "a field that is not taken": (POOL + "Batch(1, hidden=2)", "unexpected keyword"),
    "a result's method": (POOL + "def f():\n    p = Pool(1)\n    p.free()", "missing a required"),
    "one of two bindings": (
        "def g(a, b): ...\ndef f():\n    h = g\n    from up.pool import Pool as h\n    h(1)",
        "missing a required argument: 'b'",
    ),
}


@pytest.mark.parametrize("source", FITS)
def test_a_call_that_fits(problems, source):
    assert problems(source) == []


@pytest.mark.parametrize("source, message", MISFITS.values(), ids=MISFITS)
def test_a_call_that_does_not_fit(problems, source, message):
    found = problems(source)
    assert len(found) == 1 and message in found[0]


def test_only_calls_that_touch_the_lines_are_judged(problems):
    source = POOL + "Pool()\nPool(\n    size=1,\n    sizes=2,\n)\n"
    assert problems(source, {2}) == ["missing a required argument: 'size'"]
    assert problems(source, {5}) == ["got an unexpected keyword argument 'sizes'"]
    assert problems(source, {1}) == []
