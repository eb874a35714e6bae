# SPDX-License-Identifier: Apache-2.0
"""The memory pool, the radix cache and chunked prefill, with the trained drafter and budget 31.

One engine whose pool is far too small for its batch, and that prefills 16 tokens at a time.
"""

from pathlib import Path

import pytest
from support.cases import NEW_TOKENS
from support.trees import read_steps
from support.upstream import retractions

import sglang

pytestmark = pytest.mark.engine

CHUNK = 16


@pytest.fixture(scope="module")
def running(host, trained, prompts):
    # Room for the longest prompt and its answer, and for verify forwards of a few requests.
    pool = max(map(len, prompts)) + NEW_TOKENS + 4 * 32
    arguments = trained.arguments(
        "DDTREE",
        speculative_ddtree_budget=31,
        chunked_prefill_size=CHUNK,
        max_total_tokens=pool,
        # Admit requests as if their answers were short, so that the pool overflows later.
        schedule_conservativeness=0.1,
    )
    with host.engine(**arguments) as engine:
        yield engine


def test_the_server_says_what_it_runs(engine):
    """A patched server can be told from one without the series."""
    info = engine.server_info()
    assert (info["speculative_algorithm"], info["speculative_ddtree_budget"]) == ("DDTREE", 31)
    assert Path(sglang.__file__).parents[2].name == info["version"]


def test_a_pool_filled_to_the_brim(engine, reference, prompts, expected):
    """Requests are retracted, finish later, and every token is the same."""
    answers = engine.greedy(prompts, NEW_TOKENS)
    for answer, prompt, tokens in zip(answers, prompts, expected, strict=True):
        reference.assert_same(answer["output_ids"], prompt, tokens)
    assert sum(retractions(answer["meta_info"]) for answer in answers) > 0


def test_chunked_prefill(engine, reference, prompts, expected):
    """A prompt that is prefilled in many chunks."""
    i = max(range(len(prompts)), key=lambda i: len(prompts[i]))
    assert len(prompts[i]) > 4 * CHUNK
    (answer,) = engine.greedy([prompts[i]], NEW_TOKENS)
    reference.assert_same(answer["output_ids"], prompts[i], expected[i])


def test_a_warm_prefix_equals_a_cold_one(engine, prompts, expected):
    """Radix-cache hits: the same tokens, and no step more than on a cold prefix."""
    for prompt, tokens in zip(prompts[1:], expected[1:], strict=True):
        assert engine.flush_cache()
        (cold,) = engine.greedy([prompt], 60)
        (warm,) = engine.greedy([prompt], 60)
        assert cold["meta_info"]["cached_tokens"] == 0
        assert warm["meta_info"]["cached_tokens"] >= len(prompt) - 1
        assert cold["output_ids"] == warm["output_ids"] == tokens[:60]
        assert warm["meta_info"]["spec_verify_ct"] <= cold["meta_info"]["spec_verify_ct"]


def test_a_warm_answer_equals_a_cold_one(engine, prompts, expected):
    """A prefix that a tree committed: its KV and the drafter's are good for the next turn."""
    for prompt, tokens in zip(prompts[1:], expected[1:], strict=True):
        conversation = prompt + tokens[:50]
        assert engine.flush_cache()
        (cold,) = engine.greedy([conversation], 60)
        assert engine.flush_cache()
        engine.greedy([prompt], 50)
        (warm,) = engine.greedy([conversation], 60)
        assert warm["meta_info"]["cached_tokens"] == len(conversation) - 1
        assert cold["output_ids"] == warm["output_ids"] == tokens[50:110]
        assert warm["meta_info"]["spec_verify_ct"] <= cold["meta_info"]["spec_verify_ct"]


def test_two_requests_share_a_prefix(engine, prompts, expected):
    """The same prompts twice in one batch: the cache joins them, their trees stay apart."""
    answers = engine.greedy(prompts[:3] * 2, 60)
    assert [a["output_ids"] for a in answers] == [e[:60] for e in expected[:3]] * 2
    assert max(s.batch_size for s in read_steps(engine.steps())) > 3
