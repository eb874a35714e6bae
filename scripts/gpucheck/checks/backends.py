# SPDX-License-Identifier: Apache-2.0
"""DDTREE writes the same with triton's and with FlashInfer's attention."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from demo.methods import DDTREE

from ..compare import Part, ask_all, compare_answered, judge_runs
from ..context import Context
from ..engine import Refused
from ..questions import batches
from ..served import GREATEST_BATCH, EngineSpec
from ..states import NotRun, Outcome

_SIZES = (1, 3, GREATEST_BATCH)
# FlashInfer has no attention kernels for float32.
_HALF = "bfloat16"


def compare_backends(context: Context, dtype: str, title: str, seeded: bool) -> Part:
    """Greedy or seeded text.

    Raises:
        NotRun: the server refuses FlashInfer.
    """
    asked = batches(context.ids, _SIZES, context.new_tokens, seeded)
    triton = EngineSpec(DDTREE, dtype, deterministic=seeded)
    # FlashInfer first: if the server refuses it there is nothing to compare.
    try:
        flashinfer = ask_all(context.bench, replace(triton, attention="flashinfer"), asked)
    except Refused as refusal:
        raise NotRun(f"the server refuses FlashInfer: {refusal}") from None
    on_triton = ask_all(context.bench, triton, asked)
    return compare_answered(context.bench, title, triton, asked, on_triton, flashinfer)


def run(context: Context) -> Outcome:
    context.require_gpu()
    dtype = _HALF if context.dtype == "float32" else context.dtype
    runs = {
        title: partial(compare_backends, context, dtype, title, seeded)
        for title, seeded in (("greedy", False), ("seeded", True))
    }
    outcome = judge_runs(runs, ("triton", "FlashInfer"))
    outcome.summary += f"; in {dtype}"
    return outcome
