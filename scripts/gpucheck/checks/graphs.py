# SPDX-License-Identifier: Apache-2.0
"""DDTREE with CUDA graphs writes what it writes without them, and graphs were in fact replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from demo.methods import DDTREE

from ..compare import Part, ask_all, compare_answered, judge_runs
from ..context import Context
from ..engine import Ask
from ..graph_log import GraphLog
from ..served import EngineSpec
from ..states import Outcome

# Captured sizes, and sizes between them.
SIZES = (1, 2, 3, 4, 5, 7, 8)


def replay_problems(title: str, with_graphs: GraphLog, eager: GraphLog) -> list[str]:
    """Why the two sides are not a replay and an eager step of each batch size."""
    if with_graphs.steps == 0:
        return [f"{title}: the log has no decode step, so nothing says that a graph was replayed"]
    if with_graphs.replays == 0:
        return [f"{title}: no CUDA graph was replayed in {with_graphs.steps} logged steps"]
    problems = []
    if missing := with_graphs.never_replayed(SIZES):
        sizes = ", ".join(map(str, missing))
        problems.append(f"{title}: no CUDA graph was replayed for batch size {sizes}")
    if eager.replays:
        problems.append(f"{title}: the eager engine replayed {eager.replays} CUDA graphs")
    return problems


def compare_graphs(
    context: Context,
    title: str,
    deterministic: bool,
    asked: Sequence[Sequence[Ask]],
    problems: list[str],
) -> Part:
    """One kind of text; adds to `problems` what `replay_problems` finds."""
    eager = EngineSpec(
        DDTREE, context.dtype, graphs=False, deterministic=deterministic, log_every_step=True
    )
    replayed = ask_all(context.bench, replace(eager, graphs=True), asked)
    plain = ask_all(context.bench, eager, asked)
    problems += replay_problems(title, replayed.graphs, plain.graphs)
    return compare_answered(context.bench, title, eager, asked, replayed, plain)


def run(context: Context) -> Outcome:
    context.require_gpu()
    problems: list[str] = []
    runs = {
        title: partial(compare_graphs, context, title, deterministic, asked, problems)
        for title, deterministic, asked in context.greedy_and_seeded(SIZES)
    }
    outcome = judge_runs(runs, ("graphs", "eager"), problems)
    outcome.summary += f"; {_replays(outcome.figures)}"
    return outcome


def _replays(parts: dict[str, Any]) -> str:
    steps = [n for part in parts.values() for n in part["graph_steps"]["left"].values()]
    replayed = sum(n["replayed"] for n in steps)
    return f"{replayed} of {replayed + sum(n['eager'] for n in steps)} logged steps replayed"
