# SPDX-License-Identifier: Apache-2.0
"""Upstream's wheels: what the package index has, asked through pip, and the files that were
fetched, each verified by its sha256."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError
from .upstream import PACKAGE, Wheel

WHEELS = ".wheels"
"""The folder of fetched wheels, beside the materialised releases."""
_PLATFORM = "manylinux_2_34_x86_64"


def python_tag() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True)
class Listed:
    """A wheel that the index has."""

    version: str
    wheel: Wheel


def look_up(version: str | None, tag: str | None = None) -> Listed:
    """The wheel of `version`, or of the newest release, for a Python; nothing is downloaded.

    tag: such as cp311; None for the running Python. Raises UsageError when pip finds none.
    """
    tag = tag or python_tag()
    requirement = PACKAGE if version is None else f"{PACKAGE}=={version}"
    done = _pip(
        "install", "--dry-run", "--ignore-installed", "--report=-", "--target=/nonexistent",
        *_for_python(tag, _PLATFORM), requirement,
    )  # fmt: skip
    try:
        info = json.loads(done.stdout)["install"][0]
        found = info["download_info"]
        wheel = Wheel(found["url"].rsplit("/", 1)[1], found["archive_info"]["hashes"]["sha256"])
        return Listed(info["metadata"]["version"], wheel)
    except (ValueError, KeyError, IndexError):
        raise UsageError(
            f"pip finds no wheel of {requirement} for {tag} ({_last_line(done.stderr)}): check the "
            "version and the network, or give a wheel file or a folder"
        ) from None


def fetch(version: str, wheel: Wheel, folder: Path) -> Path:
    """Fetch a wheel into `folder` with pip, which checks its sha256. Raises UsageError."""
    # The wheel's own platform: its Python files serve on machines where pip would not install it.
    tag, platform = wheel.file.removesuffix(".whl").rsplit("-", 2)[1:]
    folder.mkdir(parents=True, exist_ok=True)
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{PACKAGE}=={version} --hash=sha256:{wheel.sha256}\n")
    done = _pip(
        "download", "--require-hashes", *_for_python(tag, platform), f"--dest={folder}",
        f"--requirement={requirement}",
    )  # fmt: skip
    requirement.unlink()
    path = folder / wheel.file
    if done.returncode or not path.is_file():
        raise UsageError(
            f"pip could not fetch {wheel.file} ({_last_line(done.stdout + done.stderr)}): check "
            "the network, or give the file with --wheel"
        )
    return path


def _for_python(tag: str, platform: str) -> list[str]:
    return [
        "--no-deps", "--only-binary=:all:", f"--platform={platform}", f"--abi={tag}",
        "--implementation=cp", f"--python-version={tag[2]}.{tag[3:]}",
    ]  # fmt: skip


def _pip(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    flags = ["--quiet", "--disable-pip-version-check", "--no-input"]
    return subprocess.run(
        [sys.executable, "-m", "pip", verb, *flags, *arguments], capture_output=True, text=True
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def sha256(path: Path) -> str:
    """Raises UsageError when the file cannot be read."""
    try:
        with path.open("rb") as stream:
            digest = hashlib.sha256()
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}: give an existing wheel") from None
    return digest.hexdigest()


class Cache:
    """Wheels that were fetched, each beside a file with its sha256."""

    def __init__(self, folder: Path):
        self._folder = folder

    def get(self, wheel: Wheel) -> Path | None:
        """The whole, unchanged file, or None."""
        path = self._folder / wheel.file
        return path if path.is_file() and sha256(path) == wheel.sha256 else None

    def of_version(self, version: str) -> Wheel | None:
        """A wheel of this release that is there, whole, as it was fetched."""
        for note in sorted(self._folder.glob(f"{PACKAGE}-{glob.escape(version)}-*.whl.sha256")):
            wheel = Wheel(
                note.name.removesuffix(".sha256"), note.read_text(errors="replace").strip()
            )
            if self.get(wheel):
                return wheel
        return None

    def fetch(self, version: str, wheel: Wheel) -> Path:
        """The file, from here or from the index."""
        if path := self.get(wheel):
            return path
        # Not to stdout, which can be a JSON report.
        print(f"fetching {wheel.file} with pip", file=sys.stderr, flush=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        # A folder of its own: two reports can fetch at once.
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".fetching-") as folder:
            path = self._folder / wheel.file
            os.replace(fetch(version, wheel, Path(folder)), path)
        (self._folder / f"{wheel.file}.sha256").write_text(f"{wheel.sha256}\n")
        return path


def version_of(file: str) -> str | None:
    """The release in the name of a wheel file."""
    found = re.match(rf"{PACKAGE}-([^-]+)-", file)
    return found[1] if found else None
