# SPDX-License-Identifier: Apache-2.0
"""`build_ddtree_tree_from_topk` gives exactly the tree of the paper's Algorithm 1."""

import math
import random

import pytest
import torch
from ddtree_rows import expected_rows, random_topk, rows_of
from oracles.trees import children_of, enumerated_tree, heap_tree
from sglang.srt.speculative.ddtree_utils import build_ddtree_tree_from_topk


def build_rows(logprobs, ids, roots, budget):
    return rows_of(build_ddtree_tree_from_topk(logprobs, ids, roots, budget))


def distinct_ids(bs, num_depths, k):
    return (torch.arange(bs * num_depths * k) + 100).view(bs, num_depths, k)


def coarse_logprobs(generator, bs, num_depths, k, levels):
    """Multiples of 1/4 from 0 down, descending in K: sums are exact and ties are everywhere."""
    steps = torch.randint(levels, (bs, num_depths, k), generator=generator)
    return -(steps.sort(dim=-1).values.float() / 4)


def assert_well_formed(row):
    """Parents before children, and every node but the root is reached once from it."""
    num_valid = sum(row.valid)
    assert row.valid == [True] * num_valid + [False] * (len(row.valid) - num_valid)
    assert row.parents[0] == -1
    assert row.depths[0] == 0
    for node in range(1, num_valid):
        assert 0 <= row.parents[node] < node
        assert row.depths[node] == row.depths[row.parents[node]] + 1
    children = children_of(row)
    visited, pending = [], [0]
    while pending:
        visited.append(pending.pop())
        pending += children[visited[-1]]
    assert sorted(visited) == list(range(num_valid))


SHAPES = [  # bs, L, K, budget
    (1, 7, 8, 31),
    (4, 7, 31, 31),
    (3, 3, 2, 5),
    (3, 3, 2, 40),  # only 14 paths exist
    (2, 4, 100, 6),  # K far larger than needed
    (5, 1, 4, 2),  # block 2
    (5, 1, 4, 9),
    (4, 7, 1, 7),  # K = 1: the spine
    (4, 7, 1, 20),
    (2, 15, 16, 63),
    (2, 15, 64, 255),
    (3, 5, 6, 1),
]


@pytest.mark.parametrize(("bs", "num_depths", "k", "budget"), SHAPES)
def test_random_logits(bs, num_depths, k, budget):
    generator = torch.Generator().manual_seed(budget)
    for _ in range(10):
        inputs = random_topk(generator, bs, num_depths, k)
        rows = build_rows(*inputs, budget)
        assert rows == expected_rows(*inputs, budget)
        for row in rows:
            assert_well_formed(row)


@pytest.mark.parametrize(("num_depths", "k"), [(1, 1), (1, 5), (2, 4), (3, 3), (4, 2), (5, 1)])
def test_every_budget_against_all_paths(num_depths, k):
    """From one node to more than there are paths, with and without ties."""
    generator = torch.Generator().manual_seed(num_depths)
    most = sum(k**depth for depth in range(1, num_depths + 1))
    for budget in range(1, most + 4):
        smooth = random_topk(generator, 3, num_depths, k)
        coarse = coarse_logprobs(generator, 3, num_depths, k, levels=3)
        for inputs in (smooth, (coarse, distinct_ids(3, num_depths, k), smooth[2])):
            assert build_rows(*inputs, budget) == expected_rows(*inputs, budget, enumerated_tree)


def test_the_oracles_agree():
    rng = random.Random(0)
    for _ in range(300):
        num_depths, k = rng.randint(1, 4), rng.randint(1, 4)
        weights = [0.0, -0.25, -0.5, -1.0, -math.inf, -rng.random(), -rng.random()]
        logprobs = [
            sorted((rng.choice(weights) for _ in range(k)), reverse=True) for _ in range(num_depths)
        ]
        budget = rng.randint(1, 40)
        assert heap_tree(logprobs, budget) == enumerated_tree(logprobs, budget)


@pytest.mark.parametrize("levels", [1, 2, 4])
@pytest.mark.parametrize(("bs", "num_depths", "k", "budget"), SHAPES)
def test_ties(bs, num_depths, k, budget, levels):
    """Ties are broken by (depth, parent, rank), so a parent never follows its child.

    With one level every log-probability is 0: a deterministic drafter with K equal choices.
    """
    generator = torch.Generator().manual_seed(levels)
    roots = torch.arange(bs)
    for _ in range(3):
        inputs = (
            coarse_logprobs(generator, bs, num_depths, k, levels),
            distinct_ids(bs, num_depths, k),
            roots,
        )
        rows = build_rows(*inputs, budget)
        assert rows == expected_rows(*inputs, budget)
        for row in rows:
            assert_well_formed(row)


def test_a_certain_drafter_gives_its_chain_first():
    """log q = 0 for one token a position and -inf for all others."""
    logprobs = torch.tensor([[[0.0, -math.inf, -math.inf]] * 5])
    ids = distinct_ids(1, 5, 3)
    (row,) = build_rows(logprobs, ids, torch.tensor([7]), 8)
    assert row.token_ids == [7] + ids[0, :, 0].tolist() + [7] * 3
    assert row.parents == [-1, 0, 1, 2, 3, 4, -1, -1, -1]
    assert row.valid == [True] * 6 + [False] * 3


