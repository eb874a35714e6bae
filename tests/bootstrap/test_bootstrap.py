# SPDX-License-Identifier: Apache-2.0
"""A first run, a second one, and runs after something was interrupted, changed or failed."""

import os
import signal
import time
from pathlib import Path

import pytest
from checkout import BASE_PYTHON, RELEASE, Checkout

TORCHVISION_HOOK = "print('cpu_profile.torchvision_ops' in __import__('sys').modules)"


def errors(checkout: Checkout, code: int) -> str:
    """The one line of a run that must fail with `code`."""
    result = checkout.run()
    assert result.returncode == code, result.stdout + result.stderr
    (line,) = result.stderr.splitlines()
    return line


def repaired(checkout: Checkout) -> str:
    """The output of a run that must end with everything in place."""
    result = checkout.run()
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert result.stdout.splitlines()[-1].startswith("bootstrap: ready after ")
    assert not (checkout.venv / "tmp").exists()
    assert checkout.python("import toy_cpu, toy_dev, torch; print(torch.build)") == "cpu"
    return result.stdout


def calls(checkout: Checkout) -> list[str]:
    return (checkout.root / "patch-tool.calls").read_text().splitlines()


def files(checkout: Checkout) -> dict[Path, int]:
    """Modification times, without the note that the toy patch tool keeps of its calls."""
    paths = (p for p in checkout.root.rglob("*") if p.name != "patch-tool.calls")
    return {path: path.lstat().st_mtime_ns for path in paths}


def test_the_first_run_numbers_its_steps_and_leaves_everything_in_place(finished_once):
    lines = finished_once.first_output.splitlines()
    steps = [line.split("]")[0] for line in lines if line.startswith("[")]
    assert steps == ["[1/5", "[2/5", "[3/5", "[4/5", "[5/5"]
    found = finished_once.python("import sglang; print(sglang.__file__)")
    assert found == str(finished_once.root / f"sglang/{RELEASE}/python/sglang/__init__.py")
    assert finished_once.python(TORCHVISION_HOOK) == "True"


def test_the_second_run_does_nothing_and_says_so(finished):
    finished.run()  # at its new place, Python may still write byte code
    before, calls_before = files(finished), calls(finished)
    result = finished.run()
    assert result.returncode == 0
    (line,) = result.stdout.splitlines()
    assert line.startswith("bootstrap: nothing to do: Python 3.")
    assert line.endswith(f"torch 9.0+cpu, sglang {RELEASE} with its patches")
    assert files(finished) == before
    assert calls(finished)[len(calls_before) :] == [f"--release {RELEASE} --status --json"]


def test_a_moved_checkout_imports_its_own_sglang(finished):
    assert finished.run().stdout.startswith("bootstrap: nothing to do")
    found = Path(finished.python("import sglang; print(sglang.__file__)"))
    assert found.is_relative_to(finished.root)


def test_only_what_is_missing_is_done(finished):
    (finished.root / f"sglang/{RELEASE}/applied").unlink()
    output = repaired(finished)
    assert "[2/5] the packages in .venv are current" in output
    # Applied, and looked at again: a missing file is not put back by applying.
    assert calls(finished)[-2:] == [f"--release {RELEASE}", f"--release {RELEASE} --status --json"]


@pytest.mark.parametrize("name", ["pip", f"cpu-{RELEASE}", "dev", "torch-cpu", "torch-cuda"])
def test_a_change_of_any_pin_is_seen(finished, name):
    (pins,) = finished.root.glob(f"requirements/{name}*.txt")
    pins.write_text(f"# changed\n{pins.read_text()}")
    finished.replace_tool("make", None)  # so that it stops before it does something
    assert errors(finished, 2).startswith("bootstrap: make: ")


def test_changed_pins_make_the_environment_anew(finished):
    stray = finished.venv / "stray"
    stray.touch()
    pins = finished.pins("dev")
    pins.write_text(f"# changed\n{pins.read_text()}")
    assert "making it anew" in repaired(finished)
    assert not stray.exists()
    assert finished.run().stdout.startswith("bootstrap: nothing to do")


def test_a_python_that_is_gone_makes_the_environment_anew(finished):
    python = finished.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/no/such/python")
    assert "making it anew" in repaired(finished)


