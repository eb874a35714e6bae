# SPDX-License-Identifier: Apache-2.0
"""Compile the pinned, hashed requirement files from the `.in` files beside this script.

    python requirements/compile.py RELEASE --exclude-newer DATE

needs `uv` on PATH and Python 3.11 or newer, and writes

* ``cpu-RELEASE.txt``: what the CPU profile needs, without torch,

and, once for all releases,

* ``pip.txt``: the pip that installs the rest,
* ``torch-cuda-VERSION.txt``: the torch that PyPI has and the CUDA libraries without which it
  cannot be imported (``torch-cpu-VERSION.txt``, the alternative, is written by hand),
* ``dev.txt``: test and lint tools, without the packages that ``cpu-RELEASE.txt`` has.

The release that a file's first line names is the one that writes it. The run of any other
release only checks that it would write the same pins.

Only wheels for CPython 3.10-3.13 on x86_64 Linux (glibc) are listed, so that nothing is
ever compiled on a user's machine, and every hash belongs to a file that pip can choose.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHONS = ("cp310", "cp311", "cp312", "cp313")
PLATFORM_MARKER = "platform_machine == 'x86_64' and sys_platform == 'linux'"
RANGE_MARKER = "python_full_version >= '3.10' and python_full_version < '3.14'"
ENVIRONMENT = f"{PLATFORM_MARKER} and {RANGE_MARKER}"
# torch and what only its CUDA build depends on.
TORCH_AND_CUDA = re.compile(r"torch$|(nvidia|cuda)-")


def resolve(sources: list[Path], exclude_newer: str) -> list[dict]:
    """Resolve requirement files together; returns the ``packages`` table of a PEP 751 lock."""
    with tempfile.TemporaryDirectory() as tmp:
        project = Path(tmp, "pyproject.toml")
        project.write_text(f'[tool.uv]\nenvironments = ["{ENVIRONMENT}"]\n')
        lock = Path(tmp, "pylock.toml")
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version=3.10"]
        command += ["--no-python-downloads", "--only-binary=:all:", "--format=pylock.toml"]
        command += [f"--exclude-newer={exclude_newer}", f"--output-file={lock}", *map(str, sources)]
        try:
            subprocess.run(command, cwd=tmp, check=True, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            sys.exit("compile.py: expected uv on PATH, found none; pip install uv")
        return tomllib.loads(lock.read_text())["packages"]


def installable(wheel_name: str) -> bool:
    """Whether some supported Python on x86_64 glibc Linux can install a wheel of this name."""
    python, abi, platform = wheel_name.removesuffix(".whl").split("-")[-3:]
    if "musllinux" in platform and "manylinux" not in platform:
        return False
    if abi == "none":
        return "py3" in python.split(".") or python in PYTHONS
    if abi == "abi3":
        return int(python.removeprefix("cp3")) <= 13
    return python in PYTHONS and abi == python


def requirement(package: dict) -> str:
    """One entry of a requirement file: pin, marker if it needs one, and sorted hashes."""
    names = {w["url"].rsplit("/", 1)[-1]: w["hashes"]["sha256"] for w in package["wheels"]}
    digests = sorted(digest for name, digest in names.items() if installable(name))
    # '===': the version as it stands, and not a local build of it such as 2.13.0+cpu.
    equals = "===" if package["name"] == "torch" else "=="
    pin = f"{package['name']}{equals}{package['version']}"
    if not digests:
        sys.exit(f"compile.py: expected a usable wheel of {pin}, found none; pin another version")
    marker = package.get("marker", "")
    for clause in (PLATFORM_MARKER, RANGE_MARKER):
        marker = marker.replace(clause, "")
    marker = re.sub(r"^( and )+|( and )+$", "", marker)
    lines = [f"{pin} ; {marker}" if marker else pin, *(f"    --hash=sha256:{d}" for d in digests)]
    return " \\\n".join(lines) + "\n"


def write(name: str, packages: list[dict], command: str) -> None:
    """Write one requirement file and say how many pins it holds."""
    body = "".join(requirement(p) for p in packages)
    header = f"# Written by: {command}\n# Edit the .in file and run it again.\n"
    (HERE / name).write_text(header + body)
    print(f"{name}: {len(packages)} pins, {body.count('--hash')} hashes")


def write_shared(name: str, packages: list[dict], release: str, command: str) -> None:
    """Write a file of all releases if it is `release`'s to write; else refuse other pins."""
    path = HERE / name
    first, _, rest = path.read_text().partition("\n") if path.is_file() else (command, "", "")
    if f"compile.py {release} " in first:
        write(name, packages, command)
    elif "".join(requirement(p) for p in packages) != rest.partition("\n")[2]:
        sys.exit(
            f"compile.py: expected {release} to need the pins that {name} has, found others; "
            f"change cpu-{release}.in, or {name} first ({first.removeprefix('# ')})"
        )
    else:
        print(f"{name}: as it is, for {release} too")


def check_cpu_build(torch: str) -> None:
    """Refuse a torch pin to which no hand-written file of CPU builds belongs."""
    path = HERE / f"torch-cpu-{torch}.txt"
    if not path.is_file() or f"\ntorch=={torch}+cpu " not in path.read_text():
        sys.exit(f"compile.py: expected {path.name} to pin torch=={torch}+cpu; write it first")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", help="SGLang release, e.g. 0.5.11")
    parser.add_argument("--exclude-newer", required=True, metavar="DATE", help="e.g. 2026-11-25")
    args = parser.parse_args()
    release, date = args.release, args.exclude_newer
    command = f"python requirements/compile.py {release} --exclude-newer {date}"

    cpu_in = HERE / f"cpu-{release}.in"
    if not cpu_in.is_file():
        parser.error(f"expected the requirement file {cpu_in}, found none; write it first")
    cpu = resolve([cpu_in], date)
    torch_version = next(p["version"] for p in cpu if p["name"] == "torch")
    check_cpu_build(torch_version)
    pins = {(p["name"], p["version"]) for p in cpu}
    both = resolve([cpu_in, HERE / "dev.in"], date)
    tools = [p for p in both if (p["name"], p["version"]) not in pins]
    moved = sorted({p["name"] for p in tools} & {name for name, _ in pins})
    if moved:
        sys.exit(f"compile.py: expected dev.in to leave CPU pins alone, found it moves {moved}")

    torch = [p for p in cpu if TORCH_AND_CUDA.match(p["name"])]
    write_shared("pip.txt", resolve([HERE / "pip.in"], date), release, command)
    write_shared(f"torch-cuda-{torch_version}.txt", torch, release, command)
    write_shared("dev.txt", tools, release, command)
    write(f"cpu-{release}.txt", [p for p in cpu if p not in torch], command)


if __name__ == "__main__":
    main()
