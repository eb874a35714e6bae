# SPDX-License-Identifier: Apache-2.0
"""What the machine lacks is said before anything is created, in one line for each lack."""

from pathlib import Path

import pytest
from checkout import BASE_PYTHON, OTHER, RELEASE, Checkout


def refusals(checkout: Checkout, *arguments: str) -> list[str]:
    """The lines of a refused run, which must have created nothing."""
    before = sorted(checkout.root.rglob("*"))
    result = checkout.run(*arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert sorted(checkout.root.rglob("*")) == before
    return [line.removeprefix("bootstrap: ") for line in result.stderr.splitlines()]


def python_stub(checkout: Checkout, version: str) -> Path:
    return checkout.replace_tool("python3", f"echo {version}")


@pytest.mark.parametrize("version", ["2.7.18", "3.9.19", "3.14.0"])
def test_a_python_out_of_range_is_refused(fresh, version):
    python_stub(fresh, version)
    (line,) = refusals(fresh)
    assert line.startswith(f"Python: expected 3.10 to 3.13, found python3 {version}; ")


def test_no_python_is_refused(fresh):
    fresh.replace_tool("python3", None)
    (line,) = refusals(fresh)
    assert line.startswith("Python: expected 3.10 to 3.13, found none; ")


def test_the_chosen_python_is_the_one_that_is_checked(fresh):
    fresh.variables["PYTHON"] = str(fresh.replace_tool("python3.9", "echo 3.9.19"))
    (line,) = refusals(fresh)
    assert "found 3.9.19" in line
    fresh.variables["PYTHON"] = "/no/such/python"
    (line,) = refusals(fresh)
    assert "found nothing that runs (PYTHON=/no/such/python)" in line


def test_a_python_without_venv_modules_is_refused(fresh, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['ensurepip'] = None\n")
    fresh.replace_tool("python3", f'PYTHONPATH={tmp_path} exec {BASE_PYTHON} "$@"')
    (line,) = refusals(fresh)
    assert "found no ensurepip; install your system's python3-venv package" in line


@pytest.mark.parametrize(
    ("tool", "script", "expected"),
    [
        ("git", None, "git: expected 2.38 or newer, found none; "),
        ("git", "echo git version 2.37.9", "git: expected 2.38 or newer, found 2.37; "),
        ("git", "echo git version 1.99.0", "git: expected 2.38 or newer, found 1.99; "),
        ("make", None, "make: expected GNU make on PATH, found none; "),
        ("uname", "[[ $1 == -s ]] && echo Linux || echo arm64", "platform: expected Linux x86_64"),
        ("getconf", "echo glibc 2.31", "C library: expected glibc 2.34 or newer, found glibc 2.31"),
        ("getconf", "exit 1", "C library: expected glibc 2.34 or newer, found another C library"),
    ],
)
def test_each_lack_is_one_line(fresh, tool, script, expected):
    fresh.replace_tool(tool, script)
    (line,) = refusals(fresh)
    assert line.startswith(expected)


@pytest.mark.parametrize("version", ["git version 2.38.0", "git version 3.0.1.windows.2"])
def test_a_git_that_is_new_enough_is_no_lack(fresh, version):
    fresh.replace_tool("git", f"echo {version}")
    fresh.replace_tool("make", None)
    assert [line.split(":")[0] for line in refusals(fresh)] == ["make"]


def free_disk(checkout: Checkout, megabytes: int) -> None:
    row = f"/dev/disk 9999999999 1 {megabytes * 1024} 1% /"
    checkout.replace_tool("df", f"echo header; echo {row}")


def test_a_full_disk_is_refused_with_both_numbers(fresh):
    free_disk(fresh, 1234)
    (line,) = refusals(fresh)
    assert line.startswith(f"disk: expected 3500 MB free in {fresh.root}")
    assert "found 1234 MB" in line


def test_a_disk_too_small_for_the_cuda_build_is_refused_when_only_that_is_found(fresh):
    """The build is known only after pip has been asked; nothing may stay behind then either."""
    free_disk(fresh, 4000)
    next(fresh.wheels.glob("torch-9.0+cpu*")).unlink()
    (line,) = refusals(fresh)
    assert line.startswith(f"disk: expected 12000 MB free in {fresh.root} (pip finds only the CUDA")


def test_everything_that_is_missing_is_said_at_once(fresh):
    python_stub(fresh, "3.9.19")
    free_disk(fresh, 5)
    fresh.replace_tool("git", None)
    fresh.replace_tool("make", None)
    subjects = [line.split(":")[0] for line in refusals(fresh)]
    assert subjects == ["Python", "git", "make", "disk"]


def test_a_venv_of_someone_else_is_left_alone(fresh):
    (fresh.venv / "bin").mkdir(parents=True)
    (fresh.venv / "precious").write_text("mine")
    (line,) = refusals(fresh)
    assert line.startswith(".venv: expected none, or one that this script made, found another; ")
    assert (fresh.venv / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--wat"], "arguments: expected --release RELEASE or --help, found '--wat'; "),
        (["--release"], f"--release: expected one of {OTHER}, {RELEASE}, found nothing; "),
        (["--release", "0.0"], f"--release: expected one of {OTHER}, {RELEASE}, found '0.0'; "),
        (["--release", ".*"], f"--release: expected one of {OTHER}, {RELEASE}, found '.*'; "),
    ],
)
def test_wrong_arguments(fresh, arguments, expected):
    (line,) = refusals(fresh, *arguments)
    assert line.startswith(expected)


def test_a_release_without_pins_is_refused(fresh):
    fresh.pins(f"cpu-{OTHER}").unlink()
    (line,) = refusals(fresh, "--release", OTHER)
    assert line.startswith(f"packages: expected requirements/cpu-{OTHER}.txt, found none; write ")


def test_help_says_what_it_does_and_needs(fresh):
    result = fresh.run("--help")
    assert result.returncode == 0
    assert result.stdout.startswith("usage: scripts/bootstrap.sh")
    assert "3500 MB" in result.stdout
