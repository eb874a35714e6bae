# SPDX-License-Identifier: Apache-2.0
"""Targets with multi-head latent attention: which attention backends may verify their trees."""

import pytest
from server_models import DEEPSEEK, Models


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


def test_triton_serves_them(models):
    args = models.server_args(target=DEEPSEEK, attention_backend="triton")
    assert args.use_mla_backend()
    assert args.speculative_num_draft_tokens == args.speculative_ddtree_budget + 1


@pytest.mark.parametrize(
    ("backends", "found"),
    [
        ({"attention_backend": "torch_native"}, "torch_native"),
        ({"attention_backend": "flashinfer", "device": "cuda"}, "flashinfer"),
        (
            {"attention_backend": "triton", "prefill_attention_backend": "torch_native"},
            "torch_native and triton",
        ),
    ],
)
def test_every_other_backend_is_refused(models, backends, found):
    with pytest.raises(ValueError, match=f"--attention-backend triton only, got {found}: pass"):
        models.server_args(target=DEEPSEEK, **backends)


def test_pages_of_one_token_only(models):
    with pytest.raises(ValueError, match="--page-size 16: expected 1"):
        models.server_args(target=DEEPSEEK, attention_backend="triton", page_size=16)


def test_other_targets_keep_their_backends(models):
    assert models.server_args(attention_backend="torch_native")
