# SPDX-License-Identifier: Apache-2.0
"""A fresh copy of the made-up project for each test, in a folder with blanks and accents."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import newer_release
import patchset_project as made
import pytest


@pytest.fixture(scope="session")
def bare_template(tmp_path_factory) -> Path:
    """The project before anything was materialised."""
    root = tmp_path_factory.mktemp("template")
    patches = root / "patches" / made.VERSION
    for folder in (patches, root / "wheels", root / "tests" / "patches"):
        folder.mkdir(parents=True)
    (root / "tests" / "patches" / "test_all.py").write_text("")
    sha256 = {
        tag: made.write_wheel(root / "wheels" / made.wheel_name(tag), made.wheel_files(tag))
        for tag in (made.TAG, made.OTHER_TAG)
    }
    trees = made.levels()
    (root / "upstream.toml").write_text(made.upstream_toml(sha256, made.tree_id(trees[0])))
    files = made.make_patches(tmp_path_factory.mktemp("patches"))
    for name, data in files.items():
        (patches / name).write_bytes(data)
    (patches / "series").write_text("# order\n" + "".join(f"{name}\n" for name in made.NAMES))
    (patches / "series.lock").write_text(made.lock_text(files, trees))
    return root


@pytest.fixture(scope="session")
def template(bare_template, tmp_path_factory) -> Path:
    """The project with its release materialised, at level 0."""
    root = tmp_path_factory.mktemp("materialised") / "project"
    shutil.copytree(bare_template, root)
    project = made.Project(root)
    result = project.materialise("--wheel", project.wheel)
    assert result.code == 0, result.err
    return root


def _copy(source: Path, tmp_path: Path) -> made.Project:
    root = tmp_path / "my pröject"
    shutil.copytree(source, root)
    return made.Project(root)


@pytest.fixture
def bare_project(bare_template, tmp_path) -> made.Project:
    return _copy(bare_template, tmp_path)


@pytest.fixture
def project(template, tmp_path) -> made.Project:
    return _copy(template, tmp_path)


@pytest.fixture
def applied(project) -> made.Project:
    """The project with the whole series applied."""
    result = project.tool()
    assert result.code == 0, result.err
    return project


@pytest.fixture(scope="session")
def series_template(tmp_path_factory) -> Path:
    """The project of `newer_release`, with 9.9.1 materialised."""
    root = tmp_path_factory.mktemp("series") / "project"
    project = newer_release.make_project(root, tmp_path_factory.mktemp("patches"))
    result = project.materialise("--wheel", project.wheel)
    assert result.code == 0, result.err
    return root


@pytest.fixture
def series(series_template, tmp_path) -> newer_release.Newer:
    return newer_release.Newer(_copy(series_template, tmp_path).root)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A plain checkout of upstream: more files than the wheel, and no private repository."""
    root = tmp_path / "upstream checkout"
    made.write_tree(root, made.levels()[0])
    made.write_tree(root, {"README.md": (0o644, b"upstream\n"), "test/t.py": (0o644, b"t\n")})
    return root


@pytest.fixture
def no_index(monkeypatch):
    """pip finds nothing anywhere."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")


@pytest.fixture
def local_index(no_index, series, monkeypatch):
    """pip finds the wheels of `series` only."""
    # A URL: pip splits this variable at blanks.
    monkeypatch.setenv("PIP_FIND_LINKS", (series.root / "wheels").as_uri())


@pytest.fixture(autouse=True)
def quiet_surroundings(monkeypatch, tmp_path):
    """Temporary files of the tool go where a test can see that none stays."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    yield
    assert list(scratch.iterdir()) == []
