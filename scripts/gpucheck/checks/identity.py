# SPDX-License-Identifier: Apache-2.0
"""DDTREE writes what the target writes without speculation: alone and in a batch."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from demo.methods import DDTREE, PLAIN

from ..compare import compare, judge_runs
from ..context import Context
from ..served import GREATEST_BATCH, EngineSpec
from ..states import Outcome

_SIZES = (1, 1, 1, GREATEST_BATCH)


def run(context: Context) -> Outcome:
    parts = {}
    for title, deterministic, asked in context.greedy_and_seeded(_SIZES):
        plain = EngineSpec(PLAIN, context.dtype, deterministic=deterministic)
        sides = plain, replace(plain, method=DDTREE)
        parts[title] = partial(compare, context.bench, title, sides, asked)
    return judge_runs(parts, (PLAIN, DDTREE))
