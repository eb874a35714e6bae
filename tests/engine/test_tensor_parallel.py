# SPDX-License-Identifier: Apache-2.0
"""Two tensor-parallel ranks on the CPU, with the trained drafter and budget 31: one engine.

The text is compared with engines and models of one rank; what the ranks did, with each other.
"""

import pytest
import torch
from support.cases import NEW_TOKENS
from support.seeded import DETERMINISTIC, answer, requests
from support.trees import read_steps

pytestmark = pytest.mark.engine

RANKS = (0, 1)


@pytest.fixture(scope="module")
def running(host, trained, seeded):  # which runs an engine of its own, before this one
    arguments = trained.arguments("DDTREE", speculative_ddtree_budget=31, tp_size=2)
    # Upstream wants a core a rank, or as many NUMA nodes as ranks.
    environment = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}
    with host.engine(environment, **arguments, **DETERMINISTIC) as engine:
        yield engine


@pytest.fixture
def steps(engine):
    """The log of both ranks once it has been asked for: what they must agree on is equal."""

    def read() -> list[dict]:
        first, second = ([dict(s) for s in engine.steps(rank)] for rank in RANKS)
        for log in (first, second):
            for step in log:
                step.pop("own")
        assert first == second
        assert first
        return first

    yield read
    for rank in RANKS:
        engine.pool_state(rank).assert_all_free()


def test_greedy_text_is_that_of_one_rank(engine, steps, reference, prompts, expected):
    """A batch of ragged prompts, 200 tokens; the head is split, the tree and path are not."""
    answers = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    for output, prompt, tokens in zip(answers, prompts, expected, strict=True):
        reference.assert_same(output["output_ids"], prompt, tokens)
    texts = {f"p{i}": p + e for i, (p, e) in enumerate(zip(prompts, expected, strict=True))}
    for step in read_steps(steps()):
        assert step.accepted == step.tree_accepts(texts[step.rid])


def test_one_request_alone(engine, steps, prompts, expected):
    for prompt, tokens in zip(prompts[:2], expected, strict=False):
        (output,) = engine.greedy([prompt], 60)
        assert output["output_ids"] == tokens[:60]
    assert steps()


def test_the_drafts_are_those_of_the_whole_head(
    engine, steps, reference, drafter, prompts, expected
):
    """The best token of each position is the plain PyTorch drafter's: either shard can win.

    Drafts may be nearly tied, and then rounding decides: a few may differ.
    """
    engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    log, mine, theirs = list(read_steps(steps())), [], []
    for i, (prompt, tokens) in enumerate(zip(prompts, expected, strict=True)):
        text = prompt + tokens
        features = reference.features(drafter, text)[None]
        for step in log:
            if step.rid == f"p{i}":
                mine += step.chain
                theirs += drafted(reference, drafter, features, text, step.prefix_len)
    half = reference.model.config.vocab_size // 2
    assert min(sum(t < half for t in theirs), sum(t >= half for t in theirs)) > 100
    different = sum(a != b for a, b in zip(mine, theirs, strict=True))
    assert different <= len(mine) // 200


@torch.no_grad()
def drafted(reference, drafter, features, text: list[int], position: int) -> list[int]:
    """The drafter's best token at each place after `position`, over the whole vocabulary."""
    embeds = reference.model.get_input_embeddings()(
        drafter.block_ids(torch.tensor([[text[position]]]))
    )
    hidden = drafter(features, embeds, torch.tensor([[position]]))[0, 0, 1:]
    return reference.model.lm_head(hidden).argmax(-1).tolist()


def test_seeded_text_is_that_of_one_rank_without_speculation(engine, steps, prompts, seeded):
    """6 sets of parameters, 3 seeds, 100 tokens, greedy requests in the same batch."""
    assert answer(engine, prompts, requests()) == seeded[0]
    assert steps()


def test_unseeded_requests(engine, steps, prompts):
    """Ranks draw from generators of their own; they stay on one text."""
    outputs = answer(engine, prompts, [{"temperature": 1.0}] * len(prompts))
    assert len({tuple(tokens) for tokens in outputs}) == len(prompts)
    assert sum(sum(step["accepted"]) for step in steps()) > 0


@pytest.mark.parametrize("kind", ["greedy", "seeded", "unseeded"])
def test_a_rank_that_strays_is_brought_back(engine, steps, prompts, expected, seeded, kind):
    """Rank 1 chooses otherwise at every step: without the broadcast it would commit that."""
    engine.configure(mode="rank_1_strays")
    if kind == "greedy":
        outputs = [o["output_ids"] for o in engine.greedy(prompts, 60)]
        assert outputs == [tokens[:60] for tokens in expected]
    elif kind == "seeded":
        assert answer(engine, prompts, requests()) == seeded[0]
    else:
        answer(engine, prompts, [{"temperature": 1.0}] * len(prompts))
    steps()
    first, second = (engine.steps(rank) for rank in RANKS)
    assert all(step["own"] == step["agreed"] for step in first)
    strayed = [own for step in second for own in step["own"]]
    assert strayed == [[0, 0]] * len(strayed)
    assert sum(step["own"] != step["agreed"] for step in second) > 0.9 * len(second)
