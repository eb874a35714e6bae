# SPDX-License-Identifier: Apache-2.0
"""A seeded request gets the same tokens with DDTREE as without speculation.

The token at a position depends on the seed, the position and the logits: whatever the drafter
proposes, whatever the budget, and whoever shares the batch.
"""

import pytest
from support.engine import EngineError
from support.seeded import DETERMINISTIC, answer, requests

pytestmark = [pytest.mark.engine, pytest.mark.since("0070")]


@pytest.fixture(
    scope="module",
    params=[("trained", 31), ("trained", 7), ("untrained", 7)],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def with_ddtree(request, host, seeded, prompts):
    """The same with a tree; and the 4 first requests alone."""
    name, budget = request.param
    pair = request.getfixturevalue(name)
    arguments = pair.arguments("DDTREE", speculative_ddtree_budget=budget)
    with host.engine(**arguments, **DETERMINISTIC) as engine:
        together = answer(engine, prompts, requests())
        alone = [
            answer(engine, [prompts[i]], [params])[0] for i, params in enumerate(requests()[:4])
        ]
        unseeded = answer(engine, prompts, [{"temperature": 1.0}] * 8)
        # A refused seed must not be in the prefill that the refused request still runs.
        for seed in (2**63, "7", 1.5):
            with pytest.raises(EngineError, match="sampling_seed must be a 64-bit integer"):
                answer(engine, prompts[:1], [{"temperature": 1.0, "sampling_seed": seed}])
        engine.pool_state().assert_all_free()
    return together, alone, unseeded


def test_the_engine_without_speculation_does_not_look_at_neighbours(seeded):
    """Upstream's does: a filtered neighbour changes the noise of an unfiltered request."""
    together, alone = seeded
    assert together == alone


def test_seeded_tokens_are_those_without_speculation(with_ddtree, seeded):
    """6 sets of parameters, 3 seeds, 100 tokens, greedy requests in the same batch."""
    together, alone, _ = with_ddtree
    assert together == seeded[0]
    assert alone == seeded[1][:4]


def test_seeds_and_parameters_matter(seeded):
    """So that the identity above is not one of equal answers."""
    answers = [tuple(tokens) for tokens in seeded[0]]
    assert len(set(answers)) == len(answers)
