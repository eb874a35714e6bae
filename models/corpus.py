# SPDX-License-Identifier: Apache-2.0
"""Generated text as rows of token ids."""

import random

import torch
from transformers import PreTrainedTokenizerFast

from models.text import KINDS, document

DOCUMENTS_AT_A_TIME = 2000


def packed_rows(
    tokenizer: PreTrainedTokenizerFast, rng: random.Random, rows: int, length: int
) -> torch.Tensor:
    """Documents one after another, each ended by eos, cut into rows: int64 ``[rows, length]``."""
    tokens: list[int] = []
    while len(tokens) < rows * length:
        texts = ["".join(document(rng)[1:]) for _ in range(DOCUMENTS_AT_A_TIME)]
        for ids in tokenizer(texts)["input_ids"]:
            tokens += [*ids, tokenizer.eos_token_id]
    return torch.tensor(tokens[: rows * length]).view(rows, length)


def training_prompts(
    tokenizer: PreTrainedTokenizerFast, rng: random.Random, count: int
) -> list[list[int]]:
    """Token ids of ``count`` prompts of the training part."""
    return tokenizer([document(rng)[1] for _ in range(count)])["input_ids"]


def held_out_prompts(rng: random.Random, per_kind: int) -> list[dict[str, str]]:
    """``per_kind`` different held-out prompts of each kind, as ``{"kind", "prompt"}``."""
    chosen = []
    for kind in KINDS:
        prompts: dict[str, None] = {}
        while len(prompts) < per_kind:
            prompts[document(rng, kind, held_out=True)[1]] = None
        chosen += [{"kind": kind, "prompt": prompt} for prompt in prompts]
    return chosen
