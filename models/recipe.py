# SPDX-License-Identifier: Apache-2.0
"""Every number that decides what the trained files contain."""

import random
from dataclasses import dataclass, replace

import torch

EOS = "<|eos|>"
MASK = "<|MASK|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
SPECIAL_TOKENS = (EOS, MASK, USER, ASSISTANT)


@dataclass(frozen=True)
class Recipe:
    """Sizes, steps and seeds of the whole training; no value depends on the clock."""

    seed: int = 20
    threads: int = 1

    vocab_size: int = 768
    tokenizer_documents: int = 6000

    target_hidden_size: int = 128
    target_intermediate_size: int = 384
    target_layers: int = 4
    target_steps: int = 1200
    target_rows: int = 20
    target_row_tokens: int = 192
    target_learning_rate: float = 4e-3

    rollout_rows: int = 3072
    rollout_batch: int = 64
    rollout_row_tokens: int = 176

    draft_layers: int = 2
    draft_block_size: int = 8
    draft_target_layer_ids: tuple[int, ...] = (0, 1, 2)
    draft_steps: int = 900
    draft_rows: int = 12
    draft_anchors: int = 24
    draft_learning_rate: float = 4e-3
    draft_position_decay: float = 4.0

    held_out_prompts_per_kind: int = 30

    def shortened(self, factor: int) -> "Recipe":
        """The same recipe with ``factor`` times fewer steps and rollouts, for trying it out."""
        return replace(
            self,
            target_steps=max(1, self.target_steps // factor),
            rollout_rows=max(self.rollout_batch, self.rollout_rows // factor),
            draft_steps=max(1, self.draft_steps // factor),
        )

    def rng(self, purpose: str) -> random.Random:
        """A generator of its own for each purpose, so that one part's draws move no other's."""
        return random.Random(f"{self.seed} {purpose}")


def make_deterministic(recipe: Recipe, purpose: str) -> None:
    """Seed torch and fix what its CPU results depend on; sums follow the thread count."""
    torch.set_num_threads(recipe.threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(recipe.rng(purpose).getrandbits(63))
