# SPDX-License-Identifier: Apache-2.0
"""What a DDTREE server writes at a temperature has the target's own distribution.

The first three tokens of 20,000 continuations per engine, against their exact law from
transformers in float64. The first comes from the prefill, the others from verified trees.
"""

from __future__ import annotations

from collections import Counter

import pytest
from comparison import compare
from next_tokens import continuation_law, pool
from sampled_trees import Parameters

pytestmark = [pytest.mark.engine, pytest.mark.since("0070")]

LENGTH = 3
SAMPLES_PER_PROMPT = 4_000
# Prompts after which the target is torn, by their number among `candidate_prompts`, and what
# each is sampled with.
CASES = [
    (2, Parameters(temperature=1.0, top_k=8)),
    (9, Parameters(temperature=1.3, top_p=0.8)),
    (6, Parameters(temperature=2.0, top_k=6)),
    (14, Parameters(temperature=1.0, min_p=0.03)),
    (11, Parameters(temperature=1.0)),
]


@pytest.fixture(scope="module")
def torn_prompts(request, reference) -> list[list[int]]:
    from support.pair import candidate_prompts

    candidates = candidate_prompts(request.config.getoption("pair"), reference.tokenizer)
    return [candidates[number] for number, _ in CASES]


@pytest.fixture(
    scope="module",
    params=[("trained", 31), ("untrained", 7)],
    ids=lambda p: f"{p[0]}-{p[1]}",
)
def continuations(request, host, torn_prompts) -> list[Counter]:
    """Sampled continuations of each prompt; prompts and parameters share batches."""
    name, budget = request.param
    arguments = request.getfixturevalue(name).arguments(
        "DDTREE", speculative_ddtree_budget=budget, max_running_requests=64
    )
    counts = [Counter() for _ in CASES]
    each = 500
    with host.engine(**arguments, max_total_tokens=32768) as engine:
        for _ in range(SAMPLES_PER_PROMPT // each):
            order = [i for _ in range(each) for i in range(len(CASES))]
            outputs = engine.generate(
                input_ids=[torn_prompts[i] for i in order],
                sampling_params=[request_parameters(CASES[i][1]) for i in order],
            )
            for i, output in zip(order, outputs, strict=True):
                counts[i][tuple(output["output_ids"])] += 1
        engine.pool_state().assert_all_free()
    return counts


def request_parameters(parameters: Parameters) -> dict:
    return {
        "temperature": parameters.temperature,
        "top_k": parameters.top_k or -1,
        "top_p": parameters.top_p,
        "min_p": parameters.min_p,
        "max_new_tokens": LENGTH,
        "ignore_eos": True,
    }


@pytest.mark.parametrize("i", range(len(CASES)))
def test_first_tokens(continuations, reference, torn_prompts, i):
    law = continuation_law(reference.model64, torn_prompts[i], CASES[i][1], LENGTH)
    assert len(law) > 20
    result = compare(pool(continuations[i], law), law)
    assert result.agrees(), result


@pytest.mark.parametrize(
    "wrong",
    [Parameters(temperature=1.3), Parameters(temperature=1.0, top_p=0.8)],
    ids=["top_p ignored", "temperature ignored"],
)
def test_the_comparison_tells_other_laws_apart(continuations, reference, torn_prompts, wrong):
    """The sample of the second prompt is not that of a server that ignores a parameter."""
    law = continuation_law(reference.model64, torn_prompts[1], wrong, LENGTH)
    assert not compare(pool(continuations[1], law), law).agrees()
