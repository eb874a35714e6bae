# SPDX-License-Identifier: Apache-2.0
"""Exit 2: wrong arguments, missing files, old tools. One line, and nothing written."""

from __future__ import annotations

import os
import shutil
import subprocess

import patchset_project as made
import pytest
from patchset_project import NAMES, REPOSITORY, everything

LAUNCHER = REPOSITORY / "scripts" / "apply_patches.sh"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--unknown",),
        ("positional",),
        ("--stat",),
        ("--status", "--lint"),
        ("--status", "--refresh"),
        ("--check", "--lint"),
        ("--status", "--to", "0010"),
        ("--lint", "--reverse"),
        ("--json",),
        ("--new", "0050-x"),
        ("--refresh", "0010", "--new", "0050-x"),
        ("--refresh", "--root", "."),
        ("--lint", "--root", "."),
        ("--strip", "2"),
        ("--root", ".", "--strip", "0"),
        ("--root", ".", "--strip", "two"),
        ("--root", "no such folder"),
        ("--to", "0015"),
        ("--to", "0010-first-hook"),
        ("--refresh", "0015"),
        ("--release", "1.2.3"),
    ],
)
def test_refused_arguments(project, arguments):
    before = everything(project.root)
    result = project.tool(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert everything(project.root) == before


@pytest.mark.parametrize("missing", ["series", "series.lock", NAMES[2]])
def test_a_missing_file(project, missing):
    (project.patches / missing).unlink()
    before = everything(project.root)
    result = project.tool()
    assert result.code == 2 and missing in result.err and result.err.count("\n") == 1
    assert everything(project.root) == before


@pytest.mark.parametrize("listed", [[0, 0], [1, 0]])
def test_a_wrong_list(project, listed):
    """A name listed twice, and numbers out of order."""
    (project.patches / "series").write_text("".join(f"{NAMES[k]}\n" for k in listed))
    assert project.tool().code == 2
    assert project.level() == 0


def test_nothing_materialised(bare_project):
    result = bare_project.tool()
    assert result.code == 2 and "bootstrap.sh" in result.err


def test_a_folder_that_the_tool_did_not_make(bare_project):
    bare_project.files.mkdir(parents=True)
    for run in (bare_project.tool, bare_project.materialise):
        result = run()
        assert result.code == 2 and "move it away" in result.err
    assert list(bare_project.files.iterdir()) == []


def test_a_tree_of_another_release(project):
    """upstream.toml now names another tree than the one that was unpacked."""
    toml = project.root / "upstream.toml"
    toml.write_text(toml.read_text().replace(made.tree_id(made.levels()[0]), "1" * 40))
    result = project.tool()
    assert result.code == 4 and "1" * 40 in result.err


@pytest.mark.parametrize("version", [None, "git version 2.37.9"])
def test_git_is_missing_or_old(project, tmp_path, monkeypatch, version):
    tools = tmp_path / "bin"
    tools.mkdir()
    if version:
        (tools / "git").write_text(f"#!/bin/sh\necho {version}\n")
        (tools / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    result = project.tool()
    assert result.code == 2 and "2.38" in result.err and result.err.count("\n") == 1


def test_quiet(project):
    result = project.tool("--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert project.level() == 4


@pytest.fixture
def installed(project):
    """The project with its own copy of the tool, run through the launcher."""
    scripts = project.root / "scripts"
    scripts.mkdir()
    shutil.copy(LAUNCHER, scripts)
    shutil.copytree(LAUNCHER.parent / "patchset", scripts / "patchset")
    return project


def _launch(project, *arguments, **settings) -> subprocess.CompletedProcess:
    env = {**os.environ, **settings}
    command = [project.root / "scripts" / "apply_patches.sh", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8")


@pytest.mark.parametrize("locale", ["C", "POSIX", "tr_TR.ISO-8859-9", "C.UTF-8"])
def test_the_launcher_in_any_locale(installed, locale):
    """Order and file names do not depend on the locale; hostile Python settings."""
    settings = {"LC_ALL": locale, "PYTHONPATH": "/nonexistent", "PYTHONUTF8": "0"}
    done = _launch(installed, **settings)
    assert (done.returncode, "apply_patches.sh" in done.stderr) == (0, False)
    assert installed.level() == 4
    assert _launch(installed, "--status", **settings).returncode == 0


def test_the_launcher_through_a_link_with_cdpath(installed, tmp_path):
    folder = tmp_path / "link"
    folder.symlink_to(installed.root)
    done = subprocess.run(
        ["scripts/apply_patches.sh", "--quiet"],
        cwd=folder,
        env={**os.environ, "CDPATH": str(tmp_path)},
    )
    assert done.returncode == 0
    assert installed.level() == 4


def test_the_launcher_without_python(installed, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "dirname").symlink_to(shutil.which("dirname"))
    done = _launch(installed, PATH=str(tools))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "3.10" in done.stderr


def test_help(installed):
    done = _launch(installed, "--help")
    assert done.returncode == 0
    for expected in ("exit codes:", "7  --lint has findings", "--strip N", "local edits"):
        assert expected in done.stdout
