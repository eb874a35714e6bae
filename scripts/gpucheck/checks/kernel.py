# SPDX-License-Identifier: Apache-2.0
"""sgl_kernel's sampled walk accepts what the PyTorch rule accepts, and both draw its law.

The work is done by `gpucheck.walks`, in a process of its own: a kernel that fails takes the CUDA
context of its process with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from demo.failure import Failure

from ..context import Context
from ..states import NotRun, Outcome, State

_PATIENCE_S = 600


def judge(figures: dict) -> Outcome:
    """An outcome from what `gpucheck.walks` has counted."""
    problems = figures["problems"]
    walks = figures["walks"]
    summary = (
        f"{walks['equal']:,} of {walks['compared']:,} walks equal, "
        f"{walks['at_a_boundary']} part where a coin is within rounding of a boundary; "
        f"law of (path, bonus): z {figures['law']['greatest_z']:.1f} at most"
    )
    state = State.FAILED if problems else State.PASSED
    return Outcome(state, f"{problems[0]}; {summary}" if problems else summary, problems, figures)


def run(context: Context) -> Outcome:
    if context.machine.versions["packages"]["sgl_kernel"] is None:
        raise NotRun("no sgl_kernel")
    context.require_gpu()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gpucheck.walks"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env=os.environ | {"SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1"},
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"expected an answer within {_PATIENCE_S} s, found none") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Failure(f"expected the kernel to run, found: {lines[-1]}", tuple(lines[-15:]))
    # SGLang and its libraries may have printed something before it.
    return judge(json.loads(done.stdout.strip().splitlines()[-1]))
