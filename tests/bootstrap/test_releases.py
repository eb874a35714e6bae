# SPDX-License-Identifier: Apache-2.0
"""Several releases side by side: each has an environment of its own, and one is the default."""

import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import OTHER, RELEASE, REPOSITORY

WHERE = "import sglang, toy_cpu; print(sglang.__file__); print(toy_cpu.__file__)"


def states(venv: Path) -> tuple[float, str]:
    state = venv / "sglang-ddtree.state"
    return state.stat().st_mtime, state.read_text()


def test_each_environment_has_its_own_packages_and_its_own_sglang(both):
    for venv, release, version in ((both.venv, RELEASE, "1.0"), (both.other_venv, OTHER, "2.0")):
        sglang, toy = both.python(WHERE, venv).splitlines()
        assert sglang == str(both.root / f"sglang/{release}/python/sglang/__init__.py")
        assert Path(toy).is_relative_to(venv)
        metadata = "import importlib.metadata as m; print(m.version('toy_cpu'))"
        assert both.python(metadata, venv) == version


def test_both_are_current_afterwards(both):
    for arguments, release in (((), RELEASE), (("--release", OTHER), OTHER)):
        result = both.run(*arguments)
        assert result.stdout.startswith("bootstrap: nothing to do: ")
        assert f"sglang {release} with its patches" in result.stdout


def test_the_messages_name_the_environment_that_they_are_about(both):
    step = f"[2/5] installing the pinned packages into .venv-{OTHER} ("
    assert step in both.first_output
    (both.root / f"sglang/{OTHER}/applied").unlink()
    (both.root / f"sglang/{OTHER}/python/sglang/__init__.py").write_text("import nonsense\n")
    result = both.run("--release", OTHER)
    assert f"the packages in .venv-{OTHER} are current" in result.stdout
    assert f"expected .venv-{OTHER}/bin/python to import sglang {OTHER}, found: " in result.stderr
    assert result.stderr.endswith(f"see .venv-{OTHER}/bootstrap.log\n")


@pytest.mark.parametrize("changed", [RELEASE, OTHER])
def test_new_pins_of_one_release_leave_the_other_environment_alone(both, changed):
    venvs = {RELEASE: both.venv, OTHER: both.other_venv}
    before = {release: states(venv) for release, venv in venvs.items()}
    pins = both.pins(f"cpu-{changed}")
    pins.write_text(f"# changed\n{pins.read_text()}")
    for release, venv in venvs.items():
        result = both.run("--release", release)
        assert result.returncode == 0, result.stderr
        made_anew = f"{venv.name} is out of date" in result.stdout
        assert made_anew == (release == changed)
        assert (states(venv) == before[release]) == (release != changed)


def test_new_pins_that_both_share_are_seen_by_both(both):
    pins = both.pins("dev")
    pins.write_text(f"# changed\n{pins.read_text()}")
    both.replace_tool("make", None)  # so that it stops before it does something
    for release in (RELEASE, OTHER):
        assert both.run("--release", release).stderr.startswith("bootstrap: make: ")


def test_the_default_is_the_one_of_upstream_toml(both):
    """Its environment is .venv, so a new default is installed there."""
    upstream = both.root / "upstream.toml"
    upstream.write_text(upstream.read_text().replace(f'= "{RELEASE}"', f'= "{OTHER}"', 1))
    result = both.run()
    assert ".venv is out of date" in result.stdout
    assert f"sglang {OTHER} with its patches" in result.stdout
    assert f"sglang/{OTHER}/" in both.python(WHERE)


def releases(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    script = root / "scripts" / "releases.sh"
    return subprocess.run([script, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), f"{OTHER}\n{RELEASE}\n"),
        (("default",), f"{RELEASE}\n"),
        (("others",), f"{OTHER}\n"),
        (("venv", RELEASE), ".venv\n"),
        (("venv", OTHER), f".venv-{OTHER}\n"),
    ],
)
def test_what_upstream_toml_says(fresh, arguments, expected):
    result = releases(fresh.root, *arguments)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, "")


def test_a_single_release_has_no_others(fresh):
    (fresh.root / "upstream.toml").write_text(f'default = "{RELEASE}"\n[release."{RELEASE}"]\n')
    assert releases(fresh.root, "others").stdout == ""
    assert releases(fresh.root, "others").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("venv", ".*"), f"RELEASE: expected one of {OTHER}, {RELEASE}, found '.*'; name one"),
        (("venv",), f"RELEASE: expected one of {OTHER}, {RELEASE}, found ''; name one"),
        (("wat",), "releases.sh: expected default, others, venv RELEASE or nothing, found 'wat'"),
    ],
)
def test_wrong_questions_are_one_line(fresh, arguments, expected):
    result = releases(fresh.root, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(expected)
    assert result.stderr.count("\n") == 1


def test_no_upstream_toml_is_one_line(fresh):
    (fresh.root / "upstream.toml").unlink()
    result = fresh.run()
    assert result.returncode == 2
    assert result.stderr.startswith("upstream.toml: expected it beside scripts/, found none; ")
    assert result.stderr.count("\n") == 1


def make(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """`make --dry-run` with the repository's Makefile, and its folders of tests."""
    shutil.copy(REPOSITORY / "Makefile", root)
    for folder in (REPOSITORY / "tests").iterdir():
        if folder.is_dir():
            (root / "tests" / folder.name).mkdir(parents=True, exist_ok=True)
    return subprocess.run(["make", "-n", *arguments], cwd=root, capture_output=True, text=True)


@pytest.mark.parametrize("target", ["bootstrap", "demo", "serve", "test", "models", "bench"])
@pytest.mark.parametrize(("release", "venv"), [(RELEASE, ".venv"), (OTHER, f".venv-{OTHER}")])
def test_make_uses_the_environment_of_the_release(fresh, target, release, venv):
    first, *commands = make(fresh.root, target, f"RELEASE={release}").stdout.splitlines()
    assert first == f"scripts/bootstrap.sh --release {release}"
    assert len(commands) == (target != "bootstrap")
    assert all(command.startswith(f"{venv}/bin/python ") for command in commands)


def test_make_runs_all_tests_of_the_default_and_the_dependent_ones_of_another(fresh):
    everything = make(fresh.root, "test").stdout.split("pytest ")[1].split()
    dependent = make(fresh.root, "test", f"RELEASE={OTHER}").stdout.split("pytest ")[1].split()
    assert {"tests/bootstrap", "tests/tool"} <= set(everything) - set(dependent)
    assert {"tests/patches", "tests/exactness", "tests/engine", "tests/demo"} <= set(dependent)
    rest = make(fresh.root, "test", f"RELEASE={OTHER}", "EXCEPT=tests/patches").stdout.split()
    assert set(dependent) - set(rest) == {"tests/patches"}
    assert everything[-2:] == dependent[-2:] == ["tests/exactness", "tests/engine"]


@pytest.mark.parametrize("name", ["0.0", "%", ""])
def test_make_refuses_an_unknown_release(fresh, name):
    result = make(fresh.root, "test", f"RELEASE={name}")
    assert result.returncode == 2
    expected = f"RELEASE: expected one of {OTHER}, {RELEASE}, found '{name}'; name one of them"
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1