def test_a_package_with_another_hash_is_refused_and_a_later_run_repairs(fresh):
    pins = fresh.pins(f"cpu-{RELEASE}")
    right = pins.read_text()
    pins.write_text(right.split("sha256:")[0] + "sha256:" + "0" * 64 + "\n")
    line = errors(fresh, 1)
    assert line.startswith("bootstrap: packages: expected pip to install the pinned ones, found: ")
    assert "run this again" in line
    pins.write_text(right)
    assert "an earlier run did not finish" in repaired(fresh)


def test_no_torch_to_be_found_is_one_line(fresh):
    for wheel in fresh.wheels.glob("torch-*"):
        wheel.unlink()
    assert errors(fresh, 1).startswith("bootstrap: torch: expected pip to find torch==9.0, found: ")


def test_a_cuda_build_is_taken_where_there_is_no_cpu_build(fresh):
    next(fresh.wheels.glob("torch-9.0+cpu*")).unlink()
    result = fresh.run()
    assert result.returncode == 0, result.stderr
    assert "pip finds only the CUDA build of torch" in result.stdout
    assert fresh.python("import torch; print(torch.build)") == "cuda"
    assert fresh.python(TORCHVISION_HOOK) == "False"


def test_an_unknown_cpu_build_is_not_taken(fresh):
    """Its hash is not pinned, so the build that PyPI has is installed instead."""
    fresh.pins("torch-cpu-9.0").write_text(f"torch==9.0+cpu --hash=sha256:{'0' * 64}\n")
    result = fresh.run()
    assert result.returncode == 0, result.stderr
    assert fresh.python("import torch; print(torch.build)") == "cuda"


def test_the_exit_code_of_the_unpacking_is_passed_on(finished):
    (finished.root / f"sglang/{RELEASE}/applied").unlink()
    (finished.root / "no-wheel").touch()
    assert finished.run().returncode == 4
    (finished.root / "no-wheel").unlink()
    repaired(finished)


def test_an_import_that_fails_is_one_line(finished):
    (finished.root / f"sglang/{RELEASE}/applied").unlink()
    (finished.root / f"sglang/{RELEASE}/python/sglang/__init__.py").write_text("import nonsense\n")
    line = errors(finished, 1)
    assert "found: ModuleNotFoundError: No module named 'nonsense'; see .venv/bootstrap.log" in line


def test_settings_for_other_environments_do_not_leak_in(fresh, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "torch.py").write_text("raise SystemExit('the wrong torch')\n")
    fresh.variables |= {
        "PIP_TARGET": str(elsewhere),
        "PYTHONPATH": str(elsewhere),
        "PYTHONHOME": "/no/such/folder",
    }
    repaired(fresh)
    assert [p.name for p in elsewhere.iterdir()] == ["torch.py"]


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


def stuck(checkout: Checkout) -> Path:
    """Let `python3 -m venv` write its process id to the returned path and then hang."""
    note = checkout.bin.parent / "venv.pid"
    hanging = f"""\
if [[ "$1 $2" == "-m venv" ]]; then echo $$ >{note}.new; mv {note}.new {note}; exec sleep 600; fi
exec {BASE_PYTHON} "$@\""""
    checkout.replace_tool("python3", hanging)
    return note


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_is_repaired_by_the_next(fresh, new_venv, number):
    note = stuck(fresh)
    run = fresh.start()
    wait_for(note)
    run.send_signal(number)
    if number == signal.SIGKILL:  # which leaves the child for us
        os.kill(int(note.read_text()), signal.SIGTERM)
    err = run.communicate()[1]
    if number == signal.SIGTERM:
        assert run.returncode == 130
        assert err == "bootstrap: interrupted: run this again to complete it\n"
    fresh.copy_venv(new_venv)
    assert "an earlier run did not finish" in repaired(fresh)


def test_a_second_run_waits_for_the_first(fresh):
    note = stuck(fresh)
    first = fresh.start()
    wait_for(note)
    second = fresh.start()
    line = second.stdout.readline()
    assert line == "bootstrap: another run is at work on .venv: waiting for it\n"
    for run in (second, first):
        run.terminate()
        run.communicate()
