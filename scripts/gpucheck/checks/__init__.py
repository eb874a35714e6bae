# SPDX-License-Identifier: Apache-2.0
"""The checks, in the order in which they run: what is quick and tells most comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..context import Context
from ..states import Outcome
from . import backends, graphs, identity, kernel, ranks, speed


@dataclass(frozen=True)
class Check:
    """A check by its name on the command line.

    Attributes:
        title: what it compares, for --list and the reports.
        run: raises NotRun where this machine cannot run it.
    """

    name: str
    title: str
    run: Callable[[Context], Outcome]


CHECKS = (
    Check("identity", "DDTREE against no speculation, greedy and seeded", identity.run),
    Check("graphs", "DDTREE with CUDA graphs against eager, greedy and seeded", graphs.run),
    Check("flashinfer", "DDTREE on triton against FlashInfer, greedy", backends.run),
    Check("tp", "DDTREE on several ranks against one, greedy and seeded", ranks.run),
    Check("sampling-kernel", "sgl_kernel's sampled walk against the PyTorch rule", kernel.run),
    Check("speed", "no speculation, DFLASH and DDTREE under equal scheduling", speed.run),
)
