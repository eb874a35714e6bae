# SPDX-License-Identifier: Apache-2.0
"""torch_native and Triton verify the same trees, each through its real attention backend.

Both backends get one TARGET_VERIFY batch in the engine's own layout: the KV pool, the
request-to-token table and the flat custom mask that a verify step hands to a model forward.
The Triton kernels run in Triton's interpreter, in float32.
"""

import random

import pytest
import torch
from oracles.masks import flat_tree_mask
from sglang.srt.layers.attention import triton_backend
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.radix_attention import AttentionType
from verify_batch import Batch, random_trees, tree_positions


@pytest.fixture(autouse=True)
def one_attention_rank(monkeypatch):
    monkeypatch.setattr(triton_backend, "get_attention_tp_size", lambda: 1)


def assert_backends_agree(batch: Batch, **how) -> None:
    native, native_pool = batch.forward(TorchNativeAttnBackend, **how)
    triton, triton_pool = batch.forward(triton_backend.TritonAttnBackend, **how)
    torch.testing.assert_close(native, triton, rtol=0, atol=2e-6)
    assert torch.equal(native_pool.get_key_buffer(0), triton_pool.get_key_buffer(0))
    assert torch.equal(native_pool.get_value_buffer(0), triton_pool.get_value_buffer(0))


@pytest.mark.parametrize(
    ("prefix_lens", "width", "num_heads", "num_kv_heads", "head_dim", "v_head_dim"),
    [
        ([9], 8, 2, 2, 16, 16),
        ([3, 0, 70, 1], 8, 4, 2, 16, 16),
        ([5, 64, 17], 16, 4, 1, 16, 32),
        ([1, 30], 70, 2, 1, 16, 16),  # more rows than one query tile of the kernel
        ([40, 2], 2, 6, 3, 32, 32),
    ],
)
def test_trees(prefix_lens, width, num_heads, num_kv_heads, head_dim, v_head_dim):
    rng = random.Random(width)
    for seed in range(2):
        batch = Batch(
            prefix_lens=prefix_lens,
            width=width,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            v_head_dim=v_head_dim,
            seed=seed,
        )
        trees = random_trees(rng, len(prefix_lens), width)
        trees[-1][-1] = -1  # a padding node: it sees the prefix and itself
        assert_backends_agree(
            batch,
            custom_mask=torch.tensor(flat_tree_mask(trees, prefix_lens)),
            positions=tree_positions(trees, prefix_lens),
            attn_type=AttentionType.DECODER,
        )


def small_batch(seed=0) -> Batch:
    return Batch(
        prefix_lens=[11, 3, 26],
        width=6,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        v_head_dim=16,
        seed=seed,
    )


def chain(batch: Batch) -> list[list[int]]:
    return [list(range(-1, batch.width - 1))] * len(batch.prefix_lens)


def test_trees_in_deterministic_mode():
    """Triton then runs another kernel, over the prefix and the drafted rows at once."""
    batch = small_batch()
    trees = random_trees(random.Random(0), 3, batch.width)
    assert_backends_agree(
        batch,
        custom_mask=torch.tensor(flat_tree_mask(trees, batch.prefix_lens)),
        positions=tree_positions(trees, batch.prefix_lens),
        attn_type=AttentionType.DECODER,
        deterministic=True,
    )


def test_draft_block_without_a_mask():
    """The DFlash drafter's own forward: every row of the block sees every other."""
    batch = small_batch()
    assert_backends_agree(
        batch,
        custom_mask=None,
        positions=tree_positions(chain(batch), batch.prefix_lens),
        attn_type=AttentionType.ENCODER_ONLY,
    )


def test_chain_without_a_mask_is_causal():
    batch = small_batch()
    assert_backends_agree(
        batch,
        custom_mask=None,
        positions=tree_positions(chain(batch), batch.prefix_lens),
        attn_type=AttentionType.DECODER,
    )


@pytest.mark.parametrize("window", [4, 8])
def test_sliding_window_over_a_chain(window):
    """On a chain depth and index agree, so both backends mean the same window.

    The Triton kernel counts a window in indices: on a tree it would be another one.
    """
    batch = small_batch()
    assert_backends_agree(
        batch,
        custom_mask=torch.tensor(flat_tree_mask(chain(batch), batch.prefix_lens)),
        positions=tree_positions(chain(batch), batch.prefix_lens),
        attn_type=AttentionType.DECODER,
        window=window,
    )


def test_the_comparison_sees_one_wrong_mask_entry():
    """The mutant: one ancestor too many in one row of one request."""
    batch = small_batch()
    trees = random_trees(random.Random(3), 3, batch.width)
    mask = torch.tensor(flat_tree_mask(trees, batch.prefix_lens))
    how = {
        "positions": tree_positions(trees, batch.prefix_lens),
        "attn_type": AttentionType.DECODER,
    }
    native, _ = batch.forward(TorchNativeAttnBackend, custom_mask=mask, **how)
    wrong = mask.clone()
    wrong[(~mask).nonzero()[7]] = True
    triton, _ = batch.forward(triton_backend.TritonAttnBackend, custom_mask=wrong, **how)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(native, triton, rtol=0, atol=2e-6)
