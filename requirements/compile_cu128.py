# SPDX-License-Identifier: Apache-2.0
"""Compile `cu128-RELEASE.lock`: what SGLang needs to serve on CUDA 12.8, pinned and hashed.

    python requirements/compile_cu128.py RELEASE          # write the lock and the .torch file
    python requirements/compile_cu128.py RELEASE --check  # make both again, compare byte for byte

needs `uv` on PATH, Python 3.11 or newer with pip, and a package index. Reads, beside this script,

* ``cu128-RELEASE.in``: the release itself, what must be named beside it, and the instant after
  which nothing published counts (a plain date would mean another instant in each time zone),
* ``cu128-RELEASE.overrides``: versions that replace the ones which the release declares.

The lock is for CPython 3.12 on x86_64 Linux with glibc 2.39 or newer. It has everything that
the release declares, extras aside, and not `sglang` itself: that comes from its pinned wheel
with the patches on top. Only wheels are listed, never a source archive, and every hash belongs
to a file that pip can choose there.

``cu128-RELEASE.torch`` has the CUDA packages that this torch's own wheel declares, for the tests
of the lock (tests/requirements), which need no index.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON_MINOR = 12
PLATFORM = "x86_64-manylinux_2_39"
GLIBC = (2, 39)
# Other indexes have local builds of these (2.9.1+cpu), which '==' admits and '===' does not.
LOCAL_BUILDS = {"torch", "torchaudio", "torchvision", "torchcodec", "torchao", "sglang-kernel"}


def resolve(release: str) -> list[dict]:
    """The ``packages`` table of a PEP 751 lock of `release`, without `sglang`."""
    source = input_file(release, "in")
    instant = re.search(r"^# exclude-newer: (\S+Z)$", source.read_text(), re.MULTILINE)
    if not instant:
        sys.exit(f"compile_cu128.py: expected '# exclude-newer: ...Z' in {source.name}; add it")
    with tempfile.TemporaryDirectory() as tmp:
        lock = Path(tmp, "pylock.toml")
        command = ["uv", "pip", "compile", "--quiet", f"--python-version=3.{PYTHON_MINOR}"]
        command += [f"--python-platform={PLATFORM}", "--no-python-downloads"]
        command += ["--only-binary=:all:", "--prerelease=if-necessary-or-explicit"]
        command += ["--no-emit-package=sglang", f"--exclude-newer={instant[1]}"]
        command += [f"--override={input_file(release, 'overrides')}", "--format=pylock.toml"]
        command += [f"--output-file={lock}", str(source)]
        try:
            subprocess.run(command, cwd=tmp, check=True, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            sys.exit("compile_cu128.py: expected uv on PATH, found none; pip install uv")
        except subprocess.CalledProcessError:
            sys.exit(f"compile_cu128.py: expected {source.name} to resolve, found the above")
        return tomllib.loads(lock.read_text())["packages"]


def input_file(release: str, suffix: str) -> Path:
    path = HERE / f"cu128-{release}.{suffix}"
    if not path.is_file():
        sys.exit(f"compile_cu128.py: expected {path}, found none; write it first")
    return path


def installable(wheel_name: str) -> bool:
    """Whether CPython 3.12 on x86_64 Linux (glibc) can install a wheel of this name."""
    pythons, abi, platforms = wheel_name.removesuffix(".whl").split("-")[-3:]
    return any(runs_here(p) for p in platforms.split(".")) and any(
        fits_python(p, abi) for p in pythons.split(".")
    )


def runs_here(platform: str) -> bool:
    if platform in ("any", "linux_x86_64", "manylinux2014_x86_64", "manylinux2010_x86_64"):
        return True
    glibc = re.fullmatch(r"manylinux_(\d+)_(\d+)_x86_64", platform)
    return bool(glibc) and (int(glibc[1]), int(glibc[2])) <= GLIBC


def fits_python(python: str, abi: str) -> bool:
    if abi == "none":
        minor = re.fullmatch(r"py3(\d*)", python)  # py37: Python 3.7 or any newer 3
        return python == f"cp3{PYTHON_MINOR}" or bool(minor and int(minor[1] or 0) <= PYTHON_MINOR)
    if abi == "abi3":
        return int(python.removeprefix("cp3")) <= PYTHON_MINOR
    return python == abi == f"cp3{PYTHON_MINOR}"


def requirement(package: dict) -> str:
    """One entry of the lock: pin and sorted hashes.

    No markers: the resolution is of one platform, on which those that uv repeats are true.
    """
    name, version = package["name"], package["version"]
    pin = f"{name}{'===' if name in LOCAL_BUILDS else '=='}{version}"
    files = {w["url"].rsplit("/", 1)[-1]: w["hashes"]["sha256"] for w in package.get("wheels", [])}
    digests = sorted(digest for name, digest in files.items() if installable(name))
    if not digests:
        sys.exit(f"compile_cu128.py: expected a usable wheel of {pin}, found none; pin another")
    return " \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in digests)]) + "\n"


def lock_text(release: str) -> str:
    return header(release) + "".join(requirement(package) for package in resolve(release))


def header(release: str) -> str:
    return (
        f"# Written by: python requirements/compile_cu128.py {release}\n"
        f"# Edit cu128-{release}.in or .overrides and run it again.\n"
        f"# For CPython 3.{PYTHON_MINOR} on {PLATFORM}. All that sglang {release} declares,\n"
        "# but not sglang itself: that is upstream.toml's pinned wheel, unpacked and patched.\n"
    )


def torch_text(release: str, lock: str) -> str:
    """What the lock's torch wheel declares of CUDA and Triton, one pin a line, sorted."""
    version = re.search(r"^torch===(\S+)", lock, re.MULTILINE)[1]
    flags = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report=-"]
    flags += ["--only-binary=:all:", "--implementation=cp", f"--python-version=3.{PYTHON_MINOR}"]
    flags += ["--platform=manylinux_2_28_x86_64", "--target=/nonexistent"]
    command = [sys.executable, "-m", "pip", "install", *flags, f"torch==={version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compile_cu128.py: expected pip to find torch {version}, found {done.stderr}")
    [torch] = json.loads(done.stdout)["install"]
    digest = torch["download_info"]["archive_info"]["hashes"]["sha256"]
    declared = (row.partition(";") for row in torch["metadata"]["requires_dist"])
    pins = sorted(
        name.strip() for name, _, _ in declared if re.match(r"nvidia-|cuda-|triton", name)
    )
    return (
        f"# Written by: python requirements/compile_cu128.py {release}\n"
        f"# What torch {version} declares of CUDA and Triton; its wheel's sha256:\n"
        f"# {digest}\n" + "".join(f"{pin}\n" for pin in pins)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", nargs="?", default="0.5.11", help="default: %(default)s")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    args = parser.parse_args()
    lock = lock_text(args.release)
    texts = {"lock": lock, "torch": torch_text(args.release, lock)}
    for suffix, text in texts.items():
        path = HERE / f"cu128-{args.release}.{suffix}"
        pins = len(re.findall(r"^[a-z]", text, re.MULTILINE))
        if not args.check:
            path.write_text(text)
            print(f"{path.name}: {pins} pins, {text.count('--hash')} hashes")
        elif not path.is_file() or path.read_text() != text:
            sys.exit(
                f"compile_cu128.py: expected {path.name} to be what its inputs resolve to, found "
                f"otherwise; run it without --check and read the difference"
            )
        else:
            print(f"{path.name}: resolves again to the same {pins} pins")


if __name__ == "__main__":
    main()
