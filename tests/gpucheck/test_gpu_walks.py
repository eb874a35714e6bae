# SPDX-License-Identifier: Apache-2.0
"""What compares the kernel's walk with the rule sees wrong kernels, and passes a right one.

On a CPU there is no kernel. The plain-Python transcription of the rule stands in for it.
"""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from gpucheck import walks
from oracles.target_only import outcome_distribution, walk_by_coins
from sglang.srt.speculative import ddtree_sampling

TREES, COPIES = 24, 3
# The rule itself, one that accepts too often, and one that draws what it has rejected.
STEPS = ((1.0, False), (0.9, False), (1.0, True))


def as_kernel(choose):
    """A walk made of `choose(parents, tokens, probs, coins)`, which returns a path."""

    def walk(case, coins):
        paths = torch.full((len(coins), case.depth + 1), -1, dtype=torch.int64)
        for row in range(len(coins)):
            path = choose(
                case.tree.parents[row].tolist(),
                case.tree.token_ids[row].tolist(),
                case.probs[row].double().tolist(),
                coins[row].tolist(),
            )
            paths[row, : len(path)] = torch.tensor(path)
        return (paths,)

    return walk


def transcribed(parents, tokens, probs, coins):
    return walk_by_coins(parents, tokens, probs, coins, 0.5)[0]


def small_cases(monkeypatch):
    """The same trees without the large vocabularies, which are slow as lists."""

    def cases(count, copies, device):
        for i in range(count):
            yield walks.make_case(
                i, copies, device, (7, 15)[i % 2], 1 + i % 5, 12, (None, 2)[i % 2]
            )

    monkeypatch.setattr(walks, "cases", cases)


def test_a_right_kernel_walks_alike(monkeypatch):
    small_cases(monkeypatch)
    found = walks.compare_walks("cpu", as_kernel(transcribed), TREES, COPIES)
    assert found.compared == TREES * COPIES == found.equal + found.at_a_boundary
    assert walks.report(found, [0.0])["problems"] == []


def one_coin_for_all(parents, tokens, probs, coins):
    return transcribed(parents, tokens, probs, [coins[0]] * len(coins))


def last_child_forgotten(parents, tokens, probs, coins):
    last = max(range(len(parents)), key=lambda i: (parents[i], i))
    return transcribed(
        [p if i != last else -1 for i, p in enumerate(parents)], tokens, probs, coins
    )


def coins_of_the_child(parents, tokens, probs, coins):
    return transcribed(parents, tokens, probs, [*coins[1:], coins[0]])


def edges_elsewhere(parents, tokens, probs, coins):
    return transcribed(parents, tokens, probs, [c - 0.1 for c in coins])


@pytest.mark.parametrize(
    "wrong", [one_coin_for_all, last_child_forgotten, coins_of_the_child, edges_elsewhere]
)
def test_a_wrong_kernel_is_seen(monkeypatch, wrong):
    small_cases(monkeypatch)
    found = walks.compare_walks("cpu", as_kernel(wrong), 3 * TREES, COPIES)
    problems = walks.report(found, [0.0])["problems"]
    assert problems and "walks differ" in problems[0]


def test_a_coin_at_an_edge_excuses_and_a_coin_elsewhere_does_not():
    """Root with children of 0.25 and 0.5: the edges are at 0.25 and 0.75."""
    tree = [-1, 0, 0], [9, 0, 1], [[0.25, 0.5, 0.25]] * 3
    rounding = 2.0**-24
    for coin, expected in (
        (0.25 + rounding, True),
        (0.75 - rounding, True),
        (0.5, False),
        (0.26, False),
        (1.0, False),
    ):
        assert walks.is_at_a_boundary(*tree, 0, coin) is expected
    assert not walks.is_at_a_boundary(*tree, 1, 0.25), "node 1 has no children"


def test_too_many_walks_at_a_boundary_are_a_problem():
    few = walks.Compared(compared=10_000, equal=9_995, at_a_boundary=5)
    many = walks.Compared(compared=10_000, equal=9_900, at_a_boundary=100)
    assert walks.report(few, [0.0])["problems"] == []
    assert "boundary" in walks.report(many, [0.0])["problems"][0]


def test_nothing_compared_is_a_problem():
    assert len(walks.report(walks.Compared(), [])["problems"]) == 2


def test_the_exact_law_is_the_oracles():
    case = walks.make_case(3, 1, "cpu", 7, 3, 10, 3)
    expected = outcome_distribution(
        case.tree.parents[0].tolist(),
        case.tree.token_ids[0].tolist(),
        case.probs[0].double().tolist(),
    )
    found = walks.exact_law(case)
    assert found == pytest.approx(expected) and math.fsum(found.values()) == pytest.approx(
        1, abs=1e-5
    )


def test_the_sampled_step_has_the_law():
    zs = walks.compare_laws("cpu", walks.sampled_step, copies=5000)
    assert len(zs) == walks.LAW_TREES and max(zs) < walks.GREATEST_Z


def step_with(factor: float, forget_children: bool):
    """A sampled step whose coins are too small, or whose bonus may be a child's token."""

    def step(case):
        coins = factor * (1 - torch.rand(case.probs.shape[:2]))
        paths, lengths, last = walks.walk_by_rule(case, coins)
        tree = case.tree
        if forget_children:
            tree = replace(tree, parents=torch.full_like(tree.parents, -1))
        bonus_coins = 1 - torch.rand(len(last), dtype=torch.float64)
        return paths, lengths, ddtree_sampling.draw_bonus(tree, case.probs, last, bonus_coins)

    return step


def test_a_step_with_another_law_is_seen():
    from_here = [max(walks.compare_laws("cpu", step_with(*how), copies=20_000)) for how in STEPS]
    assert from_here[0] < walks.GREATEST_Z < min(from_here[1:])


def test_an_impossible_outcome_is_infinitely_far():
    law = {"a": 0.5, "b": 0.5}
    assert walks.chi_square_z(Counter(a=500, b=499, c=1), law, 1000) == math.inf
    assert abs(walks.chi_square_z(Counter(a=510, b=490), law, 1000)) < 1
    assert walks.chi_square_z(Counter(a=700, b=300), law, 1000) > 20
