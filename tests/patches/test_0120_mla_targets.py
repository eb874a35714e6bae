# SPDX-License-Identifier: Apache-2.0
"""Targets with multi-head latent attention: which attention backends may verify their trees."""

from types import SimpleNamespace

import pytest
import torch
from server_models import DEEPSEEK, Models
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
from sglang.srt.model_executor import pool_configurator
from sglang.srt.speculative import ddtree_draft
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


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


@pytest.mark.parametrize("tp_size", [1, 2, 8])
def test_the_drafters_kv_is_counted_as_it_is(models, monkeypatch, tp_size):
    """Bytes a token of the pool that a drafter of 2 layers and 4 key-value heads really gets."""
    args = models.server_args(
        target=DEEPSEEK, draft={"num_key_value_heads": 4}, attention_backend="triton"
    )
    monkeypatch.setattr(ddtree_draft, "get_attention_tp_size", lambda: tp_size)
    runner = SimpleNamespace(server_args=args, kv_cache_dtype=torch.bfloat16)
    tokens = 9
    pool = MHATokenToKVPool(
        size=tokens,
        page_size=1,
        dtype=torch.bfloat16,
        head_num=max(1, 4 // tp_size),
        head_dim=16,
        layer_num=2,
        device="cpu",
        enable_memory_saver=False,
    )
    # Slot 0 is padding, which every pool has beside its tokens.
    expected = sum(pool.get_kv_size_bytes()) / (tokens + 1)
    assert ddtree_draft.compute_ddtree_draft_cell_size(runner) == expected


def test_other_algorithms_are_counted_as_before():
    runner = SimpleNamespace(server_args=SimpleNamespace(speculative_ddtree_budget=None))
    assert ddtree_draft.compute_ddtree_draft_cell_size(runner) is None


@pytest.mark.parametrize("budget", [31, None])
def test_the_pool_is_sized_by_it(monkeypatch, budget):
    """A target of 2 layers of 24 latent values, bf16, and a drafter of 4 KiB a token."""
    monkeypatch.setattr(ddtree_draft, "compute_ddtree_draft_cell_size", lambda mr: budget and 4096)
    monkeypatch.setattr(
        pool_configurator.DefaultPoolConfigurator, "_compute_cell_size", lambda *args: 96
    )
    runner = SimpleNamespace(
        mambaish_config=None,
        num_effective_layers=2,
        spec_algorithm=SpeculativeAlgorithm.from_string("DDTREE"),
        is_draft_worker=False,
        dflash_draft_num_layers=5,
    )
    cell = pool_configurator.DefaultPoolConfigurator(runner)._cell_size
    # Without a number of its own, upstream's: 5 layers more of the target's kind.
    assert cell == (96 + 4096 if budget else 96 * 7 // 2)
