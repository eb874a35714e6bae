# SPDX-License-Identifier: Apache-2.0
"""From 0070 on requests sample; a seed needs a server that uses it."""

from types import SimpleNamespace

import pytest
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative import ddtree_request


def refusal(monkeypatch, deterministic=False, **sampling):
    args = SimpleNamespace(enable_deterministic_inference=deterministic)
    monkeypatch.setattr(ddtree_request, "get_global_server_args", lambda: args)
    request = Req("r", "", [1, 2, 3], SamplingParams(**sampling), vocab_size=10)
    return ddtree_request.validate_ddtree_request(request)


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0.7},
        {"temperature": 1e-3, "top_k": 40},
        {"temperature": 2.0, "top_p": 0.9, "min_p": 0.05},
    ],
)
def test_a_request_may_sample(monkeypatch, sampling):
    assert refusal(monkeypatch, **sampling) is None


@pytest.mark.parametrize("min_p", [0.0, 0.2])
def test_a_seed_needs_a_deterministic_server(monkeypatch, min_p):
    """Upstream drops the seed without a word where the server was not started for it."""
    seeded = {"temperature": 0.7, "sampling_seed": 5, "min_p": min_p}
    error = refusal(monkeypatch, **seeded)
    assert "--enable-deterministic-inference" in error and "sampling_seed" in error
    assert "\n" not in error
    assert refusal(monkeypatch, deterministic=True, **seeded) is None


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**30, "7", 1.5, [1]])
def test_a_seed_that_is_no_64_bit_integer_is_refused(monkeypatch, seed):
    """No tensor holds it: building the batch would end the scheduler."""
    error = refusal(monkeypatch, deterministic=True, temperature=0.7, sampling_seed=seed)
    assert "64-bit" in error and str(seed) in error


def test_a_greedy_request_may_carry_a_seed(monkeypatch):
    """Clients send one with every request; a greedy answer does not depend on it."""
    assert refusal(monkeypatch, temperature=0, sampling_seed=5) is None


@pytest.mark.parametrize("name,value", [("frequency_penalty", 0.5), ("logit_bias", {"3": 1.0})])
def test_other_refusals_stand_with_a_temperature(monkeypatch, name, value):
    assert name in refusal(monkeypatch, temperature=0.7, **{name: value})


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": -0.1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_k": 0},
        {"top_k": -2},
        {"min_p": -0.1},
        {"min_p": 1.1},
    ],
    ids=lambda sampling: str(sampling),
)
def test_values_out_of_range_are_refused_in_upstreams_words(sampling):
    """SamplingParams.verify runs for every request before it reaches the scheduler."""
    (name,) = sampling
    with pytest.raises(ValueError, match=f"{name} must be"):
        SamplingParams(**sampling).verify(10)
