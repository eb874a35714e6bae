# SPDX-License-Identifier: Apache-2.0
"""upstream.toml: the upstream releases that the series are written for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

try:
    from tomllib import loads
except ModuleNotFoundError:  # Python 3.10
    from .minitoml import loads

PACKAGE = "sglang"
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Wheel:
    file: str
    sha256: str


@dataclass(frozen=True)
class Release:
    key: str
    version: str
    tag: str
    tree: str
    """git tree id of the materialised files, without compiled extensions and metadata."""
    wheels: dict[str, Wheel]
    """By Python tag: cp310, cp311, ..."""


@dataclass(frozen=True)
class Project:
    """The repository that holds upstream.toml and patches/."""

    root: Path

    def release(self, key: str | None) -> Release:
        """The named release, or the default one. Raises UsageError."""
        data = self._data()
        try:
            releases = data["release"]
            key = data["default"] if key is None else key
            if key not in releases:
                known = ", ".join(releases)
                raise UsageError(f"release '{key}' is not in upstream.toml, which has: {known}")
            row = releases[key]
            wheels = {tag: Wheel(w["file"], w["sha256"]) for tag, w in row["wheel"].items()}
            release = Release(key, row["version"], row["tag"], row["tree"], wheels)
        except (KeyError, TypeError, AttributeError) as problem:
            raise UsageError(f"{self.pins}: release '{key}' has no usable {problem}") from None
        if not re.fullmatch(r"[0-9a-f]{40}", release.tree):
            raise UsageError(f"{self.pins}: tree of '{key}' is not a 40-digit id: '{release.tree}'")
        return release

    def pinned(self, key: str) -> Release | None:
        """The named release, or None when upstream.toml has none of this name."""
        return self.release(key) if key in self._data().get("release", {}) else None

    @property
    def pins(self) -> Path:
        return self.root / "upstream.toml"

    def _data(self) -> dict:
        try:
            return loads(self.pins.read_text(encoding="utf-8"))
        except OSError as problem:
            raise UsageError(f"{self.pins}: {problem.strerror}: restore it from git") from None
        except ValueError as problem:
            raise UsageError(f"{self.pins}: {problem}") from None

    def materialised(self, release: Release) -> Path:
        """Where the upstream files of `release` are unpacked."""
        return self.root / PACKAGE / release.key

    def patches(self, release: Release) -> Path:
        return self.root / "patches" / release.key
