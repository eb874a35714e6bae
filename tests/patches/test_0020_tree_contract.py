# SPDX-License-Identifier: Apache-2.0
"""What a captured verify step relies on: fixed shapes, no host synchronisation, clear errors.

Tensors on the `meta` device have shapes and no values. Code that runs on them reads no value
on the host, and its shapes cannot depend on any; everything that would wait for a GPU fails.
"""

import pytest
import torch
from ddtree_rows import random_topk
from sglang.srt.speculative.ddtree_utils import (
    DDTreeBuildResult,
    build_ddtree_tree_from_topk,
    compile_ddtree_ancestors,
    compile_ddtree_mask,
    compile_ddtree_positions,
)

FIELDS = {
    "token_ids": torch.int64,
    "parents": torch.int64,
    "depths": torch.int64,
    "valid": torch.bool,
}


def meta_inputs(bs, num_depths, k):
    return (
        torch.empty((bs, num_depths, k), device="meta"),
        torch.empty((bs, num_depths, k), dtype=torch.int64, device="meta"),
        torch.empty((bs,), dtype=torch.int64, device="meta"),
    )


def verify_step(logprobs, ids, roots, prefix_lens, *, budget, prefix_lens_sum):
    """Everything that stands between the drafter's top-k and the verify forward."""
    tree = build_ddtree_tree_from_topk(logprobs, ids, roots, budget)
    ancestors = compile_ddtree_ancestors(tree.parents, logprobs.shape[1])
    mask = compile_ddtree_mask(ancestors, prefix_lens, prefix_lens_sum)
    return tree, ancestors, mask, compile_ddtree_positions(tree.depths, prefix_lens)


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    ("bs", "num_depths", "k", "budget"),
    [(1, 7, 31, 31), (8, 15, 63, 63), (3, 1, 4, 9), (2, 7, 1, 7), (2, 3, 2, 100)],
)
def test_no_value_is_read_on_the_host(bs, num_depths, k, budget, index_dtype):
    prefix_lens = torch.empty((bs,), dtype=index_dtype, device="meta")
    tree, ancestors, mask, positions = verify_step(
        *meta_inputs(bs, num_depths, k), prefix_lens, budget=budget, prefix_lens_sum=50
    )
    width = budget + 1
    for name, dtype in FIELDS.items():
        field = getattr(tree, name)
        assert (field.shape, field.dtype, field.device.type) == ((bs, width), dtype, "meta")
    assert (ancestors.shape, ancestors.dtype) == ((bs, width, width), torch.bool)
    assert (mask.shape, mask.dtype) == ((width * (50 + bs * width),), torch.bool)
    assert (positions.shape, positions.dtype) == ((bs * width,), torch.int64)


def test_a_repeated_step_uploads_nothing(monkeypatch):
    """Tensors made of host data are made once a shape, so that a captured step has none."""
    prefix_lens = torch.empty((2,), dtype=torch.int64, device="meta")

    def step():
        verify_step(*meta_inputs(2, 5, 8), prefix_lens, budget=12, prefix_lens_sum=9)

    def upload(*args, **kwargs):
        raise AssertionError("a tensor is made of host data")

    step()
    for maker in ("tensor", "as_tensor", "from_numpy"):
        monkeypatch.setattr(torch, maker, upload)
    step()


SYNCHRONISING = {
    "item": lambda tree: tree.valid.sum().item(),
    "int()": lambda tree: int(tree.depths.max()),
    "truth value": lambda tree: bool(tree.valid.all()),
    "tolist": lambda tree: tree.parents.tolist(),
    "copy to the host": lambda tree: tree.parents.cpu(),
    "nonzero": lambda tree: tree.valid.nonzero(),
    "boolean index": lambda tree: tree.token_ids[tree.valid],
    "masked_select": lambda tree: tree.token_ids.masked_select(tree.valid),
    "repeat_interleave": lambda tree: tree.token_ids[0].repeat_interleave(tree.depths[0]),
    "unique": lambda tree: tree.token_ids.unique(),
}


