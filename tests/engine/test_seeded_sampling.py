# SPDX-License-Identifier: Apache-2.0
"""A seeded request gets the same tokens with DDTREE as without speculation.

The token at a position depends on the seed, the position and the logits: whatever the drafter
proposes, whatever the budget, and whoever shares the batch.
"""

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.since("0070")]

NEW_TOKENS = 100
PARAMETERS = [
    {"temperature": 0.7},
    {"temperature": 1.0, "top_k": 12},
    {"temperature": 1.3, "top_p": 0.9},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 2.0, "top_k": 30, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 0.3},
]
SEEDS = [1, 42, 2**40 + 3]
GREEDY = {"temperature": 0}
DETERMINISTIC = {"enable_deterministic_inference": True}


def requests() -> list[dict]:
    """One set of parameters for each seed, in an order that mixes them; greedy ones between."""
    mixed = [p | {"sampling_seed": seed} for seed in SEEDS for p in PARAMETERS]
    return mixed + [GREEDY, GREEDY]


def answer(engine, prompts, params: list[dict]) -> list[list[int]]:
    """One batch: the i-th parameters with the i-th prompt, going round."""
    outputs = engine.generate(
        input_ids=[prompts[i % len(prompts)] for i in range(len(params))],
        sampling_params=[p | {"max_new_tokens": NEW_TOKENS, "ignore_eos": True} for p in params],
    )
    return [output["output_ids"] for output in outputs]


@pytest.fixture(scope="module")
def without(host, trained, prompts):
    """Answers of the engine without speculation: in one batch, and alone."""
    arguments = {"model_path": str(trained.target), "disable_overlap_schedule": True}
    with host.engine(**arguments, **DETERMINISTIC) as engine:
        together = answer(engine, prompts, requests())
        alone = [
            answer(engine, [prompts[i % len(prompts)]], [params])[0]
            for i, params in enumerate(requests())
        ]
    return together, alone


@pytest.fixture(
    scope="module",
    params=[("trained", 31), ("trained", 7), ("untrained", 7)],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def with_ddtree(request, host, without, prompts):
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
        engine.pool_state().assert_all_free()
    return together, alone, unseeded


def test_the_engine_without_speculation_does_not_look_at_neighbours(without):
    """Upstream's does: a filtered neighbour changes the noise of an unfiltered request."""
    together, alone = without
    assert together == alone


def test_seeded_tokens_are_those_without_speculation(with_ddtree, without):
    """6 sets of parameters, 3 seeds, 100 tokens, greedy requests in the same batch."""
    together, alone, _ = with_ddtree
    assert together == without[0]
    assert alone == without[1][:4]


def test_seeds_and_parameters_matter(without):
    """So that the identity above is not one of equal answers."""
    answers = [tuple(tokens) for tokens in without[0]]
    assert len(set(answers)) == len(answers)
