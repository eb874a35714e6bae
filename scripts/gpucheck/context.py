# SPDX-License-Identifier: Apache-2.0
"""What every check is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from . import prompts
from .engine import Ask, Bench
from .machine import Machine
from .questions import batches
from .states import NotRun
from .tokens import token_ids


@dataclass
class Context:
    """Attributes:
    bench: where engines run.
    dtype: of the engines whose text is compared.
    tp: ranks of the check on tensor parallelism; None: two, if there are two.
    minutes: of the speed comparison.
    new_tokens: of each answer that is compared.
    """

    bench: Bench
    dtype: str
    tp: int | None
    minutes: float
    new_tokens: int

    @property
    def machine(self) -> Machine:
        return self.bench.machine

    @cached_property
    def ids(self) -> dict[str, list[list[int]]]:
        """Token ids of the prompts, by kind."""
        target = self.bench.pair.target
        trust = "--trust-remote-code" in self.bench.extra
        return token_ids(target, prompts.texts(target), trust)

    def greedy_and_seeded(self, sizes: Sequence[int]) -> list[tuple[str, bool, list[list[Ask]]]]:
        """Comparisons of both kinds: a title, whether its engines must be deterministic, batches.

        On a CPU the flag for seeds changes no kernel: one engine answers both kinds.
        """
        greedy = batches(self.ids, sizes, self.new_tokens)
        seeded = batches(self.ids, sizes, self.new_tokens, seeded=True)
        if self.machine.on_gpu:
            return [("greedy", False, greedy), ("seeded", True, seeded)]
        return [("greedy and seeded", True, greedy + seeded)]

    def require_gpu(self) -> None:
        """Raises NotRun on a machine without one."""
        if not self.machine.on_gpu:
            raise NotRun(self.machine.no_cuda)
