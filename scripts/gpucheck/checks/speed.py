# SPDX-License-Identifier: Apache-2.0
"""How fast no speculation, DFLASH and DDTREE are under equal scheduling.

Equal: prompts, batch sizes, token limits, page size, KV slots, attention and sampling backend, CUDA
graphs, and no overlap of scheduling, which the speculation of these releases does not have. What
overlap gives to decoding without speculation is measured on its own, last.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from demo.failure import Failure
from demo.methods import DDTREE, DFLASH, PLAIN

from ..context import Context
from ..engine import Ask, Engine, Reply
from ..graph_log import GraphLog
from ..prompts import KINDS
from ..schedule import Plan
from ..served import GREATEST_BATCH, EngineSpec
from ..speed_figures import Cell, Measured
from ..states import NotRun, Outcome, State

OVERLAP = f"{PLAIN} (overlap)"
BATCHES = (1, GREATEST_BATCH)
_SAMPLED = 0.7
# Prompts that are asked one after another in a round of batch size 1.
_ALONE = 2
_GPU_TOKENS, _CPU_TOKENS = 256, 48
# Above this share of repeated 8-grams a text is called a loop in the report.
LOOP = 0.5
# Shares of replayed steps that differ by more are no equal use of graphs.
_EQUAL_SHARES = 0.1
UNEQUAL = "NOT EQUAL, CUDA graphs in logged steps"
ON_CPU = "figures of a CPU and of a model this small: they say nothing about a GPU"


def cells(on_gpu: bool) -> list[Cell]:
    """What is measured. On a CPU DFLASH does not sample, so nothing is sampled there."""
    temperatures = (0.0, _SAMPLED) if on_gpu else (0.0,)
    return [Cell(kind, b, t) for t in temperatures for b in BATCHES for kind in KINDS]


@dataclass
class Comparison:
    """Measures rounds and keeps what they gave, by method and cell."""

    context: Context
    measured: dict[str, dict[Cell, Measured]] = field(default_factory=dict)
    graphs: dict[str, GraphLog] = field(default_factory=dict)

    def spec(self, method: str) -> EngineSpec:
        """The engine of a method, in the model's own dtype."""
        overlap = method == OVERLAP
        return EngineSpec(PLAIN if overlap else method, "auto", overlap=overlap)

    @contextmanager
    def start(self, method: str) -> Iterator[Engine]:
        """The engine of a method. What it does for the first time is slow, and not compared."""
        with self.context.bench.engine(self.spec(method)) as engine:
            for cell in cells(self.context.machine.on_gpu)[:: len(KINDS)]:
                self._ask(engine, cell)
            yield engine

    def measure(self, method: str, engine: Engine) -> None:
        """One round: every cell once, from an empty prefix cache."""
        on_gpu = self.context.machine.on_gpu
        if method not in self.measured:
            self.measured[method] = {cell: Measured() for cell in cells(on_gpu)}
            self.graphs[method] = GraphLog()
        since = engine.log_size()
        print(f"    {method}: a round", flush=True)
        for cell, kept in self.measured[method].items():
            engine.forget()
            begin = time.perf_counter()
            replies = self._ask(engine, cell)
            kept.add(replies, time.perf_counter() - begin)
        log = engine.graphs(since)
        self.graphs[method].replayed += log.replayed
        self.graphs[method].eager += log.eager

    def _ask(self, engine: Engine, cell: Cell) -> list[Reply]:
        on_gpu = self.context.machine.on_gpu
        limit = _GPU_TOKENS if on_gpu else _CPU_TOKENS
        count = _ALONE if cell.batch == 1 else cell.batch
        asks = [
            replace(Ask(str(cell), tuple(ids), limit, cell.temperature), ignore_eos=False)
            for ids in self.context.ids[cell.kind][:count]
        ]
        replies = []
        for i in range(0, count, cell.batch):
            replies += engine.answer(asks[i : i + cell.batch])
        return replies

    def figures(self, plan: Plan) -> dict[str, Any]:
        """All of it as JSON."""
        reference = self.measured.get(PLAIN, {})
        rows = [
            {
                "method": method,
                "kind": cell.kind,
                "batch": cell.batch,
                "temperature": cell.temperature,
                **kept.as_json(None if method == PLAIN else reference.get(cell)),
            }
            for method, by_cell in self.measured.items()
            for cell, kept in by_cell.items()
            if kept.rates
        ]
        return {
            "order": plan.order,
            "mirrored": plan.mirrored,
            "overlap": {m: m == OVERLAP for m in self.measured},
            "new_tokens_at_most": _GPU_TOKENS if self.context.machine.on_gpu else _CPU_TOKENS,
            "graph_steps": {m: log.as_json() for m, log in self.graphs.items()},
            "rows": rows,
        }


