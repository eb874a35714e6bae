# SPDX-License-Identifier: Apache-2.0
"""The command itself: what it refuses, in one line, and one real run on this machine's CPU."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from demo.failure import UsageError
from gpucheck import cli
from gpucheck.checks import CHECKS

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ROOT / "scripts" / "gpu_check.sh"


def gpu_check(*arguments, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMMAND, "--python", sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
    )


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--only", "everything"], "everything"),
        (["--only"], "--only"),
        (["--tp", "1"], "at least 2"),
        (["--budget", "0"], "at least 1"),
        (["--minutes", "0"], "above 0"),
        (["--minutes", "nan"], "above 0"),
        (["--minutes", "soon"], "'soon'"),
        (["--dtype", "int8"], "int8"),
        (["--device", "tpu"], "tpu"),
        (["--graphs"], "--graphs"),
        (["--model-path", "owner/name"], "both or neither"),
        (["--model-path", "/no/such", "--draft-model-path", "/no/such"], "/no/such"),
        (["--model-path", "models", "--draft-model-path", "models"], "found models"),
    ],
)
def test_wrong_options_are_one_line(arguments, found, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(UsageError) as raised:
        cli.parse(arguments)
    assert found in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--only", "everything"], "everything"),
        (["--output", "/proc/none/such", "--only", "tp"], "/proc/none/such"),
        (["--release", "0.0.1", "--list"], "0.0.1"),
        (["--python"], "expected a value"),
        (["--python", "/no/such/python"], "/no/such/python"),
    ],
)
def test_the_command_ends_with_one_line(arguments, found):
    result = gpu_check(*arguments)
    assert result.returncode == 2, result
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert found in line


def test_what_follows_two_dashes_is_for_the_servers():
    options, extra = cli.parse(["--budget", "7", "--", "--trust-remote-code", "--", "x"])
    assert options.budget == 7 and extra == ("--trust-remote-code", "--", "x")
    assert options.model_path.endswith("models/tiny/target")


def test_the_checks_are_listed():
    result = gpu_check("--list")
    assert result.returncode == 0
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert names == [check.name for check in CHECKS]


def test_help_names_the_exit_codes():
    text = gpu_check("--help").stdout
    for part in ("--only", "--minutes", "exit codes", "--python", "3 none could be run"):
        assert part in text


def test_a_run_in_which_nothing_can_run(tmp_path):
    """From another folder, with a relative output, on this machine's CPU."""
    chosen = ["graphs", "flashinfer", "sampling-kernel"]
    result = gpu_check("--device", "cpu", "--output", "out", "--only", *chosen, cwd=tmp_path)
    assert result.returncode == 3, result.stdout + result.stderr
    found = json.loads((tmp_path / "out" / "gpu-check.json").read_text())
    checks = {name: (c["state"], c["summary"]) for name, c in found["checks"].items()}
    assert set(checks) == set(chosen)
    assert all(state == "not run" and reason for state, reason in checks.values())
    assert found["summary"] == {"passed": 0, "failed": 0, "not run": 3, "exit_code": 3}
    assert len(found["series"]["applied"]) == found["series"]["patches"] > 0
    assert "0 passed, 0 failed, 3 not run" in result.stdout
    assert "0 passed, 0 failed, 3 not run" in (tmp_path / "out" / "gpu-check.md").read_text()


def test_a_python_without_sglang_gets_the_unpacked_one(tmp_path):
    """As the environment of the CUDA lock; here the Python that the virtual one was made with."""
    release = importlib.metadata.version("sglang")
    chosen = ("--release", release, "--python", sys._base_executable, "--device", "cpu")
    result = gpu_check(*chosen, "--output", tmp_path, "--only", "graphs")
    assert result.returncode == 3, result.stdout + result.stderr
    found = json.loads((tmp_path / "gpu-check.json").read_text())
    assert found["machine"]["packages"]["sglang"] == found["series"]["release"] == release
    assert found["series"]["applied"]
