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

NAME = re.compile(r"\d{4}-[a-z0-9]+(?:-[a-z0-9]+)*\.patch")
LISTED = re.compile(rf"(?:\.\./([\w.]+)/)?({NAME.pattern})")
"""A line of a series file: a patch of its own, or `../RELEASE/` and one that it shares with another
release, for which it is byte for byte the same."""
RANGE_DIFF = "range-diff.txt"
BESIDE = ("series", "series.lock", RANGE_DIFF)
"""Files that a series has beside its patches."""
_LOCK_HEADER = "# number, sha256 of the patch, tree id after it; written by --refresh\n"


@dataclass(frozen=True)
class Patch:
    """lender: the release whose folder holds the file, '' for the series' own."""

    name: str
    data: bytes
    lender: str = ""

    @property
    def listed(self) -> str:
        """Its line in the series file."""
        return f"../{self.lender}/{self.name}" if self.lender else self.name

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

    @property
    def id(self) -> str:
        """Names the whole series: 12 digits of the sha256 of its lock."""
        return hashlib.sha256(format_lock(self.lock)).hexdigest()[:12]

    def title(self, level: int) -> str:
        """The last patch applied at `level`, in words."""
        return self.patches[level - 1].title if level else "base"


def _listed(numbers: Iterable[str]) -> str:
    return " ".join(numbers) or "none"


def series_names(text: str) -> list[tuple[int, str]]:
    """(line number, text) for each line of a series file that is not empty or a comment."""
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
    for line, listed in series_names(text):
        where = f"{folder / 'series'} line {line}"
        found = LISTED.fullmatch(listed)
        if not found:
            raise UsageError(
                f"{where}: expected NNNN-kebab-subject.patch, or ../RELEASE/ and such a name, "
                f"found '{listed}'"
            )
        patch = Patch(found[2], _read(folder / listed), found[1] or "")
        if patches and patch.number <= patches[-1].number:
            raise UsageError(f"{where}: {patch.number} must not come after {patches[-1].number}")
        patches.append(patch)
    try:
        lock = parse_lock(_read(folder / "series.lock").decode("utf-8", "replace"))
    except ValueError as problem:
        raise UsageError(f"{folder / 'series.lock'}: {problem}: restore it from git") from None
    return Series(folder, patches, lock)


def borrowers(folder: Path, names: Iterable[str]) -> list[str]:
    """The other releases whose series list one of these patches of `folder`."""
    listed = {f"../{folder.name}/{name}" for name in names}
    found = []
    for path in sorted(folder.parent.glob("*/series")):
        rows = series_names(path.read_text(encoding="utf-8", errors="replace"))
        if listed.intersection(text for _, text in rows):
            found.append(path.parent.name)
    return found


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
