# SPDX-License-Identifier: Apache-2.0
"""DDTREE on several tensor-parallel ranks writes what it writes on one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from demo.methods import DDTREE

from ..compare import compare, judge_runs
from ..context import Context
from ..served import GREATEST_BATCH, EngineSpec
from ..states import NotRun, Outcome

_SIZES = (1, GREATEST_BATCH)


def ranks_to_run(context: Context) -> int:
    """How many ranks: what was asked for, else two.

    Raises:
        NotRun: there are fewer devices.
    """
    machine = context.machine
    have = len(machine.cards) if machine.on_gpu else len(machine.cores)
    ranks = context.tp or 2
    if have < ranks:
        what = "GPU" if machine.on_gpu else "CPU core"
        raise NotRun(f"{'one' if have == 1 else have} {what}{'s' * (have != 1)}, {ranks} ranks")
    return ranks


def run(context: Context) -> Outcome:
    ranks = ranks_to_run(context)
    parts = {}
    for title, deterministic, asked in context.greedy_and_seeded(_SIZES):
        one = EngineSpec(DDTREE, context.dtype, deterministic=deterministic)
        sides = one, replace(one, tp=ranks)
        parts[title] = partial(compare, context.bench, title, sides, asked)
    return judge_runs(parts, ("one rank", f"{ranks} ranks"))
