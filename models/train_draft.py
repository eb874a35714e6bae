# SPDX-License-Identifier: Apache-2.0
"""Train the DFlash drafter on the target's own temperature-1 text."""

from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

from models.dflash_reference import DFlashDrafter
from models.progress import Progress
from models.recipe import Recipe, make_deterministic
from models.rollouts import rollout_rows
from models.schedule import make_optimizer, set_learning_rate

WEIGHT_DECAY = 0.02
FIRST_ANCHOR = 4
# SGLang 0.5.11 looks for `rope_theta` at the top of the drafter's config, where transformers 5
# no longer keeps it, and then takes 1e6. Training with that very value is right either way.
ROPE_THETA = 1e6


def new_drafter(recipe: Recipe, target: Qwen3ForCausalLM, mask_token_id: int) -> DFlashDrafter:
    """An untrained drafter for ``target``, fp32."""
    config = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "dtype": "float32",
        "hidden_size": target.config.hidden_size,
        "intermediate_size": target.config.intermediate_size,
        "num_hidden_layers": recipe.draft_layers,
        "num_attention_heads": target.config.num_attention_heads,
        "num_key_value_heads": target.config.num_key_value_heads,
        "head_dim": target.config.head_dim,
        "vocab_size": target.config.vocab_size,
        "max_position_embeddings": target.config.max_position_embeddings,
        "rope_theta": ROPE_THETA,
        "rms_norm_eps": target.config.rms_norm_eps,
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": False,
        "num_target_layers": target.config.num_hidden_layers,
        "block_size": recipe.draft_block_size,
        "eos_token_id": target.config.eos_token_id,
        "dflash_config": {
            "mask_token_id": mask_token_id,
            "target_layer_ids": list(recipe.draft_target_layer_ids),
        },
    }
    drafter = DFlashDrafter(config)
    for parameter in drafter.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02)
    return drafter


def draft_loss(
    drafter: DFlashDrafter,
    target: Qwen3ForCausalLM,
    rows: torch.Tensor,
    anchors: torch.Tensor,
    decay: float,
) -> torch.Tensor:
    """Cross-entropy of the drafter against the target's distribution at each drafted position.

    A token is worth drafting only if all before it are right, so position j of a block (the first
    drafted one is 0) weighs ``exp(-j / decay)``.

    Args:
        rows: int64 ``[n, length]``, text drawn from the target.
        anchors: int64 ``[n, k]``, positions of the blocks' known tokens.

    Returns:
        The weighted mean, a scalar.
    """
    n, k = anchors.shape
    with torch.no_grad():
        out = target(rows, output_hidden_states=True)
        features = drafter.target_features(out.hidden_states)
        ahead = anchors[..., None] + torch.arange(drafter.block_size - 1)
        wanted = torch.softmax(out.logits, -1)[torch.arange(n)[:, None, None], ahead]
        embeds = target.get_input_embeddings()(drafter.block_ids(rows.gather(1, anchors)))
    hidden = drafter(features, embeds, anchors)[:, :, 1:]
    log_q = F.log_softmax(F.linear(hidden, target.lm_head.weight.detach()), -1)
    weights = torch.exp(-torch.arange(drafter.block_size - 1) / decay)
    cross_entropy = -(wanted * log_q).sum(-1)
    return (cross_entropy * weights).sum() / (weights.sum() * n * k)


def train_draft(
    recipe: Recipe, tokenizer: PreTrainedTokenizerFast, target: Qwen3ForCausalLM, out: Path
) -> DFlashDrafter:
    """Draw rollouts of ``target``, train a drafter on them, save it under ``out``, return it."""
    make_deterministic(recipe, "draft")
    rows = rollout_rows(
        target,
        tokenizer,
        recipe.rng("rollout prompts"),
        recipe.rollout_rows,
        recipe.rollout_batch,
        recipe.rollout_row_tokens,
    )
    drafter = new_drafter(recipe, target, tokenizer.mask_token_id).train()
    optimizer = make_optimizer(drafter.parameters(), WEIGHT_DECAY)
    progress = Progress("draft", recipe.draft_steps, every=50)
    last_anchor = recipe.rollout_row_tokens - recipe.draft_block_size
    for step in range(recipe.draft_steps):
        set_learning_rate(optimizer, step, recipe.draft_steps, recipe.draft_learning_rate)
        chosen = rows[torch.randint(len(rows), (recipe.draft_rows,))]
        anchors = torch.randint(
            FIRST_ANCHOR, last_anchor + 1, (recipe.draft_rows, recipe.draft_anchors)
        )
        loss = draft_loss(drafter, target, chosen, anchors, recipe.draft_position_decay)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(drafter.parameters(), 1.0)
        optimizer.step()
        progress.step(step + 1, f"loss {loss.item():.3f}")
    drafter.eval().save_pretrained(out)
    return drafter
