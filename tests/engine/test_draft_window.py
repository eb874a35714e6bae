# SPDX-License-Identifier: Apache-2.0
"""A draft window with a tree: the drafter sees the last 16 committed tokens."""

import pytest
from support.cases import NEW_TOKENS
from support.trees import read_steps
from support.upstream import draft_window

pytestmark = pytest.mark.engine

WINDOW = 16


@pytest.fixture(scope="module")
def served(host, trained, prompts):
    arguments = trained.arguments(
        "DDTREE",
        speculative_ddtree_budget=31,
        **draft_window(WINDOW),
    )
    with host.engine(**arguments) as engine:
        engine.configure()
        outputs = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
        return outputs, list(read_steps(engine.steps())), engine.pool_state()


def test_tokens_equal_transformers(served, reference, prompts, expected):
    for output, prompt, tokens in zip(served[0], prompts, expected, strict=True):
        reference.assert_same(output["output_ids"], prompt, tokens)


def test_the_drafter_sees_the_window(served):
    """The whole text while it is short, then the window; and its drafts are still of use."""
    steps = served[1]
    assert all(s.draft_len == min(s.prefix_len, WINDOW) for s in steps)
    assert sum(s.accepted for s in steps) > len(steps)


def test_every_step_accepts_the_longest_path(served, prompts, expected):
    texts = {f"p{i}": p + t for i, (p, t) in enumerate(zip(prompts, expected, strict=True))}
    assert all(s.accepted == s.tree_accepts(texts[s.rid]) for s in served[1])


def test_all_slots_are_free_afterwards(served):
    served[2].assert_all_free()
