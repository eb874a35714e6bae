# SPDX-License-Identifier: Apache-2.0
"""Refuse a model that cannot be there, before minutes are spent on starting a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .refusal import Refusal

_MOUNT = "mount it with -v /path/on/the/host:{path}:ro"


def require_models(flags: Mapping[str, str | None]) -> None:
    """Check the target and, for DDTREE, the drafter; `flags` includes the image's own choices.

    Raises:
        Refusal: one is not named, or its folder is not in the container.
    """
    _require(flags, "model-path", "a model: name a folder of the container or a Hugging Face id")
    algorithm = (flags.get("speculative-algorithm") or "").upper()
    if algorithm in ("DDTREE", "DFLASH"):
        _require(
            flags,
            "speculative-draft-model-path",
            f"a DFlash drafter, which {algorithm} needs: name a folder of the container or a "
            "Hugging Face id",
        )


def _require(flags: Mapping[str, str | None], flag: str, expected: str) -> None:
    value = flags.get(flag)
    if not value:
        what, _, hint = expected.partition(": ")
        raise Refusal(f"--{flag}: expected {what}, found none; {hint}")
    try:
        _require_readable(flag, value)
    except OSError as problem:
        raise Refusal(
            f"--{flag} {value[:200]}: expected a folder that user {os.getuid()} can read, found: "
            f"{problem.strerror}; change its modes, or the user with --user"
        ) from None


def _require_readable(flag: str, value: str) -> None:
    """Raises Refusal, or OSError where nobody can look."""
    path = Path(value)
    if not path.exists():
        # owner/name is looked up in the cache and on the hub; anything else can only be a path.
        local = path.is_absolute() or value.startswith((".", "~")) or value.count("/") > 1
        if local and "://" not in value:
            raise Refusal(
                f"--{flag} {value}: expected a folder in the container, found none; "
                + _MOUNT.format(path=value)
            )
        return
    config = path / "config.json"
    if path.is_dir() and not config.is_file():
        found = "a link that leads out of the mounted folder" if config.is_symlink() else "none"
        raise Refusal(
            f"--{flag} {value}: expected a config.json in that folder of the container, found "
            f"{found}; " + _MOUNT.format(path=value)
        )
