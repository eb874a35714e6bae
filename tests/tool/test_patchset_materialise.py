# SPDX-License-Identifier: Apache-2.0
"""Unpacking the wheel: verified, atomic, repeatable, and never outside its folder."""

from __future__ import annotations

import os
import subprocess
import sys

import patchset_project as made
import pytest
from patchset_project import REPOSITORY, UNTOUCHED, everything, read_tree

LEVELS = made.levels()


def _nothing_left(project) -> None:
    folder = project.root / "sglang"
    assert not folder.exists() or list(folder.iterdir()) == []


def _refused(project, *arguments, code: int = 2) -> str:
    result = project.materialise(*arguments)
    assert (result.code, result.err.count("\n")) == (code, 1), result.err
    _nothing_left(project)
    return result.err


def _use_wheel(project, **settings) -> None:
    """Write the wheel anew, and its sha256 into upstream.toml."""
    sha256 = made.write_wheel(project.wheel, **{"files": made.wheel_files(made.TAG), **settings})
    tree = made.tree_id(LEVELS[0])
    (project.root / "upstream.toml").write_text(made.upstream_toml({made.TAG: sha256}, tree))


@pytest.mark.parametrize("tag", [made.TAG, made.OTHER_TAG])
def test_the_tree_is_the_same_for_every_python(bare_project, tag):
    """Compiled extensions and metadata are on disk, and not in the tree."""
    wheel = bare_project.wheel.with_name(made.wheel_name(tag))
    result = bare_project.materialise("--wheel", wheel)
    assert result.code == 0, result.err
    assert read_tree(bare_project.files) == LEVELS[0]
    python = bare_project.files / "python"
    for name, (mode, data) in made.wheel_files(tag).items():
        assert (python / name).read_bytes() == data
        assert (python / name).stat().st_mode & 0o777 == mode
    assert bare_project.tool("--status").code == 1
    assert [p.name for p in (bare_project.root / "sglang").iterdir()] == [made.VERSION]
    script = "import importlib.metadata as m; print(m.version('sglang'))"
    env = {**os.environ, "PYTHONPATH": str(python)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == made.VERSION


def test_again_does_nothing(project):
    before = everything(project.root)
    result = project.materialise("--wheel", project.wheel)
    assert result.code == 0 and "already" in result.out and "edited: 0" in result.out
    assert everything(project.root) == before
    (project.files / UNTOUCHED).write_text("mine\n")
    before = everything(project.root)
    assert "edited: 1" in project.materialise().out
    assert everything(project.root) == before


def test_again_on_another_version(project):
    (project.files / "python/sglang/_version.py").write_text("version = '1.0'\n")
    before = everything(project.root)
    result = project.materialise()
    assert result.code == 4 and made.VERSION in result.err and "1.0" in result.err
    assert everything(project.root) == before


def test_a_wheel_with_another_sha256(bare_project):
    """One byte."""
    data = bytearray(bare_project.wheel.read_bytes())
    data[len(data) // 2] ^= 1
    bare_project.wheel.write_bytes(data)
    assert "sha256" in _refused(bare_project, "--wheel", bare_project.wheel)


def test_a_wheel_cut_in_half_and_then_whole(bare_project):
    """The interrupted download is refused; with the whole file the same command works."""
    whole = bare_project.wheel.read_bytes()
    bare_project.wheel.write_bytes(whole[: len(whole) // 2])
    assert "sha256" in _refused(bare_project, "--wheel", bare_project.wheel)
    bare_project.wheel.write_bytes(whole)
    assert bare_project.materialise("--wheel", bare_project.wheel).code == 0
    assert read_tree(bare_project.files) == LEVELS[0]


def test_a_killed_run_is_swept_up(bare_project):
    """What a killed run leaves is removed by the next one, which works."""
    leftover = bare_project.root / "sglang" / f".{made.VERSION}-killed" / "tree" / "python"
    leftover.mkdir(parents=True)
    (leftover / "half").write_text("half")
    assert bare_project.materialise("--wheel", bare_project.wheel).code == 0
    assert [p.name for p in (bare_project.root / "sglang").iterdir()] == [made.VERSION]


def test_no_such_wheel(bare_project):
    assert "give an existing wheel" in _refused(bare_project, "--wheel", "absent.whl")


def test_not_a_zip(bare_project):
    bare_project.wheel.write_bytes(b"no zip")
    toml = bare_project.root / "upstream.toml"
    digest = made.hashlib.sha256(b"no zip").hexdigest()
    toml.write_text(made.upstream_toml({made.TAG: digest}, made.tree_id(LEVELS[0])))
    assert "zip" in _refused(bare_project, "--wheel", bare_project.wheel)


@pytest.mark.parametrize("case", ["changed", "missing", "added"])
def test_files_that_differ_from_record(bare_project, case):
    """A changed byte, a file that is not there, and one that RECORD does not know."""
    files = made.wheel_files(made.TAG)
    made.write_wheel(bare_project.wheel, files)
    with made.zipfile.ZipFile(bare_project.wheel) as archive:
        record = archive.read(f"sglang-{made.VERSION}.dist-info/RECORD")
    if case == "changed":
        files["sglang/gone.py"] = (0o644, b"other\n")
    elif case == "missing":
        del files["sglang/gone.py"]
    else:
        files["sglang/extra.py"] = (0o644, b"")
    _use_wheel(bare_project, files=files, record=record)
    assert "RECORD" in _refused(bare_project, "--wheel", bare_project.wheel)


@pytest.mark.parametrize(
    "name", ["../outside.py", "/tmp/outside.py", "sglang/../../o.py", "sglang\\..\\o.py", "C:/o.py"]
)
def test_names_that_point_outside(bare_project, name):
    """Nothing is written outside the target, and nothing stays inside."""
    files = {**made.wheel_files(made.TAG), name: (0o644, b"outside\n")}
    _use_wheel(bare_project, files=files)
    before = everything(bare_project.root.parent)
    assert "outside the target" in _refused(bare_project, "--wheel", bare_project.wheel)
    assert everything(bare_project.root.parent) == before


def test_a_link_in_the_wheel(bare_project):
    files = {**made.wheel_files(made.TAG), "sglang/link": (made.stat.S_IFLNK | 0o777, b"/etc")}
    _use_wheel(bare_project, files=files)
    assert "link" in _refused(bare_project, "--wheel", bare_project.wheel)


def test_another_tree_than_recorded(bare_project):
    files = {**made.wheel_files(made.TAG), "sglang/gone.py": (0o644, b"other\n")}
    _use_wheel(bare_project, files=files)
    message = _refused(bare_project, "--wheel", bare_project.wheel, code=4)
    assert made.tree_id(LEVELS[0]) in message


def test_a_python_without_a_wheel(bare_project):
    toml = bare_project.root / "upstream.toml"
    toml.write_text(made.upstream_toml({made.OTHER_TAG: "0" * 64}, made.tree_id(LEVELS[0])))
    message = _refused(bare_project)
    assert made.TAG in message and made.OTHER_TAG in message


@pytest.mark.parametrize("arguments", [("--unknown",), ("--release", "1.2.3"), ("extra",)])
def test_refused_arguments(bare_project, arguments):
    _refused(bare_project, *arguments)


@pytest.fixture
def pip_folder(bare_project, monkeypatch):
    """pip looks into a local folder only."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    # A URL: pip splits this variable at blanks.
    monkeypatch.setenv("PIP_FIND_LINKS", (bare_project.root / "wheels").as_uri())


def test_pip_fetches_by_name_and_hash(bare_project, pip_folder):
    result = bare_project.materialise()
    assert result.code == 0, result.err
    assert read_tree(bare_project.files) == LEVELS[0]


def test_pip_gets_another_file(bare_project, pip_folder):
    """The index serves a file with another sha256."""
    files = {**made.wheel_files(made.TAG), "sglang/gone.py": (0o644, b"other\n")}
    made.write_wheel(bare_project.wheel, files)
    assert made.wheel_name(made.TAG) in _refused(bare_project)


def test_pip_finds_nothing(bare_project, pip_folder):
    """No network: one line that says what to do."""
    bare_project.wheel.unlink()
    assert "--wheel" in _refused(bare_project)


def test_the_module_as_bootstrap_calls_it():
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "scripts")}
    command = [sys.executable, "-m", "patchset.materialise", "--help"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "--wheel FILE" in done.stdout
