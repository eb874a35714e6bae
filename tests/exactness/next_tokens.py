# SPDX-License-Identifier: Apache-2.0
"""The exact law of a request's first tokens, from transformers' logits in float64."""

from __future__ import annotations

from collections import Counter

import torch
from oracles.target_only import target_distribution
from sampled_trees import Parameters

OTHER = "less probable"


@torch.no_grad()
def continuation_law(
    model, prompt: list[int], parameters: Parameters, length: int, least: float = 2e-4
) -> dict[tuple[int, ...] | str, float]:
    """Probability of every continuation of `length` tokens.

    Continuations that begin with a prefix less probable than `least` are pooled in `OTHER`.
    """
    prefixes: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        ids = torch.tensor([prompt + list(prefix) for prefix in prefixes])
        logits = torch.cat([model(rows).logits[:, -1] for rows in ids.split(64)])
        extended: dict[tuple[int, ...], float] = {}
        for (prefix, weight), row in zip(prefixes.items(), logits.tolist(), strict=True):
            law = target_distribution(
                row,
                temperature=parameters.temperature,
                top_k=parameters.top_k,
                top_p=parameters.top_p,
                min_p=parameters.min_p,
            )
            for token, p in enumerate(law):
                if weight * p >= least:
                    extended[(*prefix, token)] = weight * p
        prefixes = extended
    return {**prefixes, OTHER: max(0.0, 1.0 - sum(prefixes.values()))}


def pool(continuations: Counter, law: dict) -> Counter:
    """Count what the law pools as `OTHER`."""
    pooled: Counter = Counter()
    for tokens, count in continuations.items():
        pooled[tokens if tokens in law else OTHER] += count
    return pooled
