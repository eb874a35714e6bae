# SPDX-License-Identifier: Apache-2.0
"""The CPU form of `assign_req_to_token_pool` against the Triton kernel in the interpreter."""

import random
import sys

import pytest
import torch
from sglang.srt.speculative import spec_utils
from sglang.srt.speculative.spec_utils_cpu import assign_req_to_token_pool_cpu
from sglang.srt.utils import next_power_of_2

NUM_REQS, CONTEXT_LEN = 9, 120


def random_call(rng: random.Random, bs: int, lengths_from) -> dict[str, torch.Tensor]:
    lengths = [rng.choice(lengths_from) for _ in range(bs)]
    start = [rng.randint(0, CONTEXT_LEN - length) for length in lengths]
    return {
        "req_pool_indices": torch.tensor(rng.sample(range(NUM_REQS), bs)),
        "start_offset": torch.tensor(start),
        "end_offset": torch.tensor([s + n for s, n in zip(start, lengths, strict=True)]),
        "out_cache_loc": torch.tensor(
            rng.sample(range(1, 10_000), sum(lengths)), dtype=torch.int64
        ),
    }


def written_by_kernel(call: dict[str, torch.Tensor]) -> torch.Tensor:
    table = torch.full((NUM_REQS, CONTEXT_LEN), -7, dtype=torch.int32)
    bs = len(call["req_pool_indices"])
    spec_utils.assign_req_to_token_pool[(bs,)](
        call["req_pool_indices"],
        table,
        call["start_offset"],
        call["end_offset"],
        call["out_cache_loc"],
        table.shape[1],
        next_power_of_2(bs),
    )
    return table


def written_on_cpu(call: dict[str, torch.Tensor]) -> torch.Tensor:
    table = torch.full((NUM_REQS, CONTEXT_LEN), -7, dtype=torch.int32)
    assign_req_to_token_pool_cpu(
        call["req_pool_indices"],
        table,
        call["start_offset"],
        call["end_offset"],
        call["out_cache_loc"],
    )
    return table


@pytest.mark.parametrize("bs", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "lengths_from", [[8], [0], [0, 1, 3], [1, 31, 32, 33, 65]], ids=["equal", "none", "0", "ragged"]
)
def test_equals_the_kernel(bs, lengths_from):
    rng = random.Random(bs)
    for _ in range(5):
        call = random_call(rng, bs, lengths_from)
        assert torch.equal(written_on_cpu(call), written_by_kernel(call))


@pytest.mark.parametrize("name", ["req_pool_indices", "start_offset", "end_offset"])
def test_index_dtypes(name):
    """The engine passes int32 in places and int64 in others."""
    call = random_call(random.Random(0), 4, [0, 2, 5])
    as_int32 = call | {name: call[name].to(torch.int32)}
    assert torch.equal(written_on_cpu(as_int32), written_on_cpu(call))


def kernel_module():
    """The module in which the function looks its kernel up."""
    return sys.modules[spec_utils.assign_req_to_token_pool_func.__module__]


def test_the_engine_takes_the_cpu_form(monkeypatch):
    def no_kernel(*args):
        raise AssertionError("the interpreted kernel was called")

    monkeypatch.setattr(kernel_module(), "assign_req_to_token_pool", {(3,): no_kernel})
    call = random_call(random.Random(0), 3, [4])
    table = torch.full((NUM_REQS, CONTEXT_LEN), -7, dtype=torch.int32)
    spec_utils.assign_req_to_token_pool_func(
        call["req_pool_indices"],
        table,
        call["start_offset"],
        call["end_offset"],
        call["out_cache_loc"],
        3,
    )
    assert torch.equal(table, written_on_cpu(call))


def test_other_devices_keep_the_kernel(monkeypatch):
    calls = []
    monkeypatch.setattr(
        kernel_module(), "assign_req_to_token_pool", {(3,): lambda *args: calls.append(args)}
    )
    call = {
        name: tensor.to("meta") for name, tensor in random_call(random.Random(0), 3, [4]).items()
    }
    table = torch.empty((NUM_REQS, CONTEXT_LEN), dtype=torch.int32, device="meta")
    spec_utils.assign_req_to_token_pool_func(
        call["req_pool_indices"],
        table,
        call["start_offset"],
        call["end_offset"],
        call["out_cache_loc"],
        3,
    )
    assert len(calls) == 1
    assert calls[0][1] is table
