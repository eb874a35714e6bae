# SPDX-License-Identifier: Apache-2.0
"""Unpack a wheel, each file checked against the wheel's RECORD, none outside the target."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import stat
import zipfile
from pathlib import Path, PurePosixPath

from .errors import UsageError


def is_source(name: str) -> bool:
    """True for files that are the same in the wheels of every Python version."""
    first = PurePosixPath(name).parts[0]
    return not first.endswith(".dist-info") and not name.endswith((".so", ".pyd"))


def unpack(path: Path, target: Path) -> list[str]:
    """Unpack every file of the wheel at `path` under `target`; returns their names.

    Raises UsageError when the file is no zip, a name points outside, a file is missing, added, or
    not what RECORD says.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            names = [member.filename for member in members]
            for member in members:
                _refuse_outside(path, member)
            record, hashes = _record(path, archive, names)
            for member in members:
                data = archive.read(member)
                if member.filename != record and _digest(data) != hashes[member.filename]:
                    raise UsageError(f"{path}: {member.filename} is not what RECORD says")
                _write(target / member.filename, data, member.external_attr >> 16)
    except (zipfile.BadZipFile, EOFError) as problem:
        raise UsageError(f"{path}: not a whole zip file ({problem}): fetch it again") from None
    return names


def _refuse_outside(path: Path, member: zipfile.ZipInfo) -> None:
    name = member.filename
    parts = name.split("/")
    linked = stat.S_ISLNK(member.external_attr >> 16)
    if linked or "\\" in name or ":" in parts[0] or not {"", ".", ".."}.isdisjoint(parts):
        raise UsageError(f"{path}: refuses to unpack '{name}': a link, or outside the target")


def _record(path: Path, archive: zipfile.ZipFile, names: list[str]) -> tuple[str, dict[str, str]]:
    """(name of the RECORD file, expected digest of every other file)."""
    records = [name for name in names if name.endswith(".dist-info/RECORD")]
    if len(records) != 1:
        raise UsageError(f"{path}: expected one RECORD, found {len(records)}: not a wheel")
    try:
        text = archive.read(records[0]).decode("utf-8")
        hashes = {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if row}
    except (UnicodeDecodeError, IndexError, csv.Error):
        raise UsageError(f"{path}: {records[0]} cannot be read: fetch the wheel again") from None
    if sorted(names) != sorted(hashes):
        odd = sorted(set(names).symmetric_difference(hashes)) or names
        raise UsageError(f"{path}: the files and RECORD differ, for example in {odd[0]}")
    return records[0], hashes


def _digest(data: bytes) -> str:
    raw = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return "sha256=" + raw.decode().rstrip("=")


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755 if mode & 0o100 else 0o644)
