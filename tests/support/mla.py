# SPDX-License-Identifier: Apache-2.0
"""A tiny target with multi-head latent attention, of DeepSeek-V3's kind, that nobody trained.

Its vocabulary is so small that a random drafter's trees often hold the target's token: steps
accept something, and what they accept is cached and read again.
"""

import json
import shutil
from pathlib import Path

import torch
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

VOCAB_SIZE = 12
ROPE = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 256,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32,
    "beta_slow": 1,
}


def write_mla_target(path: Path, tokenizer_from: Path) -> DeepseekV3ForCausalLM:
    """Write a checkpoint that SGLang loads, and return the model in transformers.

    Args:
        tokenizer_from: a directory whose tokenizer is copied; its first tokens are used.
    """
    config = DeepseekV3Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_nope_head_dim=16,
        qk_rope_head_dim=8,
        v_head_dim=16,
        # All layers are dense; the experts' sizes only have to be there.
        first_k_dense_replace=4,
        moe_intermediate_size=32,
        n_routed_experts=4,
        n_shared_experts=1,
        num_experts_per_tok=1,
        n_group=1,
        topk_group=1,
        max_position_embeddings=1024,
        rope_parameters=ROPE | {"rope_theta": 10000.0},
        tie_word_embeddings=False,
        dtype="float32",
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = DeepseekV3ForCausalLM(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Wide enough that no two tokens are nearly tied for long.
                if parameter.dim() > 1:
                    parameter.normal_(std=0.15)
    model.save_pretrained(path)
    # SGLang reads the names that DeepSeek's own checkpoints have.
    written = json.loads((path / "config.json").read_text())
    del written["rope_parameters"]
    written |= {"rope_theta": 10000.0, "rope_scaling": ROPE | {"type": "yarn"}, "moe_layer_freq": 1}
    (path / "config.json").write_text(json.dumps(written, indent=1))
    for file in tokenizer_from.glob("token*"):
        shutil.copy(file, path)
    return model
