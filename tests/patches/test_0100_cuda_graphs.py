# SPDX-License-Identifier: Apache-2.0
"""The buffers of captured verify and draft forwards, and the mask of rows that pad a batch."""

from types import SimpleNamespace

import pytest
import torch
from oracles.masks import flat_tree_mask
from server_models import Models
from sglang.srt.model_executor import cuda_graph_runner
from sglang.srt.speculative import ddtree_cuda_graph
from sglang.srt.speculative.ddtree_cuda_graph import (
    LAYOUTS,
    DDTreeGraphBuffers,
    init_ddtree_cuda_graph_state,
    pad_ddtree_mask,
)

CONTEXT = 50
SIZES = {"max_bs": 3, "width": 8, "context_len": CONTEXT, "vocab_size": 100}


class TritonAttnBackend:
    """The sizes that upstream's backend of this name gives its buffers, in elements."""

    def init_cuda_graph_state(self, max_bs, max_num_tokens, kv_indices_buf):
        self.scratch_rows = max_num_tokens
        self.cuda_graph_kv_indices = kv_indices_buf
        self.cuda_graph_custom_mask = torch.zeros(max_num_tokens * CONTEXT, dtype=torch.uint8)


LAYOUT = LAYOUTS["TritonAttnBackend"]


def runner(*, max_bs=3, width=8, is_draft=False, vocab_size=100):
    """What `init_ddtree_cuda_graph_state` reads of a graph runner."""
    backend = TritonAttnBackend()
    return SimpleNamespace(
        attn_backend=backend,
        max_bs=max_bs,
        num_tokens_per_bs=width,
        model_runner=SimpleNamespace(
            device="cpu",
            gpu_id=0,
            is_draft_worker=is_draft,
            mambaish_config=None,
            sliding_window_size=None,
            attn_backend=backend,
            dtype=torch.float32,
            kv_cache_dtype=torch.float32,
            max_total_num_tokens=10**6,
            server_args=SimpleNamespace(
                speculative_num_draft_tokens=width, speculative_dflash_block_size=4
            ),
            model_config=SimpleNamespace(context_len=CONTEXT, vocab_size=vocab_size),
        ),
    )


def test_the_mask_of_the_longest_batch_fits():
    """All requests at the end of the context: upstream's max_bs * W * context would not do."""
    verify = runner()
    init_ddtree_cuda_graph_state(verify)
    longest = flat_tree_mask([[-1] * 8] * 3, [CONTEXT] * 3)
    assert len(longest) == verify.attn_backend.cuda_graph_custom_mask.numel()
    assert len(longest) > 3 * 8 * CONTEXT


def test_slots_are_listed_once_a_request():
    verify = runner()
    init_ddtree_cuda_graph_state(verify)
    assert verify.attn_backend.cuda_graph_kv_indices.numel() == 3 * (CONTEXT + 8)
    # No graph decodes.
    assert verify.attn_backend.scratch_rows == 1


def test_what_is_planned_is_what_is_made():
    verify = runner()
    init_ddtree_cuda_graph_state(verify)
    plan = DDTreeGraphBuffers.plan(**SIZES, layout=LAYOUT, is_draft=False)
    assert plan.custom_mask == verify.attn_backend.cuda_graph_custom_mask.nbytes
    assert plan.kv_indices == verify.attn_backend.cuda_graph_kv_indices.nbytes
    assert plan.total == plan.custom_mask + plan.kv_indices + plan.logits


def test_a_draft_graph_has_logits_and_no_mask():
    draft = runner(is_draft=True)
    init_ddtree_cuda_graph_state(draft)
    assert draft.attn_backend.cuda_graph_custom_mask.numel() == CONTEXT  # upstream's, unused
    plan = DDTreeGraphBuffers.plan(**SIZES, layout=LAYOUT, is_draft=True)
    assert (plan.custom_mask, plan.logits) == (0, 4 * 3 * 8 * 100)


