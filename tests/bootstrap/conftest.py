# SPDX-License-Identifier: Apache-2.0
"""Fresh and finished checkouts."""

import copy
import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import BASE_PYTHON, OTHER, Checkout


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


@pytest.fixture(scope="session")
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
    return moved(finished_once, new_venv, tmp_path)


@pytest.fixture(scope="session")
def both_once(finished_once, new_venv, tmp_path_factory) -> Checkout:
    """A checkout with both releases. Not to be changed: see `both`."""
    checkout = moved(finished_once, new_venv, tmp_path_factory.mktemp("both"))
    result = checkout.run("--release", OTHER)
    assert (result.returncode, result.stderr) == (0, "")
    checkout.first_output = result.stdout
    return checkout


@pytest.fixture
def both(both_once: Checkout, new_venv: Path, tmp_path: Path) -> Checkout:
    """A copy of the checkout with both releases, for a test to change."""
    return moved(both_once, new_venv, tmp_path)


def moved(checkout: Checkout, new_venv: Path, folder: Path) -> Checkout:
    """A copy of a checkout in another folder."""
    copied = copy.copy(checkout)
    copied.root = folder / "moved"
    copied.bin = folder / "bin"
    copied.variables = {}
    shutil.copytree(checkout.root, copied.root, symlinks=True)
    shutil.copytree(checkout.bin, copied.bin, symlinks=True)
    copied.copy_venv(new_venv)
    return copied
