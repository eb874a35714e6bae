# SPDX-License-Identifier: Apache-2.0
"""Continuations drawn from the target itself."""

import random
from collections import defaultdict

import torch
from transformers import DynamicCache, PreTrainedTokenizerFast, Qwen3ForCausalLM

from models.corpus import training_prompts
from models.progress import Progress


@torch.no_grad()
def continue_prompts(
    model: Qwen3ForCausalLM, prompts: torch.Tensor, new_tokens: int, temperature: float
) -> torch.Tensor:
    """Continue prompts of one length past eos, without filters.

    Args:
        prompts: int64 ``[n, length]``.
        temperature: 0 takes the most probable token.

    Returns:
        int64 ``[n, length + new_tokens]``, the prompts included.
    """
    cache = DynamicCache()
    rows = [prompts]
    for _ in range(new_tokens):
        logits = model(rows[-1], past_key_values=cache, use_cache=True).logits[:, -1]
        if temperature == 0:
            token = logits.argmax(-1, keepdim=True)
        else:
            token = torch.multinomial(torch.softmax(logits / temperature, -1), 1)
        rows.append(token)
    return torch.cat(rows, 1)


def rollout_rows(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    rng: random.Random,
    rows: int,
    batch: int,
    length: int,
) -> torch.Tensor:
    """Training prompts continued at temperature 1: int64 ``[rows, length]``.

    Prompts are batched by length, which needs no padding; lengths too rare to fill a batch are
    left out.
    """
    by_length: dict[int, list[list[int]]] = defaultdict(list)
    batches: list[torch.Tensor] = []
    wanted = -(-rows // batch)
    while len(batches) < wanted:
        for prompt in training_prompts(tokenizer, rng, 4 * batch):
            same = by_length[len(prompt)]
            same.append(prompt)
            if len(same) == batch:
                batches.append(torch.tensor(same))
                same.clear()
    progress = Progress("rollouts", wanted, every=8)
    done = []
    for number, prompts in enumerate(batches[:wanted], 1):
        done.append(continue_prompts(model, prompts, length - prompts.shape[1], temperature=1.0))
        progress.step(number)
    return torch.cat(done)[:rows]
