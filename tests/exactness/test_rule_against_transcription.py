# SPDX-License-Identifier: Apache-2.0
"""The batched rule equals a plain-Python transcription, walk by walk, on given coins."""

from __future__ import annotations

import pytest
import torch
from oracles.target_only import walk_by_coins
from sampled_trees import Parameters, random_case
from sglang.srt.speculative.ddtree_sampling import (
    RowSamplingParams,
    compute_target_probs_,
    draw_bonus,
    match_children_by_coin,
)
from sglang.srt.speculative.ddtree_verify import follow_ddtree_matches


def batched_walk(case, parameters, coins, bonus_coins):
    """One walk per row of `coins`, all over the same tree."""
    copies = coins.shape[0]
    verify_input = case.verify_input(copies)
    width = verify_input.draft_token_num
    params = RowSamplingParams(parameters.batch(copies), width)
    probs, support = compute_target_probs_(case.logits.repeat(copies, 1), params, True)
    probs, support = probs.view(copies, width, -1), support.view(copies, width)
    matches = match_children_by_coin(verify_input.tree, probs, support, coins)
    paths, lengths, last = follow_ddtree_matches(
        verify_input.tree, verify_input.ancestors, matches, case.max_depth
    )
    bonus = draw_bonus(verify_input.tree, probs, last, bonus_coins)
    return [
        (path[: n + 1], token)
        for path, n, token in zip(paths.tolist(), lengths.tolist(), bonus.tolist(), strict=True)
    ], probs[0].double().tolist()


@pytest.mark.parametrize(
    "parameters",
    [Parameters(), Parameters(0.3), Parameters(2.0, 3), Parameters(1.0, None, 0.7, 0.1)],
)
def test_equals_the_transcription(parameters):
    """Thousands of random trees, a few walks each, with the same coins on both sides."""
    generator = torch.Generator().manual_seed(5)
    for seed in range(600):
        case = random_case(seed, budget=1 + seed % 12, max_depth=1 + seed % 4)
        coins = 1.0 - torch.rand(4, len(case.parents), generator=generator)
        bonus_coins = 1.0 - torch.rand(4, generator=generator)
        walks, probs = batched_walk(case, parameters, coins, bonus_coins)
        for row, walk in enumerate(walks):
            expected = walk_by_coins(
                case.parents, case.token_ids, probs, coins[row].tolist(), float(bonus_coins[row])
            )
            assert walk == expected, (seed, row)


@pytest.mark.parametrize("coin", [1e-45, 2.0**-24, 1.0 - 2.0**-24, 1.0])
@pytest.mark.parametrize("top_k", [1, 2, 3, None])
def test_extreme_coins_draw_a_possible_token(coin, top_k):
    """The least and the greatest coin never choose a token of probability zero.

    With top-k 2 or 3 the children of a node often hold the whole support, where a rule that
    steps past all of them has nothing left to draw from.
    """
    parameters = Parameters(1.0, top_k)
    covered = 0
    for seed in range(60):
        case = random_case(seed, budget=12)
        width = len(case.parents)
        walks, probs = batched_walk(
            case, parameters, torch.full((1, width), coin), torch.full((1,), coin)
        )
        [(path, bonus)] = walks
        for parent, node in zip(path[:-1], path[1:], strict=True):
            assert probs[parent][case.token_ids[node]] > 0.0
        assert probs[path[-1]][bonus] > 0.0
        children = {case.token_ids[i] for i, p in enumerate(case.parents) if p == path[-1]}
        assert bonus not in children
        root_children = {case.token_ids[i] for i, p in enumerate(case.parents) if p == 0}
        covered += all(p == 0.0 or t in root_children for t, p in enumerate(probs[0]))
    assert covered > 0 or top_k is None
