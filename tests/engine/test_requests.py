# SPDX-License-Identifier: Apache-2.0
"""What requests ask for and how they come and go, with the trained drafter and budget 31."""

import pytest
from support.cases import NEW_TOKENS, ending
from support.engine import EngineError, Request
from support.processors import Unchanged, serialise
from support.trees import read_steps

pytestmark = pytest.mark.engine

THROUGH = {"ignore_eos": True}


@pytest.fixture(scope="module")
def running(host, trained, plain):
    # `plain` is asked for here, so that its engine has ended before this one starts.
    # The two features are switched on so that it is DDTREE that refuses them.
    arguments = trained.arguments(
        "DDTREE",
        speculative_ddtree_budget=31,
        enable_custom_logit_processor=True,
        enable_return_hidden_states=True,
    )
    with host.engine(**arguments) as engine:
        yield engine


def test_requests_that_end_early(engine, plain, stopping, prompts, expected):
    """Stop tokens, stop strings, end of text and 1 to 3 tokens: as without speculation."""
    endings = plain[1]
    reasons = set()
    for name, (prompt, params) in stopping.items():
        assert engine.flush_cache()
        answer = engine.generate(
            input_ids=prompt, sampling_params={"temperature": 0} | params, rid=name
        )
        assert ending(answer) == endings[name], name
        reasons.add(answer["meta_info"]["finish_reason"]["type"])
        # Nothing after the stop stays in the cache; the last token has no KV yet.
        cached = len(prompt) + answer["meta_info"]["completion_tokens"] - 1
        assert engine.pool_state().cached == cached, name
    assert reasons == {"stop", "length"}
    # Some are cut in the middle of what their last step would have accepted.
    whole = {name: ids + expected[prompts.index(ids)] for name, (ids, _) in stopping.items()}
    last_steps = {step.rid: step for step in read_steps(engine.steps())}.values()
    assert any(s.accepted < s.tree_accepts(whole[s.rid]) for s in last_steps)


def test_requests_that_end_early_in_one_batch(engine, plain, stopping):
    """The same requests at once, so that each ends while others go on."""
    requests = [Request(ids, params, rid=name) for name, (ids, params) in stopping.items()]
    for request, answer in zip(requests, engine.run(requests), strict=True):
        assert ending(answer) == plain[1][request.rid], request.rid


def test_a_batch_that_shrinks(engine, reference, prompts, expected):
    """Requests of one batch end one after another."""
    lengths = [1, 2, 23, 50, 77, 110, 160, NEW_TOKENS]
    requests = [
        Request(prompt, THROUGH | {"max_new_tokens": n}, rid=f"r{n}")
        for prompt, n in zip(prompts, lengths, strict=True)
    ]
    answers = engine.run(requests)
    for answer, prompt, tokens, n in zip(answers, prompts, expected, lengths, strict=True):
        reference.assert_same(answer["output_ids"], prompt, tokens[:n])
    sizes = [s.batch_size for s in read_steps(engine.steps())]
    assert {1, 2, 3, 4, 5} <= set(sizes)


def test_requests_that_arrive_in_mid_decode(engine, reference, prompts, expected):
    """A batch that grows and shrinks: nobody's tokens change, old or new."""
    requests = [
        Request(prompts[0], THROUGH | {"max_new_tokens": NEW_TOKENS}, rid="first"),
        Request(prompts[1], THROUGH | {"max_new_tokens": 60}, rid="second", after=(0, 20)),
        Request(prompts[6], THROUGH | {"max_new_tokens": 25}, rid="third", after=(1, 10)),
        Request(prompts[3], THROUGH | {"max_new_tokens": 40}, rid="fourth", after=(2, 25)),
    ]
    for request, answer in zip(requests, engine.run(requests), strict=True):
        n = request.sampling_params["max_new_tokens"]
        tokens = expected[prompts.index(request.input_ids)][:n]
        reference.assert_same(answer["output_ids"], request.input_ids, tokens)
    # They did come and go while the first was being decoded.
    sizes = [s.batch_size for s in read_steps(engine.steps()) if s.rid == "first"]
    assert sizes[0] == 1 and max(sizes) >= 2
    late = [s.rid for s in read_steps(engine.steps()) if s.batch_size > 1]
    assert {"first", "second", "third"} <= set(late)


def test_streaming_equals_non_streaming(engine, prompts, expected):
    """Every chunk is the answer so far, and a step's tokens come in one chunk."""
    requests = [
        Request(prompt, THROUGH | {"max_new_tokens": 100}, rid=f"r{i}")
        for i, prompt in enumerate(prompts[:3])
    ]
    for answer, tokens in zip(engine.run(requests), expected, strict=False):
        chunks = answer["chunks"]
        assert answer["output_ids"] == tokens[:100]
        assert len(chunks) > 3
        assert all(chunk == tokens[: len(chunk)] for chunk in chunks)
        assert [len(c) for c in chunks] == sorted(len(c) for c in chunks)


