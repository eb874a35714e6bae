# SPDX-License-Identifier: Apache-2.0
"""A target with multi-head latent attention: DDTREE with the real Triton kernels, interpreted."""

import pytest
import torch
from support.mla import write_mla_target
from support.pair import Pair, write_random_drafter
from support.trees import read_steps

pytestmark = pytest.mark.engine

PROMPTS = [[11], [3, 4, 5, 6, 7, 8, 2, 9, 10]]
NEW_TOKENS = 16


@pytest.fixture(scope="module")
def mla(trained, tmp_path_factory) -> tuple[Pair, list[list[int]]]:
    """The pair, and transformers' continuation of each prompt."""
    path = tmp_path_factory.mktemp("mla")
    model = write_mla_target(path / "target", trained.target)
    write_random_drafter(path / "target", path / "draft")
    expected = []
    for prompt in PROMPTS:
        output = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=NEW_TOKENS,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        expected.append(output[0, len(prompt) :].tolist())
    return Pair(path / "target", path / "draft"), expected


@pytest.fixture(scope="module")
def running(host, mla):
    arguments = mla[0].arguments("DDTREE", speculative_ddtree_budget=15)
    with host.engine(**arguments, attention_backend="triton") as engine:
        yield engine


def test_tokens_equal_transformers(engine, mla):
    """As one batch, and again after a radix-cache hit."""
    texts = [o["output_ids"] for o in engine.greedy(PROMPTS, NEW_TOKENS, ["p0", "p1"])]
    assert texts == mla[1]
    steps = list(read_steps(engine.steps()))
    whole = {f"p{i}": p + t for i, (p, t) in enumerate(zip(PROMPTS, texts, strict=True))}
    assert all(step.accepted == step.tree_accepts(whole[step.rid]) for step in steps)
    # Some of what was accepted is off the chain: rows were kept that do not lie in a row.
    assert any(step.accepted > step.chain_accepts(whole[step.rid]) for step in steps)
    (again,) = engine.greedy([PROMPTS[1] + texts[1][:6]], NEW_TOKENS - 6)
    assert again["meta_info"]["cached_tokens"] > 0
    assert again["output_ids"] == texts[1][6:]


def test_the_kv_of_wrong_rows_is_seen(engine, mla):
    """The mutant of the comparison."""
    engine.configure("kv_of_wrong_rows")
    assert [o["output_ids"] for o in engine.greedy(PROMPTS, NEW_TOKENS)] != mla[1]
