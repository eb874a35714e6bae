# SPDX-License-Identifier: Apache-2.0
"""torch_native and Triton verify the same trees, each through its real attention backend.

Both backends get one TARGET_VERIFY batch in the engine's own layout: the KV pool, the
request-to-token table and the flat custom mask that a verify step hands to a model forward.
The Triton kernels run in Triton's interpreter, in float32.
"""

import random
from types import SimpleNamespace

import pytest
import torch
from oracles.masks import flat_tree_mask, path_to_root
from sglang.srt.configs.model_config import AttentionArch
from sglang.srt.layers.attention import triton_backend
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.model_executor.forward_batch_info import ForwardMode

NUM_SLOTS = 512


class Batch:
    """One verify batch: prefixes in the pool, the drafted rows' keys and values still outside."""

    def __init__(self, *, prefix_lens, width, num_heads, num_kv_heads, head_dim, v_head_dim, seed):
        self.width, self.prefix_lens = width, prefix_lens
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.head_dim, self.v_head_dim = head_dim, v_head_dim
        self.generator = torch.Generator().manual_seed(seed)
        bs = len(prefix_lens)
        self.req_to_token_pool = ReqToTokenPool(bs + 2, 128, "cpu", enable_memory_saver=False)
        self.req_pool_indices = torch.randperm(bs + 2, generator=self.generator)[:bs] + 1
        slots = torch.randperm(NUM_SLOTS, generator=self.generator) + 1  # slot 0 is padding
        drafted, used = [], 0
        for pool_index, prefix in zip(self.req_pool_indices, prefix_lens, strict=True):
            own = slots[used : used + prefix + width]
            used += len(own)
            self.req_to_token_pool.req_to_token[pool_index, : len(own)] = own.to(torch.int32)
            drafted.append(own[prefix:])
        self.out_cache_loc = torch.cat(drafted)
        self.q = self.randn(bs * width, num_heads * head_dim)
        self.k = self.randn(bs * width, num_kv_heads, head_dim)
        self.v = self.randn(bs * width, num_kv_heads, v_head_dim)
        self.keys = self.randn(NUM_SLOTS + 1, num_kv_heads, head_dim)
        self.values = self.randn(NUM_SLOTS + 1, num_kv_heads, v_head_dim)

    def randn(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def pool(self) -> MHATokenToKVPool:
        """A fresh pool with the same contents, so that no backend sees another's writes."""
        pool = MHATokenToKVPool(
            size=NUM_SLOTS,
            page_size=1,
            dtype=torch.float32,
            head_num=self.num_kv_heads,
            head_dim=self.head_dim,
            v_head_dim=self.v_head_dim,
            layer_num=1,
            device="cpu",
            enable_memory_saver=False,
        )
        pool.get_key_buffer(0).copy_(self.keys)
        pool.get_value_buffer(0).copy_(self.values)
        return pool

    def model_runner(self, window, deterministic) -> SimpleNamespace:
        """What the backends read of a model runner."""
        return SimpleNamespace(
            device="cpu",
            gpu_id=0,
            sliding_window_size=window if window > 0 else None,
            req_to_token_pool=self.req_to_token_pool,
            token_to_kv_pool=self.pool(),
            token_to_kv_pool_allocator=None,
            hybrid_gdn_config=None,
            kimi_linear_config=None,
            linear_attn_model_spec=None,
            server_args=SimpleNamespace(
                speculative_num_draft_tokens=self.width,
                speculative_num_steps=1,
                triton_attention_num_kv_splits=8,
                triton_attention_split_tile_size=None,
                disable_cuda_graph=True,
                chunked_prefill_size=8192,
                enable_deterministic_inference=deterministic,
            ),
            model_config=SimpleNamespace(
                attention_arch=AttentionArch.MHA,
                num_attention_heads=self.num_heads,
                get_num_kv_heads=lambda tp_size: self.num_kv_heads // tp_size,
                v_head_dim=self.v_head_dim,
                swa_v_head_dim=self.v_head_dim,
                context_len=128,
                is_encoder_decoder=False,
            ),
        )

    def forward(
        self, backend_class, *, custom_mask, positions, attn_type, window=-1, deterministic=False
    ):
        """Returns the layer's output and the pool as the forward left it."""
        runner = self.model_runner(window, deterministic)
        backend = backend_class(runner)
        layer = RadixAttention(
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            scaling=self.head_dim**-0.5,
            num_kv_heads=self.num_kv_heads,
            layer_id=0,
            v_head_dim=self.v_head_dim,
            sliding_window_size=window,
            attn_type=attn_type,
        )
        forward_batch = SimpleNamespace(
            forward_mode=ForwardMode.TARGET_VERIFY,
            batch_size=len(self.prefix_lens),
            seq_lens=torch.tensor(self.prefix_lens),
            seq_lens_sum=sum(self.prefix_lens),
            req_pool_indices=self.req_pool_indices,
            req_to_token_pool=self.req_to_token_pool,
            token_to_kv_pool=runner.token_to_kv_pool,
            out_cache_loc=self.out_cache_loc,
            positions=positions,
            extend_prefix_lens=None,
            extend_seq_lens=None,
            extend_start_loc=None,
            spec_info=SimpleNamespace(custom_mask=custom_mask, draft_token_num=self.width),
        )
        backend.init_forward_metadata(forward_batch)
        output = backend.forward_extend(self.q, self.k, self.v, layer, forward_batch)
        return output, runner.token_to_kv_pool


@pytest.fixture(autouse=True)
def one_attention_rank(monkeypatch):
    monkeypatch.setattr(triton_backend, "get_attention_tp_size", lambda: 1)


def assert_backends_agree(batch: Batch, **how) -> None:
    native, native_pool = batch.forward(TorchNativeAttnBackend, **how)
    triton, triton_pool = batch.forward(triton_backend.TritonAttnBackend, **how)
    torch.testing.assert_close(native, triton, rtol=0, atol=2e-6)
    assert torch.equal(native_pool.get_key_buffer(0), triton_pool.get_key_buffer(0))
    assert torch.equal(native_pool.get_value_buffer(0), triton_pool.get_value_buffer(0))


def random_trees(rng, count, width):
    return [[-1] + [rng.randrange(node) for node in range(1, width)] for _ in range(count)]


def tree_positions(trees, prefix_lens):
    return torch.tensor(
        [
            prefix + len(path_to_root(tree, node)) - 1
            for tree, prefix in zip(trees, prefix_lens, strict=True)
            for node in range(len(tree))
        ]
    )


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
