# SPDX-License-Identifier: Apache-2.0
"""The three ways of decoding that are compared, as SGLang command lines."""

from __future__ import annotations

import sys
from pathlib import Path

from .checkout import Models
from .ports import LOOPBACK

PLAIN, DFLASH, DDTREE = METHODS = ("no speculation", "DFLASH", "DDTREE")
BUDGET = 31
# fp32: in bf16 the sums of a batched and of a single row differ enough to change a token.
CPU_FLAGS = ("--device", "cpu", "--attention-backend", "torch_native", "--dtype", "float32")
# Without it an idle scheduler keeps a core busy.
IDLE_FLAG = "--sleep-on-idle"


def speculation_flags(method: str, draft: Path | str, budget: int = BUDGET) -> list[str]:
    """What makes a server decode by one of `METHODS`."""
    if method == PLAIN:
        return []
    flags = ["--speculative-algorithm", method, "--speculative-draft-model-path", str(draft)]
    if method == DDTREE:
        flags += ["--speculative-ddtree-budget", str(budget)]
    return flags


def launch_command(method: str, models: Models, port: int) -> list[str]:
    """The command of a server on a CPU that decodes by one of `METHODS`."""
    command = [sys.executable, "-m", "sglang.launch_server"]
    command += ["--model-path", str(models.target), "--served-model-name", "tiny"]
    command += ["--host", LOOPBACK, "--port", str(port)]
    command += CPU_FLAGS
    command += ["--max-total-tokens", "8192", "--max-running-requests", "8", "--random-seed", "0"]
    # A request's seed is used on such a server only.
    command += [IDLE_FLAG, "--enable-deterministic-inference"]
    return command + speculation_flags(method, models.draft)
