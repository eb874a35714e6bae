# SPDX-License-Identifier: Apache-2.0
"""What the scheduler's log says about CUDA graphs.

After a decode step it writes how many requests ran and whether the target's forward was the replay
of a graph. A comparison of graphs with eager steps in which nothing was replayed has compared
nothing; so these lines decide whether it counts.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_STEP = re.compile(r"Decode batch\b.*#running-req: (\d+),.*cuda graph: (True|False)")


@dataclass
class GraphLog:
    """Logged decode steps by number of running requests."""

    replayed: Counter[int] = field(default_factory=Counter)
    eager: Counter[int] = field(default_factory=Counter)

    @property
    def replays(self) -> int:
        return self.replayed.total()

    @property
    def steps(self) -> int:
        return self.replays + self.eager.total()

    def never_replayed(self, batch_sizes: tuple[int, ...]) -> list[int]:
        """Which of these batch sizes no replay was logged for."""
        return [size for size in batch_sizes if not self.replayed[size]]

    def as_json(self) -> dict[str, dict[str, int]]:
        """Steps by batch size."""
        sizes = sorted(self.replayed | self.eager)
        return {str(n): {"replayed": self.replayed[n], "eager": self.eager[n]} for n in sizes}


def read_graph_log(text: str) -> GraphLog:
    """Count the decode steps of a log."""
    found = GraphLog()
    for running, replayed in _STEP.findall(text):
        (found.replayed if replayed == "True" else found.eager)[int(running)] += 1
    return found
