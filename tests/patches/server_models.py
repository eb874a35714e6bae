# SPDX-License-Identifier: Apache-2.0
"""Real ServerArgs on small model directories that hold nothing but a config."""

import json

from sglang.srt.server_args import ServerArgs

TARGET = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "dtype": "float32",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 20,
    "max_position_embeddings": 1024,
}
DRAFT = TARGET | {
    "architectures": ["DFlashDraftModel"],
    "num_hidden_layers": 2,
    "num_target_layers": 4,
    "block_size": 6,
    "dflash_config": {"mask_token_id": 19, "target_layer_ids": [0, 1, 2]},
}

# What makes a target one with multi-head latent attention.
DEEPSEEK = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 4,
}


class Models:
    """Writes a target and a drafter, each with fields changed or (None) taken out."""

    def __init__(self, directory):
        self.directory = directory

    def write(self, name: str, config: dict, changes: dict) -> str:
        path = self.directory / name
        path.mkdir()
        kept = {key: value for key, value in (config | changes).items() if value is not None}
        (path / "config.json").write_text(json.dumps(kept))
        return str(path)

    def server_args(self, *, target=None, draft=None, **arguments) -> ServerArgs:
        defaults = {
            "model_path": self.write("target", TARGET, target or {}),
            "speculative_draft_model_path": self.write("draft", DRAFT, draft or {}),
            "speculative_algorithm": "DDTREE",
            "device": "cpu",
            "attention_backend": "torch_native",
        }
        return ServerArgs(**(defaults | arguments))
