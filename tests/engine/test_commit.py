# SPDX-License-Identifier: Apache-2.0
"""The commit of an accepted path: what the drafter is fed, and mistakes that must be seen.

One engine with the trained drafter and a budget of block size - 1. The probe switches its modes
between requests (see `support/probe/modes.py`). SGLang's own leak check at idle is off here: it
would end the scheduler before the tests could show that they see the leak themselves.
"""

import json

import pytest
import torch
from support.cases import NEW_TOKENS
from support.reference import common_length
from support.trees import read_steps

pytestmark = pytest.mark.engine

# A verify forward of W rows and a decode or prefill differ by rounding, in values of size 1 to 10.
ROUNDING = 5e-5


@pytest.fixture(scope="module")
def budget(trained) -> int:
    """Nodes of a chain: the trained drafter's block size - 1."""
    return json.loads((trained.draft / "config.json").read_text())["block_size"] - 1


@pytest.fixture(scope="module")
def engine(host, trained, budget, dflash):
    # `dflash` is asked for here, so that its engine has ended before this one starts.
    arguments = trained.arguments("DDTREE", speculative_ddtree_budget=budget)
    strict_off = {"SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE": "0"}
    with host.engine(environment=strict_off, **arguments) as engine:
        yield engine


@pytest.fixture
def fresh(engine):
    """The engine with an empty cache, an empty log and no mode."""
    engine.flush_cache()
    engine.configure()
    yield engine
    engine.configure()
    engine.flush_cache()


@pytest.fixture(scope="module")
def right_rows(engine, prompts) -> dict[tuple[str, int], torch.Tensor]:
    """The rows that the drafter is fed for the prompts as one batch."""
    engine.flush_cache()
    engine.configure(record_hidden=True)
    engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    return engine.hidden_rows()


def test_the_drafter_is_fed_each_position_once(right_rows, prompts):
    """Every prompt and committed token but the last, whose row no forward has computed."""
    places = {
        (f"p{i}", position)
        for i, prompt in enumerate(prompts)
        for position in range(len(prompt) + NEW_TOKENS - 1)
    }
    assert set(right_rows) == places


def test_the_drafter_is_fed_what_dflash_feeds_it(right_rows, dflash):
    """Per (request, position): no token shows a wrong row, the accept length hardly does."""
    batch_rows = {place: row for place, row in dflash[2].items() if place[0].startswith("p")}
    assert set(right_rows) == set(batch_rows)
    assert greatest_difference(right_rows, batch_rows) < ROUNDING


def test_the_drafter_is_fed_the_targets_own_rows(right_rows, reference, drafter, prompts, expected):
    """The captured layers of transformers' forward over the committed text."""
    rows = {}
    for i, (prompt, tokens) in enumerate(zip(prompts, expected, strict=True)):
        features = reference.features(drafter, (prompt + tokens)[:-1])
        rows |= {(f"p{i}", position): row for position, row in enumerate(features)}
    assert greatest_difference(right_rows, rows) < ROUNDING


def test_a_spine_only_tree_is_dflash(fresh, dflash, prompts, expected, reference):
    """Budget = block size - 1 and one token a position: DFLASH's tokens, step for step."""
    fresh.configure(mode="spine_only")
    rids = [f"p{i}" for i in range(len(prompts))]
    outputs = fresh.greedy(prompts, NEW_TOKENS, rids)
    for output, prompt, tokens in zip(outputs, prompts, expected, strict=True):
        reference.assert_same(output["output_ids"], prompt, tokens)
    of_dflash = [s for s in read_steps(dflash[1]) if s.rid.startswith("p")]
    steps = list(read_steps(fresh.steps()))
    assert all(s.holds_chain() for s in steps)
    for i, rid in enumerate(rids):
        mine, theirs = ([s for s in log if s.rid == rid] for log in (steps, of_dflash))
        assert [(s.prefix_len, s.chain, s.accepted) for s in mine] == [
            (s.prefix_len, s.chain, s.accepted) for s in theirs
        ]
        verify_counts = (o["meta_info"]["spec_verify_ct"] for o in (outputs[i], dflash[0].batch[i]))
        assert list(verify_counts) == [len(theirs)] * 2


@pytest.mark.parametrize("mode", ["kv_of_wrong_rows", "positions_by_index"])
def test_mutants_that_identity_catches(fresh, mode, prompts, expected):
    """Some prompt's tokens differ, and soon: at the latest when half of them are out."""
    fresh.configure(mode=mode)
    outputs = fresh.greedy(prompts, NEW_TOKENS)
    equal = [common_length(o["output_ids"], e) for o, e in zip(outputs, expected, strict=True)]
    assert min(equal) < NEW_TOKENS // 2


def test_the_mutant_that_only_hidden_rows_catch(fresh, right_rows, prompts, expected):
    """The drafter is fed the rows of nodes that were not accepted: all tokens are right."""
    fresh.configure(mode="hidden_of_wrong_rows", record_hidden=True)
    outputs = fresh.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    assert [o["output_ids"] for o in outputs] == expected
    rows = fresh.hidden_rows()
    assert set(rows) == set(right_rows)
    assert greatest_difference(rows, right_rows) > 100 * ROUNDING


def test_the_mutant_that_the_slot_count_catches(fresh, prompts, expected):
    """One slot leaked a step: all tokens are right, and the count is off by the steps."""
    fresh.configure(mode="leak_a_slot")
    outputs = fresh.greedy(prompts[:2], 40)
    assert [o["output_ids"] for o in outputs] == [e[:40] for e in expected[:2]]
    pool, steps = fresh.pool_state(), len(fresh.steps())
    with pytest.raises(AssertionError, match="KV slots leaked"):
        pool.assert_all_free()
    assert pool.total - pool.available - pool.cached == steps


def greatest_difference(left: dict, right: dict) -> float:
    """The greatest absolute difference between rows of the same place."""
    return max((left[place] - row).abs().max().item() for place, row in right.items())
