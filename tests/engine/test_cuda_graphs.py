# SPDX-License-Identifier: Apache-2.0
"""DDTREE on captured graphs: SGLang's graph runner on a CPU, with the real Triton kernels.

A graph here is a recording of tensor operations and kernel launches, see probe/cpu_graphs.py:
its replay reads only what was copied into the captured buffers, as a CUDA graph's does. The
kernels run in Triton's interpreter. What a device may do otherwise (streams, the allocator's
graph pool, asynchrony) is not seen here.
"""

import pytest
from support.seeded import DETERMINISTIC, PARAMETERS, SEEDS

pytestmark = pytest.mark.engine

CAPTURED = [1, 4]
NEW_TOKENS = 10
GREEDY = {"temperature": 0}
# In deterministic mode the Triton backend runs another kernel, which masks the prefix as well.
KINDS = {"plain": {}, "deterministic": DETERMINISTIC}
plain = pytest.mark.parametrize("running", ["plain"], indirect=True)


@pytest.fixture(scope="module", params=KINDS)
def running(request, host, trained):
    with host.engine(
        {"SGLANG_DDTREE_PROBE_GRAPHS": "1"},
        **trained.arguments("DDTREE", speculative_ddtree_budget=7),
        **KINDS[request.param],
        attention_backend="triton",
        disable_cuda_graph=False,
        cuda_graph_bs=CAPTURED,
    ) as engine:
        engine.deterministic = request.param == "deterministic"
        yield engine


@pytest.fixture
def parameters(running, seeded) -> tuple[list[dict], list[list[int]]]:
    """A request each, and the tokens of the engine without speculation where it is seeded."""
    params = [GREEDY, GREEDY, GREEDY]
    if running.deterministic:
        params[1:] = [p | {"sampling_seed": SEEDS[0]} for p in PARAMETERS[1:3]]
    return params, [seeded[0][i] if p != GREEDY else None for i, p in enumerate(params)]


def answers(engine, prompts, mode=None, params=GREEDY, tokens=NEW_TOKENS) -> list[list[int]]:
    """Tokens of one batch in a mode of the probe."""
    assert engine.flush_cache()
    engine.configure(mode)
    rest = {"max_new_tokens": tokens, "ignore_eos": True}
    params = [p | rest for p in params] if isinstance(params, list) else params | rest
    outputs = engine.generate(input_ids=prompts, sampling_params=params)
    return [output["output_ids"] for output in outputs]


def test_tokens_are_those_without_speculation(engine, prompts, expected, parameters):
    """Three requests in the graph of four: greedy ones as in transformers, and seeded ones."""
    params, drawn = parameters
    texts = answers(engine, prompts[:3], params=params)
    wanted = [e if d is None else d for d, e in zip(drawn, expected, strict=False)]
    assert texts == [tokens[:NEW_TOKENS] for tokens in wanted]
    replays = engine.replays()
    # Each step replays the draft graph and the verify graph; requests can end apart.
    assert [replay["draft"] for replay in replays] == [True, False] * len(engine.steps())
    assert (3, 4) in {(replay["rows"], replay["captured_rows"]) for replay in replays}
    assert all(replay["finite"] for replay in replays)


@plain
def test_one_request_after_a_larger_batch(engine, prompts, expected):
    """In the graph of one; the buffers still hold what the batch before left."""
    answers(engine, prompts[1:3], tokens=4)
    assert answers(engine, prompts[:1]) == [expected[0][:NEW_TOKENS]]
    assert {replay["captured_rows"] for replay in engine.replays()} == {1}


@plain
def test_a_batch_beyond_the_captured_sizes_runs_eagerly(engine, prompts, expected):
    texts = answers(engine, prompts[:5], tokens=4)
    assert texts == [tokens[:4] for tokens in expected[:5]]
    assert engine.steps()
    assert all(replay["rows"] < 5 for replay in engine.replays())


@plain
@pytest.mark.parametrize("mode", ["mask_left", "positions_left"])
def test_what_is_not_copied_into_the_graph_is_missed(engine, prompts, expected, mode):
    """The mutants of the comparison with transformers."""
    assert answers(engine, prompts[:3], mode) != [tokens[:NEW_TOKENS] for tokens in expected[:3]]


def test_rows_without_a_mask_are_found(engine, prompts):
    """The mutant of the test for finite logits: only the kernel that masks the prefix shows it."""
    answers(engine, prompts[:3], "mask_unpadded", tokens=4)
    finite = all(replay["finite"] for replay in engine.replays())
    assert finite != engine.deterministic