def test_several_answers_to_one_prompt(engine, prompts, expected):
    """n > 1 at temperature 0: the same answer n times."""
    params = {"temperature": 0, "n": 3, "ignore_eos": True, "max_new_tokens": 60}
    answers = engine.generate(input_ids=prompts[2], sampling_params=params)
    assert [answer["output_ids"] for answer in answers] == [expected[2][:60]] * 3


def test_a_client_that_aborts_in_mid_answer(engine, reference, prompts, expected):
    """Its slots come back, its tokens so far are right, and nobody else notices."""
    requests = [
        Request(prompts[0], THROUGH | {"max_new_tokens": 1500}, rid="aborted", abort_after=40),
        Request(prompts[1], THROUGH | {"max_new_tokens": NEW_TOKENS}, rid="stays"),
    ]
    aborted, stays = engine.run(requests)
    assert aborted["meta_info"]["finish_reason"]["type"] == "abort"
    tokens = aborted["output_ids"]
    assert 40 <= len(tokens) < 1500
    assert tokens[:NEW_TOKENS] == expected[0][: len(tokens)]
    reference.assert_same(stays["output_ids"], prompts[1], expected[1])


def test_top_k_1_is_greedy(engine, prompts, expected):
    """A temperature changes nothing where one token is left."""
    params = {"temperature": 1.5, "top_k": 1, "ignore_eos": True, "max_new_tokens": 40}
    answer = engine.generate(input_ids=prompts[0], sampling_params=params)
    assert answer["output_ids"] == expected[0][:40]


REFUSED_SAMPLING = {
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "repetition_penalty": 1.3,
    "min_new_tokens": 5,
    "logit_bias": {"5": -100},
    "json_schema": '{"type": "object"}',
    "regex": "[a-z]+",
    "ebnf": 'root ::= "a"',
    "structural_tag": '{"structures": [], "triggers": []}',
}
REFUSED_ARGUMENTS = {
    "return_logprob": True,
    "return_hidden_states": True,
    "custom_logit_processor": serialise(Unchanged),
}


@pytest.mark.parametrize("name", [*REFUSED_SAMPLING, *REFUSED_ARGUMENTS])
def test_an_unsupported_parameter_is_refused_by_name(engine, name, prompts, expected):
    """One clear line (a ValueError here, status 400 over HTTP); then it serves on."""
    params = {"temperature": 0, "max_new_tokens": 20, "ignore_eos": True}
    arguments = {"input_ids": prompts[0], "sampling_params": params}
    if name in REFUSED_SAMPLING:
        refused = arguments | {"sampling_params": params | {name: REFUSED_SAMPLING[name]}}
    else:
        refused = arguments | {name: REFUSED_ARGUMENTS[name]}
    with pytest.raises(EngineError) as error:
        engine.generate(**refused)
    assert error.value.kind == "ValueError"
    message = str(error.value)
    assert "DDTREE" in message and name in message and "\n" not in message
    assert engine.generate(**arguments)["output_ids"] == expected[0][:20]


def test_a_token_outside_the_vocabulary_is_refused(engine, prompts, expected):
    params = {"temperature": 0, "max_new_tokens": 20, "ignore_eos": True}
    for token_id in (10**7, -1):
        with pytest.raises(EngineError, match="input_ids must be whole numbers") as error:
            engine.generate(input_ids=[*prompts[0], token_id], sampling_params=params)
        assert error.value.kind == "ValueError"
    assert (
        engine.generate(input_ids=prompts[0], sampling_params=params)["output_ids"]
        == (expected[0][:20])
    )


def test_refused_requests_share_a_prefill_with_good_ones(engine, prompts, expected):
    """A refused request that samples runs in the prefill of its neighbours and no further."""
    bad = {"temperature": 0.8, "min_new_tokens": 5}
    requests = []
    for i in range(4):
        requests.append(Request(prompts[i], THROUGH | {"max_new_tokens": 40}, rid=f"good{i}"))
        requests.append(Request(prompts[i], bad, rid=f"bad{i}"))
    outputs = engine.run(requests)
    for i, good in enumerate(outputs[::2]):
        assert good["output_ids"] == expected[i][:40]
    for bad_output in outputs[1::2]:
        assert bad_output["meta_info"]["finish_reason"]["status_code"] == 400


def test_a_refused_request_disturbs_no_other(engine, prompts, expected):
    """It comes in mid-decode and is refused as in an idle server."""
    requests = [
        Request(prompts[0], THROUGH | {"max_new_tokens": NEW_TOKENS}, rid="good"),
        Request(prompts[1], {"min_new_tokens": 5}, rid="bad", after=(0, 20)),
    ]
    good, bad = engine.run(requests)
    assert good["output_ids"] == expected[0]
    reason = bad["meta_info"]["finish_reason"]
    assert reason["type"] == "abort" and reason["status_code"] == 400
    assert {s.rid for s in read_steps(engine.steps())} == {"good"}
