# SPDX-License-Identifier: Apache-2.0
"""Train the tiny Qwen3 target on generated text."""

from pathlib import Path

import torch
import torch.nn.functional as F
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from models.corpus import packed_rows
from models.progress import Progress
from models.recipe import Recipe, make_deterministic
from models.schedule import make_optimizer, set_learning_rate

WEIGHT_DECAY = 0.05


def new_target(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """An untrained target of the recipe's size, fp32."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.target_hidden_size,
        intermediate_size=recipe.target_intermediate_size,
        num_hidden_layers=recipe.target_layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        rope_theta=10000.0,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    return Qwen3ForCausalLM(config)


def train_target(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, out: Path) -> Qwen3ForCausalLM:
    """Train, save under ``out`` and return the target in evaluation mode."""
    make_deterministic(recipe, "target")
    model = new_target(recipe, tokenizer)
    rows = packed_rows(
        tokenizer,
        recipe.rng("target text"),
        recipe.target_steps * recipe.target_rows,
        recipe.target_row_tokens + 1,
    )
    optimizer = make_optimizer(model.parameters(), WEIGHT_DECAY)
    progress = Progress("target", recipe.target_steps, every=50)
    model.train()
    for step, batch in enumerate(rows.split(recipe.target_rows)):
        set_learning_rate(optimizer, step, recipe.target_steps, recipe.target_learning_rate)
        logits = model(batch[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress.step(step + 1, f"loss {loss.item():.3f}")
    model.eval()
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(out)
    return model
