# SPDX-License-Identifier: Apache-2.0
"""What machine this is, and whether its GPU or its CPU is checked."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from container.gpu import Card, Found, has_code, look
from demo.failure import UsageError, last_words

from . import series

_PATIENCE_S = 120


@dataclass(frozen=True)
class Machine:
    """Attributes:
    device: "cuda" or "cpu", what the engines run on.
    no_cuda: why `device` is the CPU, "" if it is not.
    cores: CPU cores that this process may use, by number.
    """

    device: str
    no_cuda: str
    cards: tuple[Card, ...]
    driver: str | None
    cores: tuple[int, ...]
    versions: dict[str, Any]
    series: dict[str, Any]

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def as_json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "no_cuda": self.no_cuda or None,
            "cards": [
                {
                    "name": card.name,
                    "compute_capability": "{}.{}".format(*card.capability),
                    "bytes": card.bytes,
                    "sgl_kernel_has_code": has_code(card.capability),
                }
                for card in self.cards
            ],
            "driver": self.driver,
            "system": platform.platform(),
            "cpu_cores": len(self.cores),
            **self.versions,
        }


def ask_versions() -> dict[str, Any]:
    """What `gpucheck.versions` prints.

    Raises:
        UsageError: it failed; an environment in which torch cannot be imported serves nothing.
    """
    command = [sys.executable, "-m", "gpucheck.versions"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"versions: expected an answer within {_PATIENCE_S} s, found none; "
            f"see what `{sys.executable} -c 'import torch'` does"
        ) from None
    if done.returncode != 0:
        last = last_words(done)
        raise UsageError(f"versions: expected to import torch, found: {last}; repair this Python")
    return json.loads(done.stdout)


def ask_driver_version() -> str | None:
    """The NVIDIA driver's version, None without nvidia-smi."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def choose_device(wanted: str, found: Found, versions: dict[str, Any]) -> tuple[str, str]:
    """The device to check, and why it is not a GPU.

    Raises:
        UsageError: a GPU is there or asked for, and this Python cannot use it. Checking the CPU
            instead would only look like an answer.
    """
    if wanted == "cpu":
        return "cpu", "no CUDA device: --device cpu was passed"
    if not found.cards:
        if wanted == "cuda":
            raise UsageError(
                f"--device cuda: expected a CUDA device, found {found.problem}; "
                "leave --device out to check what a CPU can"
            )
        return "cpu", f"no CUDA device: {found.problem}"
    lacking = None
    if versions["torch_cuda"] is None:
        lacking = f"torch {versions['packages']['torch']} without CUDA"
    elif not versions["torch_sees_device"]:
        lacking = f"torch for CUDA {versions['torch_cuda']} that sees no device"
    elif versions["packages"]["sgl_kernel"] is None:
        lacking = "no sgl_kernel"
    if lacking is not None:
        raise UsageError(
            f"--python: expected an environment that serves on {found.cards[0].name}, found "
            f"{lacking}; pass the Python of a CUDA environment, or --device cpu"
        )
    return "cuda", ""


def examine(wanted: str) -> Machine:
    """Ask the driver, this Python and the patch tool.

    Raises:
        UsageError: see `choose_device` and `ask_versions`.
    """
    found, versions = look(), ask_versions()
    device, no_cuda = choose_device(wanted, found, versions)
    return Machine(
        device,
        no_cuda,
        found.cards,
        ask_driver_version() if found.cards else None,
        tuple(sorted(os.sched_getaffinity(0))),
        versions,
        series.describe(versions["packages"]["sglang"]),
    )
