# SPDX-License-Identifier: Apache-2.0
"""What the rounds of the speed comparison come to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .engine import Reply
from .repetition import repeated_share


@dataclass(frozen=True)
class Cell:
    """What one figure is for."""

    kind: str
    batch: int
    temperature: float

    def __str__(self) -> str:
        how = "greedy" if self.temperature == 0 else f"temperature {self.temperature}"
        return f"{self.kind}, batch {self.batch}, {how}"


@dataclass
class Measured:
    """All rounds of a method in a cell.

    Attributes:
        rates: new tokens a second of each round, prefill and HTTP included.
        first: replies of the first round.
    """

    rates: list[float] = field(default_factory=list)
    tokens: int = 0
    verify_steps: int = 0
    answers: int = 0
    first: tuple[Reply, ...] = ()

    def add(self, replies: Sequence[Reply], seconds: float) -> None:
        """One round."""
        tokens = sum(len(reply.token_ids) for reply in replies)
        self.rates.append(tokens / seconds)
        self.tokens += tokens
        self.answers += len(replies)
        self.verify_steps += sum(reply.verify_steps for reply in replies)
        self.first = self.first or tuple(replies)

    def as_json(self, reference: Measured | None) -> dict[str, Any]:
        """Figures; `reference`: the same cell without speculation.

        tokens_per_step leaves out the first token of each answer, which needs no step;
        accept_length counts it, as SGLang's own figure does.
        """
        quartiles = _quartiles(self.rates)
        figures = {
            "rounds": len(self.rates),
            "tokens_per_second": statistics.median(self.rates),
            "tokens_per_second_quartiles": quartiles,
            "tokens_per_second_range": [min(self.rates), max(self.rates)],
            "tokens": self.tokens,
            "tokens_per_step": 1.0,
            "accept_length": 1.0,
            "repeated_8_grams": statistics.fmean(
                repeated_share(reply.token_ids) for reply in self.first
            ),
        }
        if self.verify_steps:
            figures["tokens_per_step"] = (self.tokens - self.answers) / self.verify_steps
            figures["accept_length"] = self.tokens / self.verify_steps
        if reference is not None:
            base = statistics.median(reference.rates)
            figures["speedup"] = figures["tokens_per_second"] / base
            figures["same_text"] = sum(
                mine.token_ids == other.token_ids
                for mine, other in zip(self.first, reference.first, strict=True)
            )
            figures["answers_a_round"] = len(self.first)
        return figures


def _quartiles(values: Sequence[float]) -> list[float]:
    if len(values) < 2:
        return [values[0], values[0]]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]
