# SPDX-License-Identifier: Apache-2.0
"""Greedy DDTREE writes the same with triton's and with FlashInfer's attention.

Seeds are asked of deterministic servers, and those refuse FlashInfer.
"""

from __future__ import annotations

from dataclasses import replace

from demo.methods import DDTREE

from ..compare import ask_all, compare_answered, judge
from ..context import Context
from ..engine import Refused
from ..questions import batches
from ..served import GREATEST_BATCH, EngineSpec
from ..states import NotRun, Outcome

_SIZES = (1, 3, GREATEST_BATCH)
# FlashInfer has no attention kernels for float32.
_HALF = "bfloat16"


def run(context: Context) -> Outcome:
    context.require_gpu()
    dtype = _HALF if context.dtype == "float32" else context.dtype
    asked = batches(context.ids, _SIZES, context.new_tokens)
    triton = EngineSpec(DDTREE, dtype)
    # FlashInfer first: if the server refuses it there is nothing to compare.
    try:
        flashinfer = ask_all(context.bench, replace(triton, attention="flashinfer"), asked)
    except Refused as refusal:
        raise NotRun(f"the server refuses FlashInfer: {refusal}") from None
    on_triton = ask_all(context.bench, triton, asked)
    part = compare_answered(context.bench, "greedy", triton, asked, on_triton, flashinfer)
    outcome = judge([part], ("triton", "FlashInfer"))
    outcome.summary += f"; in {dtype}"
    return outcome
