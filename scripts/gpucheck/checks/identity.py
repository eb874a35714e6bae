# SPDX-License-Identifier: Apache-2.0
"""Greedy DDTREE writes what the target writes without speculation: alone and in a batch."""

from __future__ import annotations

from demo.methods import DDTREE, PLAIN

from ..compare import compare, judge
from ..context import Context
from ..questions import batches
from ..served import GREATEST_BATCH, EngineSpec
from ..states import Outcome

_SIZES = (1, 1, 1, GREATEST_BATCH)


def run(context: Context) -> Outcome:
    asked = batches(context.ids, _SIZES, context.new_tokens)
    sides = EngineSpec(PLAIN, context.dtype), EngineSpec(DDTREE, context.dtype)
    return judge([compare(context.bench, "greedy", sides, asked)], (PLAIN, DDTREE))
