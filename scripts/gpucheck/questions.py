# SPDX-License-Identifier: Apache-2.0
"""The requests of the comparisons: batches of every kind of prompt, greedy and seeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .engine import Ask
from .prompts import KINDS

# Without filters: then the noise of a token depends on its id alone, see `gpucheck.noise`.
TEMPERATURES = (0.7, 1.0, 1.3)

Ids = Mapping[str, Sequence[Sequence[int]]]


def mixed(ids: Ids) -> list[tuple[str, tuple[int, ...]]]:
    """Every prompt as (name, ids), the kinds taking turns, so that a batch has all of them."""
    count = max(len(some) for some in ids.values())
    return [
        (f"{kind} {i + 1}", tuple(ids[kind][i]))
        for i in range(count)
        for kind in KINDS
        if i < len(ids.get(kind, ()))
    ]


def batches(
    ids: Ids, sizes: Sequence[int], new_tokens: int, seeded: bool = False
) -> list[list[Ask]]:
    """One batch of each size; each begins where the last one ended, going round the prompts."""
    prompts, start, made = mixed(ids), 0, []
    for size in sizes:
        batch = []
        for place in range(size):
            number = start + place
            name, input_ids = prompts[number % len(prompts)]
            how = "seeded" if seeded else "greedy"
            label = f"{how}, batch {size}.{len(made)}, {name}"
            if seeded:
                temperature = TEMPERATURES[number % len(TEMPERATURES)]
                batch.append(Ask(label, input_ids, new_tokens, temperature, 1000 + number))
            else:
                batch.append(Ask(label, input_ids, new_tokens))
        made.append(batch)
        start += size
    return made
