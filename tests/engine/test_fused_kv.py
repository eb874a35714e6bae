# SPDX-License-Identifier: Apache-2.0
"""On CUDA the drafter's keys are projected, rotated and stored by one Triton kernel.

Here it is interpreted. The drafter's KV never changes a token, only what is drafted: so the drafts
of every step are compared with those of the sequential append, to which the worker falls back.
"""

import pytest

pytestmark = pytest.mark.engine

NEW_TOKENS = 30


@pytest.fixture(scope="module")
def running(host, trained):
    arguments = trained.arguments("DDTREE", speculative_ddtree_budget=31)
    with host.engine({"SGLANG_DDTREE_PROBE_FUSED_KV": "1"}, **arguments) as engine:
        yield engine


def drafts(engine, prompts, expected) -> list[tuple]:
    """Drafted chain and accept count of every request and step; the text is transformers'."""
    outputs = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    assert [o["output_ids"] for o in outputs] == [tokens[:NEW_TOKENS] for tokens in expected]
    return [(s["rids"], s["chain"], s["accepted"]) for s in engine.steps()]


def test_drafts_are_those_of_the_sequential_append(engine, prompts, expected):
    prompts, expected = prompts[:3], expected[:3]
    fused = drafts(engine, prompts, expected)
    appended = engine.materialised()
    assert len(appended) == 1 + len(fused), "a prefill, and every step"
    assert sum(appended) >= sum(map(len, prompts))

    engine.flush_cache()
    engine.configure("fused_kv_misplaced")
    assert drafts(engine, prompts, expected) != fused, "keys at other positions must show"

    engine.flush_cache()
    engine.configure("fused_kv_fails")
    sequential = drafts(engine, prompts, expected)
    assert len(engine.materialised()) == 1, "after one failure it is not tried again"
    assert sequential == fused
    assert sum(sum(accepted) for _, _, accepted in fused) > len(fused)