@pytest.mark.parametrize("how", SYNCHRONISING)
def test_the_meta_device_sees_a_synchronisation(how):
    """Mutants: each way of reading a value on the host fails where the real code passes."""
    tree = build_ddtree_tree_from_topk(*meta_inputs(2, 5, 8), 12)
    with pytest.raises((RuntimeError, NotImplementedError)):
        SYNCHRONISING[how](tree)


def test_a_mask_sized_on_the_device_would_synchronise():
    """The mutant: `prefix_lens_sum` read from `prefix_lens` instead of passed in."""
    prefix_lens = torch.empty((2,), dtype=torch.int64, device="meta")
    ancestors = torch.empty((2, 4, 4), dtype=torch.bool, device="meta")
    compile_ddtree_mask(ancestors, prefix_lens, 9)
    with pytest.raises(RuntimeError):
        compile_ddtree_mask(ancestors, prefix_lens, int(prefix_lens.sum()))


@pytest.mark.parametrize(("num_depths", "k", "budget"), [(3, 2, 20), (1, 1, 4), (4, 1, 9)])
def test_padding_nodes(num_depths, k, budget):
    """A budget above the number of paths ends in nodes that can do no harm.

    They repeat the root's token (a legal id, unlike any sentinel), are nobody's child or
    parent, see themselves and the prefix only, and stand at a position next to the root.
    """
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 2, num_depths, k)
    tree, ancestors, _, positions = verify_step(
        logprobs, ids, roots, torch.tensor([5, 0]), budget=budget, prefix_lens_sum=5
    )
    real = 1 + sum(k**depth for depth in range(1, num_depths + 1))
    assert tree.valid.sum(dim=1).tolist() == [real, real]
    padding = slice(real, budget + 1)
    count = budget + 1 - real
    assert tree.token_ids[:, padding].tolist() == [[root] * count for root in roots.tolist()]
    assert tree.parents[:, padding].tolist() == [[-1] * count] * 2
    assert tree.depths[:, padding].tolist() == [[1] * count] * 2
    assert int(tree.parents.max()) < real
    assert torch.equal(
        ancestors[:, padding], torch.eye(budget + 1, dtype=torch.bool)[padding].expand(2, -1, -1)
    )
    assert not ancestors[:, :real, padding].any()
    assert positions.view(2, -1)[:, padding].tolist() == [[6] * count, [1] * count]


@pytest.mark.parametrize("budget", [0, -3])
def test_a_budget_below_one_is_refused(budget):
    inputs = random_topk(torch.Generator().manual_seed(0), 2, 3, 4)
    with pytest.raises(ValueError, match=f"at least 1, got {budget}"):
        build_ddtree_tree_from_topk(*inputs, budget)


@pytest.mark.parametrize(
    ("logprobs", "ids", "roots"),
    [
        ((2, 12), (2, 12), (2,)),
        ((2, 3, 4), (2, 3, 5), (2,)),
        ((2, 3, 4), (2, 3, 4), (3,)),
        ((2, 3, 4), (2, 3, 4), (2, 1)),
        ((2, 0, 4), (2, 0, 4), (2,)),
        ((2, 3, 0), (2, 3, 0), (2,)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(logprobs, ids, roots):
    with pytest.raises(ValueError, match=r"\[bs, L, K\]") as error:
        build_ddtree_tree_from_topk(
            torch.zeros(logprobs),
            torch.zeros(ids, dtype=torch.int64),
            torch.zeros(roots, dtype=torch.int64),
            5,
        )
    assert str(logprobs) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_result_has_the_documented_fields():
    tree = build_ddtree_tree_from_topk(*random_topk(torch.Generator().manual_seed(0), 3, 4, 5), 10)
    assert isinstance(tree, DDTreeBuildResult)
    for name, dtype in FIELDS.items():
        assert (getattr(tree, name).shape, getattr(tree, name).dtype) == ((3, 11), dtype)
