# SPDX-License-Identifier: Apache-2.0
"""Random choices that a language model can partly, but never fully, predict."""

import random
import zlib
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

T = TypeVar("T")

# Share of the r-th option is proportional to 1 / (r + 1) ** steepness.
FLAT = 0.35
LEANING = 0.9


@cache
def _weights(count: int, steepness: float) -> tuple[float, ...]:
    return tuple((rank + 1) ** -steepness for rank in range(count))


class Chooser:
    """Draws options from ``rng`` with mild preferences.

    Flat preferences keep several continuations alive, which is what a draft tree can use; keyed
    preferences depend on words written earlier, so a drafter has to read the context.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def pick(self, options: Sequence[T]) -> T:
        """An option; earlier ones are mildly likelier."""
        return self.rng.choices(options, _weights(len(options), FLAT))[0]

    def lean(self, options: Sequence[T], clue: str) -> T:
        """An option; which ones are likelier is fixed by ``clue``, a word of the earlier text."""
        shift = zlib.crc32(clue.encode()) % len(options)
        rotated = [*options[shift:], *options[:shift]]
        return self.rng.choices(rotated, _weights(len(options), LEANING))[0]

    def number(self, low: int, high: int) -> int:
        """An integer of ``low..high``, all equally likely."""
        return self.rng.randint(low, high)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def distinct(self, options: Sequence[T], count: int) -> list[T]:
        """``count`` different options in the order in which they were picked."""
        left = list(options)
        taken = []
        for _ in range(count):
            taken.append(self.pick(left))
            left.remove(taken[-1])
        return taken
