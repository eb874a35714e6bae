# SPDX-License-Identifier: Apache-2.0
"""SGLang without the series does not know DDTREE, and says so."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from patchset.upstream import REPOSITORY, Project

import sglang

FILES = Path(sglang.__file__).parents[2]
TARGET = REPOSITORY / "models" / "tiny" / "target"


@pytest.fixture(scope="module")
def unpatched(tmp_path_factory) -> Path:
    """Upstream's own files, as the wheel had them."""
    release = Project(REPOSITORY).release(FILES.name)
    command = ["git", "--git-dir", str(FILES / ".patchset.git"), "archive", release.tree, "python"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    folder = tmp_path_factory.mktemp("unpatched")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return folder / "python"


def test_an_unpatched_server_refuses_the_algorithm(unpatched):
    """It cannot look as if the patch did not matter."""
    arguments = ["--model-path", str(TARGET), "--speculative-algorithm", "DDTREE"]
    code = "import sys, sglang; from sglang.srt.server_args import prepare_server_args\n"
    code += "print(sglang.__file__); prepare_server_args(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": str(unpatched)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(str(unpatched))
    assert done.returncode != 0
    assert "DDTREE" in done.stderr.splitlines()[-1]
