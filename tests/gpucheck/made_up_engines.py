# SPDX-License-Identifier: Apache-2.0
"""Engines that are a function of the prompt, for tests of what compares engines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from container.gpu import Card
from gpucheck.context import Context
from gpucheck.engine import Ask, Reply
from gpucheck.graph_log import GraphLog
from gpucheck.machine import Machine
from gpucheck.served import EngineSpec

CARD = Card("Made-up 100", (9, 0), 80 << 30)
VERSIONS = {
    "python": "3.12.0",
    "packages": {
        "sglang": "0.5.11",
        "torch": "2.9.1+cu128",
        "triton": "3.5.1",
        "transformers": "5.6.0",
        "flashinfer-python": None,
        "numpy": "2.0",
        "sgl_kernel": "0.4.1",
    },
    "torch_cuda": "12.8",
    "torch_sees_device": True,
}
SERIES = {
    "id": "0123456789ab",
    "release": "0.5.11",
    "applied": ["0010", "0020"],
    "patches": 2,
    "edited": [],
    "problem": None,
}


def machine(cards: int = 1, **changes) -> Machine:
    """A machine with so many cards; none: a CPU with two cores."""
    made = Machine(
        "cuda" if cards else "cpu",
        "" if cards else "no CUDA device: no NVIDIA driver (libcuda.so.1)",
        (CARD,) * cards,
        "570.00" if cards else None,
        (0, 1),
        VERSIONS,
        SERIES,
    )
    return replace(made, **changes)


def text_of(ask: Ask) -> tuple[int, ...]:
    """What every correct engine answers."""
    seed = sum(ask.input_ids) + 31 * (ask.seed or 0)
    return tuple((seed * (i + 3) + i * i) % 97 for i in range(ask.max_new_tokens))


@dataclass
class MadeUpEngine:
    """log_probs: (best, left, right) that it gives for every difference it is asked about."""

    spec: EngineSpec
    answers: Callable[[EngineSpec, Ask], tuple[int, ...]]
    log: GraphLog
    log_probs: tuple[float, float, float]

    def answer(self, asks: list[Ask]) -> list[Reply]:
        steps = 0 if self.spec.method == "no speculation" else 4
        return [Reply(self.answers(self.spec, ask), steps) for ask in asks]

    def next_log_probs(self, prefixes, tokens):
        best, *both = self.log_probs
        return [(best, both) for _ in prefixes]

    def graphs(self, since: int = 0) -> GraphLog:
        return self.log

    def log_size(self) -> int:
        return 0

    def forget(self) -> None:
        pass


@dataclass
class MadeUpBench:
    """Attributes:
    answers: what an engine with this spec answers to a request.
    logs: what its log says of graphs.
    fails: raises what the start of an engine should raise.
    """

    machine: Machine
    answers: Callable[[EngineSpec, Ask], tuple[int, ...]] = lambda spec, ask: text_of(ask)
    logs: Callable[[EngineSpec], GraphLog] = lambda spec: GraphLog()
    fails: Callable[[EngineSpec], None] = lambda spec: None
    log_probs: tuple[float, float, float] = (0.0, 0.0, -9.0)
    started: list[EngineSpec] = field(default_factory=list)

    @contextmanager
    def engine(self, spec: EngineSpec):
        self.fails(spec)
        self.started.append(spec)
        yield MadeUpEngine(spec, self.answers, self.logs(spec), self.log_probs)


def context(bench: MadeUpBench, dtype: str = "float32", tp: int | None = None) -> Context:
    """A context whose prompts are there already."""
    made = Context(bench, dtype, tp, minutes=1e-6, new_tokens=20)
    kinds = enumerate(("chat", "code", "repetition"))
    made.ids = {kind: [[i, j, 7 * j + i] for j in range(1, 9)] for i, kind in kinds}
    return made


def wrong_at(position: int, is_wrong: Callable[[EngineSpec, Ask], bool]):
    """Answers that are another token at one position where `is_wrong` says so."""

    def answers(spec: EngineSpec, ask: Ask) -> tuple[int, ...]:
        text = list(text_of(ask))
        if is_wrong(spec, ask):
            text[position] += 1
        return tuple(text)

    return answers
