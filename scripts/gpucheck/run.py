# SPDX-License-Identifier: Apache-2.0
"""Run the checks one after another; one that fails leaves the others alone."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence

from demo.failure import Failure
from demo.signals import ending_signals_ignored

from .checks import Check
from .context import Context
from .report import Report
from .states import NotRun, Outcome, State

_TRACEBACK_LINES = 12
INTERRUPTED = "interrupted"


def run_one(check: Check, context: Context) -> Outcome:
    """Run a check, whatever becomes of it. Only an interruption gets through."""
    begin = time.monotonic()
    try:
        outcome = check.run(context)
    except NotRun as reason:
        outcome = Outcome(State.NOT_RUN, str(reason))
    except Failure as failure:
        outcome = Outcome(State.FAILED, str(failure), [f"    {x}" for x in failure.details])
    except Exception as error:
        lines = traceback.format_exc().strip().splitlines()[-_TRACEBACK_LINES:]
        summary = f"the check itself ended with {type(error).__name__}: {error}"
        outcome = Outcome(State.FAILED, summary, [f"    {x}" for x in lines])
    outcome.seconds = time.monotonic() - begin
    return outcome


def run_all(checks: Sequence[Check], context: Context, report: Report) -> None:
    """Run the checks and write the report after each.

    Raises:
        KeyboardInterrupt, SystemExit: the run was stopped; what had ended is written.
    """
    try:
        for number, check in enumerate(checks, 1):
            print(f"[{number}/{len(checks)}] {check.name}: {check.title}", flush=True)
            outcome = run_one(check, context)
            report.outcomes[check.name] = outcome
            report.write()
            print(f"  {outcome.state.value.upper()}: {outcome.summary}", flush=True)
    except (KeyboardInterrupt, SystemExit):
        with ending_signals_ignored():
            report.interrupted = True
            for check in checks:
                report.outcomes.setdefault(check.name, Outcome(State.NOT_RUN, INTERRUPTED))
            report.write()
        raise
