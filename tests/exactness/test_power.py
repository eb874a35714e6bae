# SPDX-License-Identifier: Apache-2.0
"""The distribution test rejects samplers that are nearly right.

Each mutant is a mistake that a tree sampler has been shipped with. A mutant that passes is
a defect of the test: the comparison, the sample size and the trees are those of
test_tree_distribution.py.
"""

from __future__ import annotations

import pytest
import torch
from comparison import compare
from sampled_trees import Parameters, random_case
from sglang.srt.speculative import ddtree_sampling, dflash_info
from test_tree_distribution import NUM_SAMPLES

PARAMETERS = Parameters(1.5, None, 0.8)


def accept_by_min_p_over_q(case, monkeypatch):
    """Accept each child with min(1, p / q), q the drafter's marginal."""
    q = case.draft_logprobs.exp()
    depths = case.tree.depths[0]
    node_q = q[(depths - 1).clamp(min=0), case.tree.token_ids[0]]

    def match(tree, probs, support, coins):
        child_probs, _, _ = ddtree_sampling.children_mass(tree, probs, support)
        hit = torch.rand_like(child_probs) <= child_probs / node_q
        siblings = tree.parents.unsqueeze(2) == tree.parents.unsqueeze(1)
        earlier = siblings.tril(-1)
        return hit & (tree.parents >= 0) & ~(earlier & hit.unsqueeze(1)).any(dim=2)

    monkeypatch.setattr(ddtree_sampling, "match_children_by_coin", match)


def one_coin_for_accept_and_bonus(case, monkeypatch):
    """The coin that rejected the children draws the bonus too."""
    match, draw = ddtree_sampling.match_children_by_coin, ddtree_sampling.draw_bonus
    kept = {}

    def match_and_keep(tree, probs, support, coins):
        kept["coins"] = coins
        return match(tree, probs, support, coins)

    def draw_with_kept(tree, probs, last_nodes, coins):
        coins = kept["coins"].gather(1, last_nodes.unsqueeze(1)).squeeze(1)
        return draw(tree, probs, last_nodes, coins)

    monkeypatch.setattr(ddtree_sampling, "match_children_by_coin", match_and_keep)
    monkeypatch.setattr(ddtree_sampling, "draw_bonus", draw_with_kept)


def _change_parameters(monkeypatch, change):
    class Changed(ddtree_sampling.RowSamplingParams):
        def __init__(self, *args):
            super().__init__(*args)
            change(self)

    monkeypatch.setattr(dflash_info, "RowSamplingParams", Changed)


def temperature_ignored(case, monkeypatch):
    """Every row is sampled at temperature 1."""
    _change_parameters(monkeypatch, lambda params: params.temperatures.fill_(1.0))


def top_p_ignored(case, monkeypatch):
    """Every row is sampled with top_p 1."""
    _change_parameters(monkeypatch, lambda params: params.top_ps.fill_(1.0))


def bonus_from_the_unfiltered_distribution(case, monkeypatch):
    """The walk reads the filtered distribution, the bonus the one before top-p."""
    draw = ddtree_sampling.draw_bonus
    unfiltered = torch.softmax(case.logits / PARAMETERS.temperature, dim=-1)

    def draw_unfiltered(tree, probs, last_nodes, coins):
        return draw(tree, unfiltered.expand_as(probs), last_nodes, coins)

    monkeypatch.setattr(ddtree_sampling, "draw_bonus", draw_unfiltered)


def siblings_without_removing_rejected_mass(case, monkeypatch):
    """Each sibling gets a coin of its own, against its probability as it stands."""

    def match(tree, probs, support, coins):
        child_probs, _, _ = ddtree_sampling.children_mass(tree, probs, support)
        hit = torch.rand_like(child_probs) <= child_probs
        siblings = tree.parents.unsqueeze(2) == tree.parents.unsqueeze(1)
        return hit & ~(siblings.tril(-1) & hit.unsqueeze(1)).any(dim=2)

    monkeypatch.setattr(ddtree_sampling, "match_children_by_coin", match)


MUTANTS = (
    accept_by_min_p_over_q,
    one_coin_for_accept_and_bonus,
    temperature_ignored,
    top_p_ignored,
    bonus_from_the_unfiltered_distribution,
    siblings_without_removing_rejected_mass,
)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutant_is_rejected(mutant, seed, monkeypatch):
    case = random_case(seed, budget=12)
    mutant(case, monkeypatch)
    result = compare(case.sample(PARAMETERS, NUM_SAMPLES), case.exact(PARAMETERS))
    assert not result.agrees(), result


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_real_sampler_passes_the_same_comparison(seed):
    case = random_case(seed, budget=12)
    result = compare(case.sample(PARAMETERS, NUM_SAMPLES), case.exact(PARAMETERS))
    assert result.agrees(), result
