# SPDX-License-Identifier: Apache-2.0
"""A draft runner's eager forward, as far as what its model is given."""

from types import SimpleNamespace

import torch
from sglang.srt.model_executor.model_runner import ModelRunner


def embeds_dtype(device: str, model_dtype: torch.dtype, ddtree_budget: int | None) -> torch.dtype:
    """The dtype in which a draft model on `device` gets float32 input embeddings."""
    seen = {}

    def forward(input_ids, positions, forward_batch, input_embeds):
        seen["dtype"] = input_embeds.dtype

    runner = SimpleNamespace(
        support_pp=False,
        device=device,
        dtype=model_dtype,
        is_generation=True,
        piecewise_cuda_graph_runner=None,
        device_timer=None,
        model=SimpleNamespace(forward=forward),
        attn_backend=SimpleNamespace(init_forward_metadata=lambda forward_batch: None),
        server_args=SimpleNamespace(enable_pdmux=False, speculative_ddtree_budget=ddtree_budget),
        _eager_fb_view=lambda forward_batch, pp_proxy_tensors: forward_batch,
    )
    forward_batch = SimpleNamespace(
        input_embeds=torch.zeros(2, 4),
        replace_embeds=None,
        replace_positions=None,
        input_ids=None,
        positions=None,
        needs_forward_metadata_init=lambda: True,
    )
    ModelRunner.forward_extend(runner, forward_batch)
    return seen["dtype"]
