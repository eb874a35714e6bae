# SPDX-License-Identifier: Apache-2.0
"""Compare what two engines answered, and judge each difference.

Two kernels, or two orders of the same sum, round differently, and then a near tie between two
tokens can go either way. In fp32 that is so improbable that equality is demanded. In a 16-bit
dtype a difference is excused if the reference engine finds both tokens nearly tied for the best
place, and is a failure otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

# Nats between the best token and each of the two that were chosen. Logits of magnitude 16 to 32
# are 2**-3 apart in bfloat16 and 2**-6 in float16: four and six of these steps.
NEAR_TIE = {"float32": None, "bfloat16": 0.5, "float16": 0.1}


@dataclass(frozen=True)
class Difference:
    """The first position at which two answers to a request differ.

    Attributes:
        request: the request's label.
        position: index into the new tokens, from 0.
        left, right: the token of each side there; None where a side has ended.
        gap: how far from a tie they are in the reference engine, in nats; None if not measured.
    """

    request: str
    position: int
    left: int | None
    right: int | None
    gap: float | None = None

    def is_near_tie(self, dtype: str) -> bool:
        limit = NEAR_TIE[dtype]
        return limit is not None and self.gap is not None and self.gap <= limit

    def describe(self, names: tuple[str, str], dtype: str) -> str:
        gap = "gap not measured" if self.gap is None else f"gap {self.gap:.2g} nats"
        verdict = "near tie" if self.is_near_tie(dtype) else "different"
        return (
            f"{self.request}: {verdict} from new token {self.position + 1} on, "
            f"{self.left} ({names[0]}) and {self.right} ({names[1]}), {gap}"
        )


def first_difference(request: str, left: Sequence[int], right: Sequence[int]) -> Difference | None:
    """Where two answers part, or None if they are equal; one that ends early differs."""
    for position, (a, b) in enumerate(zip_longest(left, right)):
        if a != b:
            return Difference(request, position, a, b)
    return None


def differences(
    left: Mapping[str, Sequence[int]], right: Mapping[str, Sequence[int]]
) -> list[Difference]:
    """The first difference of each request that has one.

    Raises:
        ValueError: the two sides did not answer the same requests, or none.
    """
    if set(left) != set(right) or not left:
        raise ValueError(
            f"expected answers to the same requests, found {len(left)} and {len(right)} of them"
        )
    found = (first_difference(name, left[name], right[name]) for name in left)
    return [difference for difference in found if difference is not None]


def with_gaps(found: Sequence[Difference], gaps: Mapping[str, float | None]) -> list[Difference]:
    """The same differences with the gaps that a reference engine measured, by request."""
    return [replace(each, gap=gaps.get(each.request)) for each in found]


def greedy_gap(best: float, left: float, right: float) -> float:
    """How far the worse of two tokens is from the best, of log-probabilities.

    Tokens that are tied with each other but not for the best place are no near tie.
    """
    return best - min(left, right)
