# SPDX-License-Identifier: Apache-2.0
"""A TARGET_VERIFY batch in the engine's own layout, for real attention backends on the CPU."""

from types import SimpleNamespace

import torch
from oracles.masks import path_to_root
from sglang.srt.configs.model_config import AttentionArch
from sglang.srt.layers.radix_attention import RadixAttention
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

    def layer(self, attn_type, window=-1) -> RadixAttention:
        return RadixAttention(
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            scaling=self.head_dim**-0.5,
            num_kv_heads=self.num_kv_heads,
            layer_id=0,
            v_head_dim=self.v_head_dim,
            sliding_window_size=window,
            attn_type=attn_type,
        )

    def forward_batch(self, runner, spec_info, positions) -> SimpleNamespace:
        """What the backends read of a `ForwardBatch`."""
        return SimpleNamespace(
            forward_mode=ForwardMode.TARGET_VERIFY,
            batch_size=len(self.prefix_lens),
            seq_lens=torch.tensor(self.prefix_lens),
            seq_lens_cpu=torch.tensor(self.prefix_lens),
            seq_lens_sum=sum(self.prefix_lens),
            encoder_lens=None,
            req_pool_indices=self.req_pool_indices,
            req_to_token_pool=self.req_to_token_pool,
            token_to_kv_pool=runner.token_to_kv_pool,
            out_cache_loc=self.out_cache_loc,
            positions=positions,
            extend_prefix_lens=None,
            extend_seq_lens=None,
            extend_start_loc=None,
            spec_info=spec_info,
        )

    def forward(
        self, backend_class, *, custom_mask, positions, attn_type, window=-1, deterministic=False
    ):
        """Returns the layer's output and the pool as the forward left it."""
        runner = self.model_runner(window, deterministic)
        backend = backend_class(runner)
        spec_info = SimpleNamespace(custom_mask=custom_mask, draft_token_num=self.width)
        forward_batch = self.forward_batch(runner, spec_info, positions)
        backend.init_forward_metadata(forward_batch)
        layer = self.layer(attn_type, window)
        output = backend.forward_extend(self.q, self.k, self.v, layer, forward_batch)
        return output, runner.token_to_kv_pool


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
