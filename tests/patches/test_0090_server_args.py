# SPDX-License-Identifier: Apache-2.0
"""Tensor parallel servers: which start, and which are refused with the flag to change."""

from types import SimpleNamespace

import pytest
from server_models import Models
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.ddtree_tensor_parallel import (
    check_ddtree_draft_heads,
    check_ddtree_tensor_parallel,
)

FITTING = {
    "attn_cp_size": 1,
    "moe_dp_size": 1,
    "moe_dense_tp_size": None,
    "moe_a2a_backend": "none",
    "enable_attn_tp_input_scattered": False,
    "elastic_ep_backend": None,
}


def test_the_defaults_fit():
    """The fields exist in this release, with the defaults that a tree needs."""
    fields = ServerArgs.__dataclass_fields__
    assert {name: fields[name].default for name in FITTING} == FITTING
    check_ddtree_tensor_parallel(SimpleNamespace(tp_size=2, **FITTING))


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"attn_cp_size": 2}, "--attn-cp-size 2: expected 1"),
        ({"moe_dp_size": 2}, "--moe-dp-size 2: expected 1"),
        ({"moe_dense_tp_size": 1}, "--moe-dense-tp-size 1: expected None"),
        ({"moe_a2a_backend": "deepep"}, "--moe-a2a-backend deepep: expected none"),
        (
            {"enable_attn_tp_input_scattered": True},
            "--enable-attn-tp-input-scattered True: expected False",
        ),
        ({"elastic_ep_backend": "mooncake"}, "--elastic-ep-backend mooncake: expected None"),
    ],
)
def test_ranks_that_see_some_tokens_only_are_refused(changes, flag):
    with pytest.raises(ValueError, match=f"DDTREE does not support {flag}"):
        check_ddtree_tensor_parallel(SimpleNamespace(tp_size=2, **FITTING | changes))
    # With one rank there is nothing to spread, and such a flag changes nothing.
    check_ddtree_tensor_parallel(SimpleNamespace(tp_size=1, **FITTING | changes))


@pytest.mark.parametrize(
    ("tp_size", "heads", "kv_heads", "refused"),
    [
        (1, 7, 3, None),
        (2, 4, 2, None),
        (4, 8, 2, None),  # two ranks share a key-value head
        (2, 4, None, None),  # without the field there is one a head
        (2, 5, 5, "5 attention heads"),
        (4, 6, 2, "6 attention heads"),
        (4, 12, 6, "6 key-value heads"),
        (4, 12, 3, "3 key-value heads"),
    ],
)
def test_drafters_whose_heads_cannot_be_shared_out(tp_size, heads, kv_heads, refused):
    config = SimpleNamespace(num_attention_heads=heads, num_key_value_heads=kv_heads)
    if refused is None:
        check_ddtree_draft_heads(tp_size, config, "DRAFTER")
        return
    message = f"The drafter DRAFTER has {refused}, which --tp-size {tp_size}"
    with pytest.raises(ValueError, match=message):
        check_ddtree_draft_heads(tp_size, config, "DRAFTER")


def test_a_server_of_two_ranks_starts(tmp_path):
    args = Models(tmp_path).server_args(tp_size=2, speculative_ddtree_budget=9)
    assert (args.tp_size, args.speculative_num_draft_tokens) == (2, 10)


@pytest.mark.parametrize(
    ("how", "flag"),
    [
        ({"moe_dense_tp_size": 1}, "--moe-dense-tp-size 1"),
        ({"draft": {"num_attention_heads": 3, "num_key_value_heads": 3}}, "--tp-size 2"),
    ],
)
def test_a_server_of_two_ranks_is_refused(tmp_path, how, flag):
    with pytest.raises(ValueError, match=flag) as error:
        Models(tmp_path).server_args(tp_size=2, **how)
    assert "\n" not in str(error.value)
