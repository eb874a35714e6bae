# SPDX-License-Identifier: Apache-2.0
"""Without DDTREE: no speculation equals transformers, and DFLASH is what it was."""

import pytest
from support.trees import read_steps

pytestmark = pytest.mark.engine


def test_prompts_are_ragged_and_of_useful_lengths(prompts):
    lengths = sorted(map(len, prompts))
    assert len(set(lengths)) >= 6
    assert lengths[0] == 1 and lengths[-1] > 64


@pytest.mark.parametrize("algorithm", ["plain", "dflash"])
@pytest.mark.parametrize("size", ["batch", "single"])
def test_tokens_equal_transformers(request, algorithm, size, reference, prompts, expected):
    """Both baselines are exact, alone and in a batch, so that DDTREE may be held to them."""
    baseline = request.getfixturevalue(algorithm)[0]
    for output, prompt, tokens in zip(getattr(baseline, size), prompts, expected, strict=True):
        reference.assert_same(output["output_ids"], prompt, tokens)


@pytest.mark.parametrize("algorithm", ["plain", "dflash"])
def test_all_slots_are_free_afterwards(request, algorithm):
    """Holds for the baselines too: the count itself is right."""
    request.getfixturevalue(algorithm)[0].pool.assert_all_free()


def test_dflash_accepts_what_an_independent_chain_accepts(
    dflash, reference, drafter, prompts, expected
):
    """DFLASH unchanged: every step's accept count equals that of drafter and target in PyTorch."""
    baseline, log, _ = dflash
    steps = list(read_steps(log))
    for i, (prompt, tokens) in enumerate(zip(prompts, expected, strict=True)):
        accepts = reference.chain_accepts(drafter, prompt, tokens)
        assert [s.accepted for s in steps if s.rid == f"p{i}"] == accepts
        assert [s.accepted for s in steps if s.rid == f"s{i}"] == accepts
        assert baseline.batch[i]["meta_info"]["spec_verify_ct"] == len(accepts)
        assert baseline.single[i]["meta_info"]["spec_verify_ct"] == len(accepts)


def test_dflash_verifies_no_tree(dflash):
    """DFLASH does not take DDTREE's way."""
    assert all(entry["tree"] is None for entry in dflash[1])


def test_drafter_rows_of_dflash_equal_transformers(dflash, reference, drafter, prompts, expected):
    """The rows that DDTREE's are compared with are right themselves."""
    rows = dflash[2]
    for i, (prompt, tokens) in enumerate(zip(prompts, expected, strict=True)):
        features = reference.features(drafter, (prompt + tokens)[:-1])
        for position, row in enumerate(features):
            assert (rows[f"p{i}", position] - row).abs().max() < 5e-5
