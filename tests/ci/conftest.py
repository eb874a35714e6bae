# SPDX-License-Identifier: Apache-2.0
"""The made-up repository in good order, and a way to make one that is not."""

import sys
from pathlib import Path

# The made-up wheel, tree ids and headers of the patch tool's own tests.
sys.path.append(str(Path(__file__).resolve().parents[1] / "tool"))

import pytest
from made_up_series import TRAILERS, Repository, levels


@pytest.fixture
def make(tmp_path):
    """Make a repository from the trees of its levels and its `Test:` trailers."""

    def make(trees=None, trailers=TRAILERS) -> Repository:
        (tmp_path / "git").mkdir()
        repository = Repository(tmp_path / "a repository")
        repository.create(tmp_path / "git", trees or levels(), trailers)
        return repository

    return make


@pytest.fixture
def repository(make) -> Repository:
    return make()
