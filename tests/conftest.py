# SPDX-License-Identifier: Apache-2.0
"""What every test needs before it is imported: the CPU profile and the import paths."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# `models` is a package of the repository root, `support` one of this directory.
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

# What `make test NAME=VALUE` puts into the environment is for this run, not for the makes, the
# bootstraps and the reports that tests start.
for name in "MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS RELEASE TESTS EXCEPT PYTEST_ARGS".split():
    os.environ.pop(name, None)

from cpu_profile.environment import set_environment  # noqa: E402

# Before any test module imports torch.
set_environment()

# Fixtures of the tests that start engines, and markers of tests that hold at some levels.
pytest_plugins = ["support.fixtures", "support.levels"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pair",
        type=Path,
        default=ROOT / "models" / "tiny",
        help="directory with the target/ and draft/ that the engine tests serve: %(default)s",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "engine: starts a real SGLang engine")
