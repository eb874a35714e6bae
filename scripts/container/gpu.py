# SPDX-License-Identifier: Apache-2.0
"""Which NVIDIA cards this container sees, asked of the driver itself.

    python -m container.gpu

prints a JSON object: {"cards": [{"name", "capability": [major, minor], "bytes"}], "problem": null},
or no cards and a problem in words. The driver honours CUDA_VISIBLE_DEVICES; importing torch for
the same answer takes seconds and tells less about what is wrong. It runs as a process of its own,
so that the one that stays has not opened the driver.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .refusal import Refusal

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_PATIENCE_S = 60

# What the locked sgl-kernel has machine code for. Code for sm_80 runs on every 8.x from 8.0 on, as
# within a major version it does on later minor ones; code with an "a" runs on that one version.
SGL_KERNEL_CODE = ("80", "89", "90a", "100a", "120a")


@dataclass(frozen=True)
class Card:
    """capability: (major, minor); bytes: all memory of the card."""

    name: str
    capability: tuple[int, int]
    bytes: int

    @property
    def is_sm120(self) -> bool:
        return self.capability[0] == 12

    def __str__(self) -> str:
        major, minor = self.capability
        return f"{self.name}, compute capability {major}.{minor}, {self.bytes / 2**30:.0f} GiB"


@dataclass(frozen=True)
class Found:
    cards: tuple[Card, ...]
    problem: str | None = None


def has_code(capability: tuple[int, int]) -> bool:
    """Whether the locked sgl-kernel runs on a card of this compute capability."""
    major, minor = capability
    for code in SGL_KERNEL_CODE:
        digits = code.removesuffix("a")
        built_for = int(digits[:-1]), int(digits[-1])
        if built_for == capability:
            return True
        if not code.endswith("a") and built_for[0] == major and built_for[1] <= minor:
            return True
    return False


def ask_driver(load: Callable[[str], Any] = ctypes.CDLL) -> Found:
    """The cards that the driver lists. `load` opens a shared library."""
    try:
        driver = load("libcuda.so.1")
    except OSError:
        return Found((), "no NVIDIA driver (libcuda.so.1)")
    code = driver.cuInit(0)
    count = ctypes.c_int()
    if code == 0:
        code = driver.cuDeviceGetCount(ctypes.byref(count))
    if code == _NO_DEVICE or (code == 0 and count.value == 0):
        return Found((), "an NVIDIA driver that shows no card")
    if code != 0:
        return Found((), f"an NVIDIA driver that fails with CUDA error {code}")
    return Found(tuple(_card(driver, index) for index in range(count.value)))


def _card(driver: Any, index: int) -> Card:
    device, size = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(256)
    version = []
    driver.cuDeviceGet(ctypes.byref(device), index)
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        version.append(value.value)
    return Card(name.value.decode("utf-8", "replace"), tuple(version), size.value)


def look() -> Found:
    """What `ask_driver` finds in a process of its own."""
    command = [sys.executable, "-m", "container.gpu"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Found((), f"an NVIDIA driver that does not answer within {_PATIENCE_S} s")
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Found((), f"an NVIDIA driver that fails: {last}")
    cards = (Card(c["name"], tuple(c["capability"]), c["bytes"]) for c in answer["cards"])
    return Found(tuple(cards), answer["problem"])


def require_cards(found: Found, count: int) -> tuple[Card, ...]:
    """The cards that a server with `count` ranks takes: the first ones.

    Raises:
        Refusal: there are fewer, or the image has no machine code for one of them.
    """
    if not found.cards:
        raise Refusal(
            f"GPU: expected one, found {found.problem}; start the container with --gpus all on a "
            "host that has the NVIDIA driver and the NVIDIA Container Toolkit"
        )
    if len(found.cards) < count:
        raise Refusal(
            f"GPU: expected {count} for --tp-size {count}, found {len(found.cards)}; show more to "
            "the container with --gpus, or lower --tp-size"
        )
    for card in found.cards[:count]:
        if not has_code(card.capability):
            raise Refusal(
                f"GPU: expected compute capability 8.x, 9.0, 10.0 or 12.0, which this image has "
                f"kernels for, found {card}; use --gpus with another card (--gpus device=1)"
            )
    return found.cards[:count]


if __name__ == "__main__":
    print(json.dumps(asdict(ask_driver())))
