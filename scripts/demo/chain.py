# SPDX-License-Identifier: Apache-2.0
"""How many steps DFLASH's chain takes along a text that was sampled with seeds.

The target's token at a position is the text's own, whatever was drafted. So a step accepts the
drafted tokens that agree with the text, and adds one more: no server is needed to count steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .client import Answer


def chain_steps(
    drafted: Sequence[Sequence[int]], text: Sequence[int], first: int, last: int
) -> int:
    """Steps from the token at `first` to the one at `last`.

    Args:
        drafted: the drafter's first choices after each of the positions `first` to `last` - 1.
        text: the prompt and its continuation.
    """
    position, steps = first, 0
    while position < last:
        agreed = 0
        for token, wanted in zip(drafted[position - first], text[position + 1 :], strict=False):
            if token != wanted:
                break
            agreed += 1
        position += agreed + 1
        steps += 1
    return steps


def with_chain_steps(models: Path, texts: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
    """The same answers, each with the steps that DFLASH's chain would have taken.

    Drafts with the shipped drafter in PyTorch, in this process.
    """
    from models.accept_lengths import Pair, draft_log_probs

    pair = Pair.load(models)
    counted = []
    for prompt, answer in zip(pair.tokenizer(list(texts))["input_ids"], answers, strict=True):
        text = [*prompt, *answer.token_ids]
        first, last = len(prompt), len(text) - 1
        steps = 0
        if first < last:
            drafted = draft_log_probs(pair, text, range(first, last)).argmax(-1).tolist()
            steps = chain_steps(drafted, text, first, last)
        counted.append(Answer(answer.token_ids, steps))
    return counted
