# SPDX-License-Identifier: Apache-2.0
"""The series file (the only order list), the patches it names, and series.lock."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .errors import DoesNotApply, LockMismatch, UsageError
from .patchfile import PatchFile, PatchFormatError, parse

NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.patch")
_LOCK_HEADER = "# number, sha256 of the patch, tree id after it; written by --refresh\n"


@dataclass(frozen=True)
class Patch:
    name: str
    data: bytes

    @property
    def number(self) -> str:
        return self.name[:4]

    @property
    def title(self) -> str:
        return self.name.removesuffix(".patch")

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def content(self) -> PatchFile:
        """Raises DoesNotApply when the file is malformed."""
        try:
            return parse(self.data)
        except PatchFormatError as problem:
            raise DoesNotApply(f"{self.name}: {problem}") from None


@dataclass(frozen=True)
class Locked:
    sha256: str
    tree: str


@dataclass(frozen=True)
class Series:
    folder: Path
    patches: list[Patch]
    lock: dict[str, Locked]
    """By patch number."""

    def level(self, number: str) -> int:
        """How many patches are applied when `number` is the last one. Raises UsageError."""
        for position, patch in enumerate(self.patches, 1):
            if patch.number == number:
                return position
        known = ", ".join(patch.number for patch in self.patches) or "no patches"
        raise UsageError(f"patch '{number}' is not in the series, which has: {known}")

    def require_locked(self) -> None:
        """Raise LockMismatch unless series.lock has these patches, byte for byte."""
        numbers = [patch.number for patch in self.patches]
        if list(self.lock) != numbers:
            raise LockMismatch(
                f"series.lock: expected the patches of the series ({_listed(numbers)}), found "
                f"{_listed(self.lock)}: run --refresh if you changed the series, or restore both "
                "files from git; nothing was changed"
            )
        for patch in self.patches:
            expected = self.lock[patch.number].sha256
            if patch.sha256 != expected:
                raise LockMismatch(
                    f"{patch.name}: expected sha256 {expected} (series.lock), found "
                    f"{patch.sha256}: run --refresh if you edited the patch, or restore it from "
                    "git; nothing was changed"
                )

    def title(self, level: int) -> str:
        """The last patch applied at `level`, in words."""
        return self.patches[level - 1].title if level else "base"


def _listed(numbers: Iterable[str]) -> str:
    return " ".join(numbers) or "none"


def series_names(text: str) -> list[tuple[int, str]]:
    """(line number, name) for each line of a series file that is not empty or a comment."""
    rows = ((n, line.split("#", 1)[0].strip()) for n, line in enumerate(text.split("\n"), 1))
    return [(number, name) for number, name in rows if name]


def parse_lock(text: str) -> dict[str, Locked]:
    """Read series.lock. Raises ValueError with the line number."""
    lock = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        found = re.fullmatch(r"(\d{4}) ([0-9a-f]{64}) ([0-9a-f]{40})", line)
        if not found or found[1] in lock:
            raise ValueError(f"line {number} is not 'number sha256 tree', or is there twice")
        lock[found[1]] = Locked(found[2], found[3])
    return lock


def format_lock(lock: dict[str, Locked]) -> bytes:
    body = "".join(f"{number} {row.sha256} {row.tree}\n" for number, row in lock.items())
    return (_LOCK_HEADER + body).encode()


def load(folder: Path) -> Series:
    """Read a series and all its patches. Raises UsageError on a wrong list or a missing file."""
    text = _read(folder / "series").decode("utf-8", "replace")
    patches: list[Patch] = []
    for line, name in series_names(text):
        where = f"{folder / 'series'} line {line}"
        if not NAME.fullmatch(name):
            raise UsageError(f"{where}: expected NNNN-kebab-subject.patch, found '{name}'")
        if patches and name[:4] <= patches[-1].number:
            raise UsageError(f"{where}: {name[:4]} must not come after {patches[-1].number}")
        patches.append(Patch(name, _read(folder / name)))
    try:
        lock = parse_lock(_read(folder / "series.lock").decode("utf-8", "replace"))
    except ValueError as problem:
        raise UsageError(f"{folder / 'series.lock'}: {problem}: restore it from git") from None
    return Series(folder, patches, lock)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror}: restore it from git") from None


def write_all(files: dict[Path, bytes]) -> None:
    """Replace files, each atomically, in the given order; nothing moves until all are on disk."""
    pending: list[tuple[Path, Path]] = []
    try:
        for path, data in files.items():
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
            pending.append((Path(name), path))
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, 0o644)
        for new, path in pending:
            os.replace(new, path)
    finally:
        for new, _ in pending:
            new.unlink(missing_ok=True)
