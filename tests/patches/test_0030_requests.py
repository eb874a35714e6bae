# SPDX-License-Identifier: Apache-2.0
"""Which requests a DDTREE server takes: each parameter it cannot serve is refused by name."""

import pytest
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.ddtree_request import validate_ddtree_request


def make_request(sampling=None, **request) -> Req:
    params = SamplingParams(**({"temperature": 0} | (sampling or {})))
    params.normalize(None)
    return Req("r", "", [1, 2, 3], params, eos_token_ids={9}, vocab_size=10, **request)


REFUSED_SAMPLING = {
    "frequency_penalty": {"frequency_penalty": 0.5},
    "presence_penalty": {"presence_penalty": -0.5},
    "repetition_penalty": {"repetition_penalty": 1.3},
    "min_new_tokens": {"min_new_tokens": 2},
    "logit_bias": {"logit_bias": {"3": -100.0}},
    "json_schema": {"json_schema": '{"type": "object"}'},
    "regex": {"regex": "a+"},
    "ebnf": {"ebnf": 'root ::= "a"'},
    "structural_tag": {"structural_tag": "{}"},
}
REFUSED_REQUEST = {
    "custom_logit_processor": {"custom_logit_processor": "serialised"},
    "return_logprob": {"return_logprob": True},
    "return_hidden_states": {"return_hidden_states": True},
    "input_embeds": {"input_embeds": [[0.0]]},
    "lora_path": {"lora_id": "adapter"},
}


@pytest.mark.parametrize("name", REFUSED_SAMPLING)
def test_a_sampling_parameter_alone_is_refused(name):
    error = validate_ddtree_request(make_request(REFUSED_SAMPLING[name]))
    assert_names(error, name, REFUSED_SAMPLING | REFUSED_REQUEST)


@pytest.mark.parametrize("name", REFUSED_REQUEST)
def test_a_request_field_alone_is_refused(name):
    error = validate_ddtree_request(make_request(**REFUSED_REQUEST[name]))
    assert_names(error, name, REFUSED_SAMPLING | REFUSED_REQUEST)


def assert_names(error, name, all_names) -> None:
    """One line that names the parameter, and no other one."""
    assert [known for known in all_names if known in error] == [name]
    assert "DDTREE" in error
    assert "\n" not in error


@pytest.mark.parametrize(
    "sampling",
    [
        {},
        {"temperature": 1e-7},  # SamplingParams' own limit of what is greedy
        {"temperature": 1.5, "top_k": 1},
        {"top_p": 0.3, "min_p": 0.2},  # filters keep the arg-max
        {"sampling_seed": 3},
        {"max_new_tokens": 1},
        {"stop": ["x"], "stop_token_ids": [4], "ignore_eos": True},
        {"stop_regex": "a+"},
        {"n": 2},
        {"stream_interval": 3},
        {"logit_bias": {}},
        {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0},
    ],
)
def test_greedy_requests_pass(sampling):
    assert validate_ddtree_request(make_request(sampling)) is None


@pytest.mark.parametrize("token_id", [10, -1, 10**7, "3", 1.5, None])
def test_a_token_outside_the_vocabulary_is_refused(token_id):
    """It would end the scheduler, and on CUDA the device's context."""
    request = make_request()
    request.origin_input_ids = [0, 9, token_id]
    error = validate_ddtree_request(request)
    assert error.startswith("input_ids must be whole numbers from 0 to 9, ")
    assert str(token_id) in error and "\n" not in error


def test_a_streamed_reasoning_request_passes():
    assert validate_ddtree_request(make_request(stream=True, require_reasoning=True)) is None


def test_several_refused_parameters():
    """One of them is named, and taking it out names the next: no refusal hides behind another."""
    left = dict(REFUSED_SAMPLING)
    for _ in range(len(REFUSED_SAMPLING)):
        sampling = {key: value for part in left.values() for key, value in part.items()}
        error = validate_ddtree_request(make_request(sampling))
        (named,) = [name for name in left if name in error]
        del left[named]
    assert validate_ddtree_request(make_request()) is None


def test_a_long_value_is_cut():
    error = validate_ddtree_request(make_request({"json_schema": "x" * 10_000}))
    assert len(error) < 400
