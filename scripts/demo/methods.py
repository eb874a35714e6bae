# SPDX-License-Identifier: Apache-2.0
"""The three ways of decoding that are compared, as SGLang command lines."""

from __future__ import annotations

import sys

from .checkout import Models
from .ports import LOOPBACK

PLAIN, DFLASH, DDTREE = METHODS = ("no speculation", "DFLASH", "DDTREE")
BUDGET = 31


def launch_command(method: str, models: Models, port: int) -> list[str]:
    """The command of a server on a CPU that decodes by one of `METHODS`."""
    command = [sys.executable, "-m", "sglang.launch_server"]
    command += ["--model-path", str(models.target), "--served-model-name", "tiny"]
    command += ["--host", LOOPBACK, "--port", str(port)]
    # fp32: in bf16 the sums of a batched and of a single row differ enough to change a token.
    command += ["--device", "cpu", "--attention-backend", "torch_native", "--dtype", "float32"]
    command += ["--max-total-tokens", "8192", "--max-running-requests", "8", "--random-seed", "0"]
    # Without it an idle scheduler keeps a core busy.
    command += ["--sleep-on-idle"]
    # A request's seed is used on such a server only.
    command += ["--enable-deterministic-inference"]
    if method != PLAIN:
        command += ["--speculative-algorithm", method]
        command += ["--speculative-draft-model-path", str(models.draft)]
    if method == DDTREE:
        command += ["--speculative-ddtree-budget", str(BUDGET)]
    return command
