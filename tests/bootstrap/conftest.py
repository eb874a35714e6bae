# SPDX-License-Identifier: Apache-2.0
"""Fresh and finished checkouts."""

import copy
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import BASE_PYTHON, Checkout


@pytest.fixture(scope="session")
def new_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing in it but pip."""
    folder = tmp_path_factory.mktemp("new") / "venv"
    subprocess.run([BASE_PYTHON, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def fresh(tmp_path: Path, new_venv: Path) -> Checkout:
    """A checkout in which bootstrap.sh has not run; its path has a space."""
    checkout = Checkout(tmp_path / "a checkout", tmp_path / "outside")
    checkout.create()
    checkout.copy_venv(new_venv)
    return checkout


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which bootstrap.sh has run, unaided. Not to be changed: see `finished`."""
    folder = tmp_path_factory.mktemp("finished")
    checkout = Checkout(folder / "a checkout", folder / "outside")
    checkout.create()
    result = checkout.run()
    assert result.returncode == 0, result.stderr
    checkout.first_output = result.stdout
    return checkout


@pytest.fixture
def finished(finished_once: Checkout, new_venv: Path, tmp_path: Path) -> Checkout:
    """A copy of the finished checkout at another place, for a test to change."""
    moved = copy.copy(finished_once)
    moved.root = tmp_path / "moved"
    moved.bin = tmp_path / "bin"
    moved.variables = {}
    shutil.copytree(finished_once.root, moved.root, symlinks=True)
    shutil.copytree(finished_once.bin, moved.bin, symlinks=True)
    moved.copy_venv(new_venv)
    return moved
