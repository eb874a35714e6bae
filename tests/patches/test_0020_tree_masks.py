# SPDX-License-Identifier: Apache-2.0
"""Ancestors, flat mask and positions of draft trees against loops over parent pointers."""

import random

import pytest
import torch
from ddtree_rows import result_of
from oracles.masks import ancestor_mask, flat_tree_mask, path_to_root
from oracles.trees import random_row
from sglang.srt.speculative.ddtree_utils import (
    compile_ddtree_ancestors,
    compile_ddtree_mask,
    compile_ddtree_positions,
)


def random_rows(seed, count, width, max_depth):
    rng = random.Random(seed)
    return [random_row(rng, width, max_depth, vocab_size=50) for _ in range(count)]


def assert_ancestors(compiled, rows):
    assert compiled.tolist() == [ancestor_mask(row.parents) for row in rows]


def assert_positions(compiled, rows, prefix_lens):
    assert compiled.tolist() == [
        prefix + (len(path_to_root(row.parents, node)) - 1 if row.valid[node] else 1)
        for row, prefix in zip(rows, prefix_lens, strict=True)
        for node in range(len(row.parents))
    ]


@pytest.mark.parametrize("max_depth", [1, 2, 3, 4, 7, 15])
@pytest.mark.parametrize("width", [2, 8, 33])
def test_ancestors_of_random_trees(width, max_depth):
    rows = random_rows(width, 20, width, max_depth)
    parents = result_of(rows).parents
    for bound in (max_depth, max_depth + 5):
        assert_ancestors(compile_ddtree_ancestors(parents, bound), rows)


@pytest.mark.parametrize("length", range(1, 18))
def test_ancestors_of_a_chain(length):
    """Paths double a round: every depth around the powers of two, at the tightest bound."""
    parents = torch.arange(-1, length).unsqueeze(0)
    compiled = compile_ddtree_ancestors(parents, length)
    assert torch.equal(compiled[0], torch.ones(length + 1, length + 1).tril().bool())


def test_ancestors_leave_the_parents_alone():
    parents = result_of(random_rows(0, 3, 9, 4)).parents
    copy = parents.clone()
    compile_ddtree_ancestors(parents, 4)
    assert torch.equal(parents, copy)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("prefix_lens", [[4], [0], [3, 0, 17, 1], [0, 0], [5, 5, 5]])
def test_flat_mask_of_ragged_batches(prefix_lens, dtype):
    rows = random_rows(len(prefix_lens), len(prefix_lens), 9, 5)
    ancestors = compile_ddtree_ancestors(result_of(rows).parents, 5)
    mask = compile_ddtree_mask(ancestors, torch.tensor(prefix_lens, dtype=dtype), sum(prefix_lens))
    assert mask.tolist() == flat_tree_mask([row.parents for row in rows], prefix_lens)


def test_two_requests_do_not_swap_masks():
    """Trees of equal size: exchanging them exchanges the masks, and nothing else."""
    chain, bush = [-1, 0, 1, 2], [-1, 0, 0, 0]
    masks = []
    for trees in ([chain, bush], [bush, chain]):
        ancestors = compile_ddtree_ancestors(torch.tensor(trees), 3)
        mask = compile_ddtree_mask(ancestors, torch.tensor([6, 6]), 12)
        assert mask.tolist() == flat_tree_mask(trees, [6, 6])
        masks.append(mask.view(2, 4, 10))
    assert not torch.equal(masks[0], masks[1])
    assert torch.equal(masks[0], masks[1].flip(0))


def test_a_spine_gives_the_causal_mask():
    """The mask of DFLASH's chain."""
    prefix_lens, width = [2, 5], 4
    ancestors = compile_ddtree_ancestors(torch.arange(-1, 3).expand(2, -1), 3)
    mask = compile_ddtree_mask(ancestors, torch.tensor(prefix_lens), 7)
    causal = [
        torch.ones(width, prefix + width, dtype=torch.bool).tril(prefix).flatten()
        for prefix in prefix_lens
    ]
    assert torch.equal(mask, torch.cat(causal))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_positions(dtype):
    prefix_lens = [9, 0, 4]
    rows = random_rows(1, 3, 12, 5)
    positions = compile_ddtree_positions(
        result_of(rows).depths, torch.tensor(prefix_lens, dtype=dtype)
    )
    assert_positions(positions, rows, prefix_lens)


def test_the_checks_see_wrong_ancestors_and_positions():
    """Mutants: no self in the ancestor mask, parents only, positions by index."""
    rows = random_rows(2, 4, 12, 5)
    tree = result_of(rows)
    ancestors = compile_ddtree_ancestors(tree.parents, 5)
    without_self = ancestors & ~torch.eye(12, dtype=torch.bool)
    parents_only = compile_ddtree_ancestors(tree.parents, 1)
    for mutant in (without_self, parents_only):
        with pytest.raises(AssertionError):
            assert_ancestors(mutant, rows)

    prefix_lens = [3, 1, 0, 8]
    by_index = torch.tensor(prefix_lens).unsqueeze(1) + torch.arange(12)
    with pytest.raises(AssertionError):
        assert_positions(by_index.flatten(), rows, prefix_lens)
