# SPDX-License-Identifier: Apache-2.0
"""The CUDA 12.8 locks, read and judged without an index; and that each fault is found.

That a lock is what its inputs resolve to, `requirements/compile_cu128.py RELEASE --check` says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from callcheck.release import load_facts

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
LOCKS = sorted(REQUIREMENTS.glob("cu128-*.lock"))
RELEASES = [path.name.removeprefix("cu128-").removesuffix(".lock") for path in LOCKS]
ENTRY = re.compile(r"([a-z0-9-]+)(={2,3})([\w.]+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")
# '==' admits a local build of another index; these have some.
LOCAL_BUILDS = {"torch", "torchaudio", "torchvision", "torchcodec", "torchao", "sglang-kernel"}
# CUDA's own version in packages whose name does not tell it.
CUDA_VERSIONED = {"cuda-python", "cuda-bindings", "nvidia-ml-py"}


@dataclass(frozen=True)
class Pin:
    equals: str
    version: str
    hashes: list[str]


def parse(text: str) -> dict[str, Pin]:
    """The pins of a lock by name. Raises ValueError on anything that is no hashed pin."""
    body = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
    entries = list(ENTRY.finditer(body))
    if "".join(entry[0] for entry in entries) != body:
        raise ValueError("expected nothing but pins with hashes, found more")
    pins = {e[1]: Pin(e[2], e[3], re.findall(r"[0-9a-f]{64}", e[4])) for e in entries}
    if list(pins) != sorted(pins) or len(pins) != len(entries):
        raise ValueError("expected each package once, sorted, found otherwise")
    return pins


def faults(text: str, torch: str) -> list[str]:
    """What is wrong with a lock, given what its torch declares (the .torch file)."""
    pins = parse(text)
    found = []
    for name, pin in pins.items():
        if re.search(r"-cu(?!12$)\d+$", name):
            found.append(f"{name}: a build for another CUDA")
        if name in CUDA_VERSIONED and not pin.version.startswith("12."):
            found.append(f"{name}: of CUDA {pin.version}")
        if re.match(r"nvidia-c(ublas|uda|udnn|ufft|ufile|urand|usolver|usparse)", name) and not (
            name.endswith("-cu12") or name == "nvidia-cudnn-frontend"
        ):
            found.append(f"{name}: from CUDA 13 on these have no -cu12")
        if name in LOCAL_BUILDS and pin.equals != "===":
            found.append(f"{name}: admits local builds")
        if len(set(pin.hashes)) != len(pin.hashes) or pin.hashes != sorted(pin.hashes):
            found.append(f"{name}: hashes twice or out of order")
    if "sglang" in pins:
        found.append("sglang: not from the index, but unpacked and patched")
    declared = dict(line.split("==") for line in torch.splitlines() if not line.startswith("#"))
    for name, version in declared.items():
        if name not in pins or pins[name].version != version:
            found.append(f"{name}: not the {version} that torch declares")
    extra = {n for n in pins if re.search(r"-cu12$", n)} - declared.keys()
    found += [f"{name}: torch declares no such package" for name in sorted(extra)]
    if re.search(r"[0-9a-f]{64}", torch)[0] not in pins["torch"].hashes:
        found.append("torch: another wheel than the .torch file was read from")
    return found


def texts(release: str) -> tuple[str, str]:
    lock = REQUIREMENTS / f"cu128-{release}.lock"
    return lock.read_text(), lock.with_suffix(".torch").read_text()


def test_there_is_a_lock_for_the_image():
    assert "0.5.11" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_lock_is_for_cuda_12(release):
    assert faults(*texts(release)) == []
    pins = parse(texts(release)[0])
    assert len(pins) > 150
    assert sum(name.endswith("-cu12") for name in pins) == 15


@pytest.mark.parametrize("release", RELEASES)
def test_lock_has_the_versions_that_replace_the_declared_ones(release):
    pins = parse(texts(release)[0])
    overrides = (REQUIREMENTS / f"cu128-{release}.overrides").read_text().splitlines()
    wanted = dict(line.split("==") for line in overrides if not line.startswith("#"))
    assert {name: pins[name].version for name in wanted} == wanted


@pytest.mark.parametrize("release", RELEASES)
def test_the_signatures_are_read_from_the_wheel_of_the_lock(release):
    pin = parse(texts(release)[0])["sglang-kernel"]
    facts = {one["version"]: one for one in load_facts(release)}
    assert facts[pin.version]["sha256"] in pin.hashes


# What to change in the lock, and what must be said of it.
FAULTS = {
    "a CUDA 13 package": ("^nvidia-cudnn-frontend", "nvidia-cudnn-cu13", "another CUDA"),
    "a CUDA 13 library": ("^nvidia-cublas-cu12", "nvidia-cublas", "from CUDA 13 on"),
    "bindings of CUDA 13": (r"^nvidia-ml-py==12\.", "nvidia-ml-py==13.", "of CUDA 13."),
    "a local build": (r"^nvidia-ml-py==12", "nvidia-ml-py==12+cu130", "nothing but pins"),
    "local builds admitted": ("^torch===", "torch==", "admits local builds"),
    "another cuDNN": (r"^(nvidia-cudnn-cu12==)[\d.]+", r"\g<1>9.99", "not the 9.10.2.21"),
    "no cuDNN": (r"^nvidia-cudnn-cu12==(.*\n)+?(?=\S)", "", "nvidia-cudnn-cu12: not the"),
    "more than torch declares": ("^nvidia-ml-py", "nvidia-made-up-cu12", "declares no such"),
    "another Triton": (r"^triton==3\.5\.1", "triton==3.5.0", "not the 3.5.1"),
    "another wheel of torch": (r"^(torch=.*\n.*sha256:)\w{4}", r"\g<1>0000", "another wheel"),
    "no hash": (r"^filelock==(\S+) \\\n.*", r"filelock==\1", "nothing but pins"),
    "no version": (r"^filelock==\S+", "filelock", "nothing but pins"),
    "a range": ("^filelock==", "filelock>=", "nothing but pins"),
    "a package twice": (r"^(filelock==(?:.*\n)+?)(?=\S)", r"\1\1", "each package once"),
    "sglang": ("^setuptools", "sglang", "unpacked and patched"),
    "an index": (r"\Z", "--extra-index-url https://example.invalid\n", "nothing but pins"),
}


@pytest.mark.parametrize("pattern, replacement, message", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found(pattern, replacement, message):
    lock, torch = texts("0.5.11")
    broken, count = re.subn(pattern, replacement, lock, count=1, flags=re.MULTILINE)
    assert count == 1, "the mutant changes nothing"
    try:
        found = faults(broken, torch)
    except ValueError as problem:
        found = [str(problem)]
    assert any(message in one for one in found), found
