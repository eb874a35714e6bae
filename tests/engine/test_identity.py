# SPDX-License-Identifier: Apache-2.0
"""Greedy DDTREE gives the target's own tokens, whatever the drafter and the budget.

One engine for each drafter and budget. The trained drafter's block is 8 wide, so its verify
widths 2, 8, 32 and 64 are less than, equal to and more than the block; the random drafter has
blocks of 4 and next to nothing of its drafts is accepted.
"""

from dataclasses import dataclass

import pytest
from support.cases import BATCH, NEW_TOKENS
from support.engine import PoolState
from support.trees import Step, read_steps

pytestmark = pytest.mark.engine

ENGINES = [("trained", 1), ("trained", 7), ("trained", 31), ("trained", 63)]
ENGINES += [("untrained", 7), ("untrained", 31)]


@dataclass(frozen=True)
class Served:
    """What one engine did with the prompts, as one batch (p0, p1, ...) and singly (s0, ...)."""

    drafter: str
    budget: int
    batch: list[dict]
    single: list[dict]
    steps: list[Step]
    before: PoolState
    after: PoolState
    after_flush: PoolState


@pytest.fixture(scope="module", params=ENGINES, ids=lambda p: f"{p[0]}-{p[1]}")
def served(request, host, plain, prompts) -> Served:
    # `plain` is asked for here, so that its engine has ended before this one starts.
    name, budget = request.param
    pair = request.getfixturevalue(name)
    arguments = pair.arguments("DDTREE", speculative_ddtree_budget=budget)
    with host.engine(**arguments) as engine:
        engine.configure()
        before = engine.pool_state()
        batch = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(BATCH)])
        assert engine.flush_cache()
        single = [engine.greedy([p], NEW_TOKENS, [f"s{i}"])[0] for i, p in enumerate(prompts)]
        steps, after = list(read_steps(engine.steps())), engine.pool_state()
        assert engine.flush_cache()
        return Served(name, budget, batch, single, steps, before, after, engine.pool_state())


@pytest.mark.parametrize("size", ["batch", "single"])
def test_tokens_equal_transformers(served, size, reference, prompts, expected):
    """Batch 8 (ragged) and batch 1, 200 tokens; the trees of one batch differ."""
    for output, prompt, tokens in zip(getattr(served, size), prompts, expected, strict=True):
        reference.assert_same(output["output_ids"], prompt, tokens)


@pytest.mark.parametrize("size", ["batch", "single"])
def test_tokens_equal_no_speculation(served, size, plain):
    outputs, baseline = getattr(served, size), getattr(plain[0], size)
    assert [o["output_ids"] for o in outputs] == [o["output_ids"] for o in baseline]
    assert [o["text"] for o in outputs] == [o["text"] for o in baseline]


def test_all_slots_are_free_afterwards(served):
    """At page size 1: after the last request, and after a flush, as at the start."""
    served.before.assert_all_free()
    served.after.assert_all_free()
    assert served.after_flush == served.before


def test_meta_info_counts_the_steps(served):
    """Accept length and verify count are reported as for DFLASH, and are the probe's own."""
    for rid, output in named(served):
        meta = output["meta_info"]
        steps = [s for s in served.steps if s.rid == rid]
        assert meta["spec_verify_ct"] == len(steps)
        assert meta["spec_accept_length"] * len(steps) == pytest.approx(NEW_TOKENS)
        # The first token comes from the prefill, each step adds what it accepts and one more.
        assert 1 + sum(s.accepted + 1 for s in steps) == meta["completion_tokens"] == NEW_TOKENS
        assert meta["spec_accepted_drafts"] == sum(s.accepted for s in steps)
        assert meta["spec_accept_histogram"] == histogram([s.accepted for s in steps])


def test_every_step_accepts_the_longest_path(served, prompts, expected):
    """Each step accepts exactly what a walk by parent pointers over its own tree accepts."""
    texts = texts_by_rid(prompts, expected)
    for step in served.steps:
        assert step.accepted == step.tree_accepts(texts[step.rid])
    assert {len(s.paths) for s in served.steps} == {served.budget + 1}


def test_a_tree_with_the_chain_accepts_no_less(served, prompts, expected):
    """Per step: what the tree holds of the drafter's chain is accepted if the chain's is."""
    texts = texts_by_rid(prompts, expected)
    for step in served.steps:
        assert step.accepted >= min(step.chain_accepts(texts[step.rid]), step.chain_held())
    # Where there is room for more than the chain, whole chains are held, and beaten.
    if served.drafter == "trained" and served.budget > 7:
        whole = [s for s in served.steps if s.holds_chain()]
        assert len(whole) > 20
        assert any(s.accepted > s.chain_accepts(texts[s.rid]) for s in whole)


def test_the_trained_drafter_is_of_use_and_the_random_one_is_not(served):
    """So that identity is seen with long accepted paths and with none."""
    mean = sum(s.accepted for s in served.steps) / len(served.steps)
    if served.drafter == "untrained":
        assert mean < 0.5
    elif served.budget >= 7:
        assert mean > 1.5


def named(served: Served) -> list[tuple[str, dict]]:
    batch = [(f"p{i}", o) for i, o in enumerate(served.batch)]
    return batch + [(f"s{i}", o) for i, o in enumerate(served.single)]


def texts_by_rid(prompts, expected) -> dict[str, list[int]]:
    texts = [p + t for p, t in zip(prompts, expected, strict=True)]
    return {f"{kind}{i}": text for kind in "ps" for i, text in enumerate(texts)}


def histogram(values: list[int]) -> list[int]:
    return [values.count(value) for value in range(max(values) + 1)]