def graph_note(graph_steps: dict[str, dict[str, dict[str, int]]]) -> str:
    """How many of each method's logged decode steps were replays, and whether that is equal."""
    shares = {}
    for method, by_batch in graph_steps.items():
        replayed = sum(steps["replayed"] for steps in by_batch.values())
        total = replayed + sum(steps["eager"] for steps in by_batch.values())
        shares[method] = replayed / total if total else 0.0
    text = ", ".join(f"{method} {share:.0%}" for method, share in shares.items())
    unequal = max(shares.values()) - min(shares.values()) > _EQUAL_SHARES
    return f"{UNEQUAL if unequal else 'CUDA graphs in logged steps'}: {text}"


def ratios(rows: list[dict[str, Any]], method: str, other: str) -> list[float]:
    """A method's tokens a second over another's, for each cell that both were measured in."""

    def rates(name: str) -> dict[tuple, float]:
        return {
            (row["kind"], row["batch"], row["temperature"]): row["tokens_per_second"]
            for row in rows
            if row["method"] == name
        }

    mine, theirs = rates(method), rates(other)
    return [mine[cell] / theirs[cell] for cell in mine if cell in theirs]


def notes(figures: dict[str, Any], on_gpu: bool) -> list[str]:
    """What a reader of the figures must know."""
    lines = [] if on_gpu else [ON_CPU, "sampled: not measured, DFLASH does not sample on a CPU"]
    lines.append(
        f"order: {', '.join(figures['order'])}; no overlap of scheduling"
        + (f", but for '{OVERLAP}'" if OVERLAP in figures["order"] else "")
    )
    lines.append(
        "tokens/s: new tokens by the wall time of the requests, prefill included; median of rounds"
    )
    if on_gpu:
        lines.insert(0, graph_note(figures["graph_steps"]))
    if not figures["mirrored"]:
        lines.append(
            "the way back (C B A) did not fit into --minutes: a drift of the machine is not "
            "balanced, so pass more"
        )
    if OVERLAP not in figures["order"]:
        lines.append("no speculation with overlap: not measured, it did not fit into --minutes")
    looping = [row for row in figures["rows"] if row["repeated_8_grams"] > LOOP]
    if looping:
        where = sorted({f"{row['kind']}" for row in looping})
        lines.append(
            f"looping text (more than {LOOP:.0%} repeated 8-grams): {', '.join(where)}; "
            "a drafter is right about a loop, so do not take these rows for typical"
        )
    return lines


def run(context: Context) -> Outcome:
    comparison = Comparison(context)
    plan = Plan(
        (PLAIN, DFLASH, DDTREE),
        60 * context.minutes,
        comparison.start,
        comparison.measure,
        last=OVERLAP,
    )
    state, problem, lines = State.PASSED, "", []
    try:
        plan.run()
    except NotRun as reason:
        state, problem = State.NOT_RUN, str(reason)
    except Failure as failure:
        state, problem = State.FAILED, str(failure)
        lines = [f"    {line}" for line in failure.details]
    return _outcome(state, problem, lines, comparison.figures(plan), context.machine.on_gpu)


def _outcome(
    state: State, problem: str, lines: list[str], figures: dict[str, Any], on_gpu: bool
) -> Outcome:
    """What was measured, also if an engine ended the comparison early."""
    if not figures["rows"]:
        return Outcome(state, problem, lines)
    found = notes(figures, on_gpu)
    parts = [problem] if problem else []
    for other in (PLAIN, DFLASH):
        if found_ratios := ratios(figures["rows"], DDTREE, other):
            least, most = min(found_ratios), max(found_ratios)
            parts.append(f"DDTREE {least:.2f} to {most:.2f} times {other}")
    if not on_gpu:
        parts.append(ON_CPU)
    elif found[0].startswith(UNEQUAL):
        parts.append(found[0])
    return Outcome(state, "; ".join(parts), [*found, *lines], figures)
