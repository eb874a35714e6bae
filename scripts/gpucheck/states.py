# SPDX-License-Identifier: Apache-2.0
"""What a check can end as. "Not run" is a state of its own: it is never a pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class State(str, Enum):
    """The value is what the reports call it."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


class NotRun(Exception):
    """Raised by a check that this machine, or this server, cannot run; the message says why."""


@dataclass
class Outcome:
    """How one check ended.

    Attributes:
        summary: one line: what was compared, or why it failed or was not run.
        details: further lines, such as each difference, or the end of a log.
        figures: what was measured, as JSON values.
        seconds: wall time.
    """

    state: State
    summary: str
    details: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def count(outcomes: dict[str, Outcome]) -> dict[str, int]:
    """How many checks ended in each state; every state is there."""
    return {s.value: sum(o.state is s for o in outcomes.values()) for s in State}


def exit_code(outcomes: dict[str, Outcome]) -> int:
    """0: all that ran passed; 1: one failed; 3: none ran, so nothing passed either."""
    states = {outcome.state for outcome in outcomes.values()}
    if State.FAILED in states:
        return 1
    return 0 if State.PASSED in states else 3