def test_bfloat16_log_probabilities():
    """Rounded to 8 bits, many weights tie that did not before."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        logprobs, ids, roots = random_topk(generator, 4, 7, 16)
        rounded = logprobs.to(torch.bfloat16)
        rows = build_rows(rounded, ids, roots, 31)
        assert rows == expected_rows(rounded.float(), ids, roots, 31)
        for row in rows:
            assert_well_formed(row)


def test_a_rounding_error_above_zero_lifts_no_child_over_its_parent():
    logprobs = torch.full((1, 4, 2), -1.0)
    logprobs[:, :, 0] = 1e-6
    inputs = (logprobs, distinct_ids(1, 4, 2), torch.tensor([1]))
    (row,) = build_rows(*inputs, 10)
    assert_well_formed(row)
    assert [row] == expected_rows(logprobs.clamp(max=0), *inputs[1:], 10)


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_position_without_probabilities_ends_the_tree(bad):
    """NaN logits of one position give a tree that stops before it, in that row alone."""
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 4, 3, 6)
    for row, depth in enumerate([0, 1, 2]):
        logprobs[row, depth] = bad
    rows = build_rows(logprobs, ids, roots, 200)
    without_nan = logprobs.nan_to_num(nan=-math.inf, neginf=-math.inf)
    assert rows == expected_rows(without_nan, ids, roots, 200)
    assert [sum(row.valid) - 1 for row in rows] == [0, 6, 6 + 36, 200]


def test_candidates_of_probability_zero_are_not_proposed():
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 3, 3, 5)
    logprobs[0, :, 2:] = -math.inf
    logprobs[1, 1, 1:] = -math.inf
    rows = build_rows(logprobs, ids, roots, 60)
    assert rows == expected_rows(logprobs, ids, roots, 60)
    assert [sum(row.valid) - 1 for row in rows] == [2 + 4 + 8, 5 + 5 + 25, 60]


def test_duplicate_token_ids_stay_separate_nodes():
    """The tree is over ranks: two candidates with one token are two siblings."""
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 4, 4, 6)
    ids[:, :, 3] = ids[:, :, 0]
    ids[2] = 11
    roots[2] = 11
    assert build_rows(logprobs, ids, roots, 25) == expected_rows(logprobs, ids, roots, 25)


@pytest.mark.parametrize("num_depths", [1, 3, 7])
def test_one_candidate_a_position_gives_the_chain(num_depths):
    """K = 1 and budget = block size - 1: DFLASH's block, in its order."""
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 3, num_depths, 1)
    for b, row in enumerate(build_rows(logprobs, ids, roots, num_depths)):
        assert row.token_ids == [int(roots[b])] + ids[b, :, 0].tolist()
        assert row.parents == list(range(-1, num_depths))
        assert row.depths == list(range(num_depths + 1))
        assert all(row.valid)


def test_equal_inputs_give_equal_trees():
    generator = torch.Generator().manual_seed(0)
    logprobs = coarse_logprobs(generator, 4, 6, 8, levels=3)
    inputs = (logprobs, distinct_ids(4, 6, 8), torch.arange(4))
    first = build_rows(*inputs, 31)
    assert all(build_rows(*inputs, 31) == first for _ in range(5))


@pytest.mark.parametrize("ties", [False, True])
def test_a_tree_does_not_depend_on_its_neighbours(ties):
    """Alone, or among others in another order, a row gives the same tree."""
    generator = torch.Generator().manual_seed(0)
    logprobs, ids, roots = random_topk(generator, 6, 5, 8)
    if ties:
        logprobs = coarse_logprobs(generator, 6, 5, 8, levels=2)
    logprobs[3, 2] = math.nan
    together = build_rows(logprobs, ids, roots, 24)
    alone = [
        build_rows(logprobs[b : b + 1], ids[b : b + 1], roots[b : b + 1], 24)[0] for b in range(6)
    ]
    order = [4, 0, 5, 3, 3, 1]
    reordered = build_rows(logprobs[order], ids[order], roots[order], 24)
    assert together == alone
    assert reordered == [together[b] for b in order]


def test_inputs_are_left_alone():
    generator = torch.Generator().manual_seed(0)
    inputs = random_topk(generator, 2, 3, 4)
    inputs[0][0, 0, 0] = math.nan
    copies = [tensor.clone() for tensor in inputs]
    build_rows(*inputs, 9)
    for tensor, copy in zip(inputs, copies, strict=True):
        torch.testing.assert_close(tensor, copy, rtol=0, atol=0, equal_nan=True)


def reverse_ties(monkeypatch):
    """Let torch.sort break ties backwards, as an unstable sort is free to."""
    stable_sort = torch.sort

    def sort(values, dim=-1, descending=False, stable=False):
        order = stable_sort(values.flip(dim), dim=dim, descending=descending, stable=True)
        indices = values.shape[dim] - 1 - order.indices
        return torch.return_types.sort((order.values, indices))

    monkeypatch.setattr(torch, "sort", sort)


def test_the_checks_see_an_unstable_sort(monkeypatch):
    """The mutant: on ties an unstable sort puts children before their parents."""
    inputs = (torch.zeros(1, 3, 2), distinct_ids(1, 3, 2), torch.tensor([1]))
    expected = expected_rows(*inputs, 6)
    assert build_rows(*inputs, 6) == expected
    reverse_ties(monkeypatch)
    rows = build_rows(*inputs, 6)
    assert rows != expected
    with pytest.raises(AssertionError):
        assert_well_formed(rows[0])
