# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run: one bad check leaves the others, and every end leaves a report."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from demo.failure import Failure
from gpucheck.checks import Check
from gpucheck.report import JSON, MARKDOWN, Report
from gpucheck.run import run_all, run_one
from gpucheck.states import NotRun, Outcome, State, count, exit_code
from made_up_engines import SERIES, machine

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "scripts"


def passes(context) -> Outcome:
    return Outcome(State.PASSED, "all equal", figures={"n": 3})


def raises(error):
    def run(context):
        raise error

    return run


def checks(**runs) -> list[Check]:
    return [Check(name, f"what {name} compares", run) for name, run in runs.items()]


def report(folder: Path, some: list[Check]) -> Report:
    titles = {check.name: check.title for check in some}
    return Report(folder, "2026-01-02", machine().as_json(), SERIES, {"budget": 31}, titles)


def written(folder: Path) -> dict:
    return json.loads((folder / JSON).read_text())


def test_a_bad_check_leaves_the_others(tmp_path, capsys):
    some = checks(
        first=passes,
        fails=raises(Failure("an engine ended", ("its last words",))),
        broken=raises(KeyError("spec")),
        absent=raises(NotRun("one GPU")),
        last=passes,
    )
    made = report(tmp_path, some)
    run_all(some, None, made)
    states = {name: outcome.state for name, outcome in made.outcomes.items()}
    assert states == {
        "first": State.PASSED,
        "fails": State.FAILED,
        "broken": State.FAILED,
        "absent": State.NOT_RUN,
        "last": State.PASSED,
    }
    found = written(tmp_path)
    assert found["complete"] and not found["interrupted"]
    assert found["summary"] == {"passed": 2, "failed": 2, "not run": 1, "exit_code": 1}
    assert "its last words" in found["checks"]["fails"]["details"][0]
    assert "KeyError" in found["checks"]["broken"]["summary"]
    assert found["checks"]["absent"]["summary"] == "one GPU"
    shown = capsys.readouterr().out
    assert "NOT RUN: one GPU" in shown and "[3/5] broken" in shown


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ((State.PASSED, State.PASSED), 0),
        ((State.PASSED, State.NOT_RUN), 0),
        ((State.PASSED, State.FAILED, State.NOT_RUN), 1),
        ((State.NOT_RUN, State.NOT_RUN), 3),
        ((), 3),
    ],
)
def test_exit_codes(states, code):
    outcomes = {str(i): Outcome(state, "") for i, state in enumerate(states)}
    assert exit_code(outcomes) == code
    assert sum(count(outcomes).values()) == len(states)


def test_a_check_takes_time():
    slow = run_one(Check("slow", "", lambda context: time.sleep(0.05) or passes(context)), None)
    assert 0.05 <= slow.seconds < 5


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(143)])
def test_an_interruption_writes_what_is_finished(tmp_path, stop):
    some = checks(first=passes, second=raises(stop), third=passes)
    made = report(tmp_path, some)
    with pytest.raises(type(stop)):
        run_all(some, None, made)
    found = written(tmp_path)
    assert found["interrupted"]
    states = {name: (c["state"], c["summary"]) for name, c in found["checks"].items()}
    assert states["first"] == ("passed", "all equal")
    assert states["second"] == states["third"] == ("not run", "interrupted")
    assert "was interrupted" in (tmp_path / MARKDOWN).read_text()


def test_the_report_is_written_after_every_check(tmp_path):
    seen = []

    def looks(context):
        seen.append(written(tmp_path))
        return passes(context)

    some = checks(first=passes, second=looks)
    run_all(some, None, report(tmp_path, some))
    assert list(seen[0]["checks"]) == ["first"] and not seen[0]["complete"]


def test_a_report_that_cannot_be_written_leaves_the_last_one(tmp_path):
    """NaN is no JSON: neither file may have changed."""
    some = checks(first=passes, second=lambda c: Outcome(State.PASSED, "", [], {"x": float("nan")}))
    with pytest.raises(ValueError):
        run_all(some, None, report(tmp_path, some))
    assert list(written(tmp_path)["checks"]) == ["first"]
    assert "second" not in (tmp_path / MARKDOWN).read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == [JSON, MARKDOWN]


# The real command, on a made-up machine, with a check that waits for ever.
COMMAND = """
    import sys, time
    sys.path[:0] = {paths!r}
    from gpucheck import cli
    from gpucheck.checks import Check
    from gpucheck.states import Outcome, State
    from made_up_engines import machine
    def waits(context):
        print("waiting", flush=True)
        time.sleep(600)
    cli.CHECKS = (
        Check("quick", "", lambda context: Outcome(State.PASSED, "done")),
        Check("waits", "", waits),
    )
    cli.examine = lambda device: machine()
    cli.main()
"""


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_ctrl_c_ends_the_command_with_a_report(tmp_path, signum, code):
    program = textwrap.dedent(COMMAND.format(paths=[str(HERE), str(SCRIPTS)]))
    process = subprocess.Popen(
        [sys.executable, "-c", program, "--output", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "waiting" in line:
            break
    os.kill(process.pid, signum)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "1 passed, 0 failed, 1 not run" in shown
    assert "Traceback" not in errors
    found = written(tmp_path)
    assert {n: c["state"] for n, c in found["checks"].items()} == {
        "quick": "passed",
        "waits": "not run",
    }
