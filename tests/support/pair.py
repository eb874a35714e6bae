# SPDX-License-Identifier: Apache-2.0
"""The target and the drafters that the engine tests serve."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from models.dflash_reference import DFlashDrafter


@dataclass(frozen=True)
class Pair:
    """Checkpoint directories of a target and of a drafter that fits it."""

    target: Path
    draft: Path

    def arguments(self, algorithm: str, **more) -> dict:
        """Server arguments that serve the pair with `DFLASH` or `DDTREE`."""
        return {
            "model_path": str(self.target),
            "speculative_algorithm": algorithm,
            "speculative_draft_model_path": str(self.draft),
        } | more


def write_random_drafter(target: Path, path: Path) -> None:
    """Write a drafter that has learned nothing, for the target at `target`.

    Its shape differs from the trained drafter's: one layer, blocks of 4, two captured layers.
    """
    of_target = json.loads((target / "config.json").read_text())
    shared = (
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "max_position_embeddings",
        "rms_norm_eps",
        "hidden_act",
    )
    config = {name: of_target[name] for name in shared} | {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "dtype": "float32",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "num_hidden_layers": 1,
        "num_target_layers": of_target["num_hidden_layers"],
        "rope_theta": 10000.0,
        "block_size": 4,
        "dflash_config": {"mask_token_id": 1, "target_layer_ids": [0, 2]},
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        DFlashDrafter(config).save_pretrained(path)


def candidate_prompts(pair_path: Path, tokenizer) -> list[list[int]]:
    """Ragged prompts of all kinds of held-out text, in a fixed order; up to 200 tokens."""
    by_kind: dict[str, list[str]] = {}
    for record in json.loads((pair_path / "held_out_prompts.json").read_text()):
        by_kind.setdefault(record["kind"], []).append(record["prompt"])
    texts = []
    for number, prompts in enumerate(by_kind.values()):
        # A short one, and a long one that is several of its kind in a row.
        texts += [prompts[0], "\n".join(prompts[1 : 4 + 2 * number])]
    texts += [prompts[-1] for prompts in by_kind.values()]
    return [tokenizer(text)["input_ids"] for text in texts]
