# SPDX-License-Identifier: Apache-2.0
"""How much of a text repeats itself: a drafter is right about a loop, which flatters it."""

from __future__ import annotations

from collections.abc import Sequence

LENGTH = 8


def repeated_share(tokens: Sequence[int], length: int = LENGTH) -> float:
    """Share of the n-grams that occurred earlier in the same text; 0 for a shorter text."""
    grams = [tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0
