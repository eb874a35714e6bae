# SPDX-License-Identifier: Apache-2.0
"""The environment variables of the CPU profile, and torchvision beside a CPU torch."""

import os
import subprocess
import sys

import pytest
from checkout import REPOSITORY
from cpu_profile.environment import ENVIRONMENT, set_environment


def test_missing_variables_are_set_and_present_ones_are_kept():
    environ = {"OMP_NUM_THREADS": "7", "HOME": "/home/x"}
    assert set_environment(environ) is environ
    assert environ == ENVIRONMENT | {"OMP_NUM_THREADS": "7", "HOME": "/home/x"}


def test_a_shell_can_export_the_same_variables():
    lines = subprocess.run(
        [sys.executable, "-m", "cpu_profile.environment"],
        env={"PYTHONPATH": str(REPOSITORY / "scripts"), "DO_NOT_TRACK": "it's set"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shown = subprocess.run(
        ["bash", "-c", f"{lines}\nenv -0"], env={"PATH": os.environ["PATH"]}, capture_output=True
    ).stdout
    exported = dict(row.split("=", 1) for row in shown.decode().split("\0") if row)
    expected = ENVIRONMENT | {"DO_NOT_TRACK": "it's set"}
    assert {name: exported.get(name) for name in ENVIRONMENT} == expected


def test_torchvision_can_be_imported_beside_this_torch():
    """In a process of its own: a failed import would leave half a torchvision here."""
    code = "import torchvision, torchvision.transforms.v2; print(torchvision.__version__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_hook_declares_the_operators_only_once_torchvision_is_wanted():
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("needs a CPU build of torch: beside a CUDA build the hook is not installed")
    code = """
import sys
assert "cpu_profile.torchvision_ops" in sys.modules and "torch" not in sys.modules
import torch
assert not hasattr(torch.ops.torchvision, "nms")
import torchvision
assert torch.ops.torchvision.nms.default._schema.name == "torchvision::nms"
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