def test_the_logits_are_those_of_the_runner():
    """The buffer that SGLang's graph runner makes, for target and drafter alike."""
    allocate = getattr(cuda_graph_runner, "_allocate_decode_buffers", None)
    if allocate is None:
        allocate = cuda_graph_runner.DecodeInputBuffers.create
    buffers = allocate(
        device="cpu",
        max_bs=3,
        max_num_token=3 * 8,
        hidden_size=4,
        vocab_size=100,
        dtype=torch.bfloat16,
        dp_size=1,
        pp_size=1,
        is_encoder_decoder=False,
        require_mlp_tp_gather=False,
        seq_len_fill_value=1,
        encoder_len_fill_value=0,
        num_tokens_per_bs=8,
        cache_loc_dtype=torch.int64,
        enable_mamba_track=False,
    )
    plan = DDTreeGraphBuffers.plan(**SIZES, layout=LAYOUT, is_draft=False)
    assert plan.logits == buffers.next_token_logits_buffer.nbytes


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"mambaish_config": object()}, "Mamba"),
        ({"attn_backend": object()}, "DDTREE needs one of TritonAttnBackend"),
    ],
)
def test_a_target_that_cannot_be_served_is_refused_before_the_capture(changes, names):
    verify = runner()
    vars(verify.model_runner).update(changes)
    with pytest.raises(ValueError, match=names):
        init_ddtree_cuda_graph_state(verify)
    assert not hasattr(verify.attn_backend, "cuda_graph_custom_mask")


def test_a_draft_backend_that_takes_no_tree_is_upstreams():
    """FlashAttention drafts for a Triton target."""
    draft = runner(is_draft=True)
    draft.max_num_token = 24
    calls = []
    draft.attn_backend = SimpleNamespace(init_cuda_graph_state=lambda *sizes: calls.append(sizes))
    init_ddtree_cuda_graph_state(draft)
    assert calls == [(3, 24)]


def test_the_sizes_of_a_real_server():
    """48 requests, budget 31, Qwen3-8B at its 40,960 tokens."""
    plan = DDTreeGraphBuffers.plan(
        max_bs=48,
        width=32,
        context_len=40960,
        vocab_size=151936,
        layout=LAYOUT,
        is_draft=False,
    )
    assert str(plan) == "0.94 GiB (tree mask 0.06, KV indices 0.01, logits 0.87)"


@pytest.mark.parametrize("spare", [0, -1])
def test_buffers_that_do_not_fit_are_refused(monkeypatch, spare):
    """One byte decides, and nothing is made that does not fit."""
    needed = 3 * 8 * (CONTEXT + 8) + 8 * 3 * (CONTEXT + 8) + 4 * 3 * 8 * 100
    free = (needed + spare) / 2**30
    monkeypatch.setattr(ddtree_cuda_graph, "get_available_gpu_memory", lambda *a, **k: free)
    verify = runner()
    if spare == 0:
        init_ddtree_cuda_graph_state(verify)
        return
    with pytest.raises(ValueError, match="0.00 GiB are free: lower --cuda-graph-max-bs"):
        init_ddtree_cuda_graph_state(verify)
    assert not hasattr(verify.attn_backend, "cuda_graph_custom_mask")


def test_padded_rows_see_all_of_their_keys():
    """Two requests in a graph of four: the mask of the batch, then two requests of one token."""
    trees, prefixes = [[-1, 0, 0], [-1, 0, 1]], [4, 2]
    mask = torch.tensor(flat_tree_mask(trees, prefixes))
    spec_info = SimpleNamespace(custom_mask=mask, draft_token_num=3)
    pad_ddtree_mask(spec_info, padded_rows=2, seq_len_fill_value=1)
    assert torch.equal(spec_info.custom_mask[: len(mask)], mask)
    assert spec_info.custom_mask[len(mask) :].tolist() == [True] * (2 * 3 * (1 + 3))
    assert spec_info.custom_mask.dtype == torch.bool


def test_nothing_is_padded_without_padding_or_without_a_mask():
    mask = torch.tensor([True, False])
    spec_info = SimpleNamespace(custom_mask=mask, draft_token_num=1)
    pad_ddtree_mask(spec_info, 0, 1)
    assert spec_info.custom_mask is mask
    spec_info.custom_mask = None
    pad_ddtree_mask(spec_info, 2, 1)
    assert spec_info.custom_mask is None
    pad_ddtree_mask(None, 2, 1)


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


def test_a_cuda_server_captures_graphs(models):
    """Those of verify and draft; upstream's piecewise ones of prefill cannot be used."""
    args = models.server_args(device="cuda", attention_backend="triton")
    assert not args.disable_cuda_graph
    assert args.disable_piecewise_cuda_graph


def test_graphs_can_be_turned_off(models):
    args = models.server_args(device="cuda", attention_backend="triton", disable_cuda_graph=True)
    assert args.disable_cuda_graph
