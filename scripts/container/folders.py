# SPDX-License-Identifier: Apache-2.0
"""Where a server may write: a container may be read-only, and run under any user's number."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from .refusal import Refusal


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def temporary(environ: Mapping[str, str]) -> Path:
    """The folder for sockets and small files.

    Raises:
        Refusal: it cannot be written.
    """
    folder = Path(environ.get("TMPDIR") or "/tmp")
    if not _writable(folder):
        raise Refusal(
            f"temporary folder: expected to be able to write to {folder}, found that it is not so; "
            f"add --tmpfs {folder}:exec"
        )
    return folder


def settle_home(environ: MutableMapping[str, str]) -> str | None:
    """Move HOME into the temporary folder where it cannot be written; returns why, in words.

    Compiled kernels are kept below HOME. A cache of models that is mounted there stays in use.

    Raises:
        Refusal: that cache cannot be read, or the folder cannot be made.
    """
    home = Path(environ.get("HOME") or "/nonexistent")
    cache = home / ".cache" / "huggingface"
    if cache.is_dir() and not os.access(cache, os.R_OK | os.X_OK):
        raise Refusal(
            f"{cache}: expected a cache that user {os.getuid()} can read, found that it is not so; "
            "change its modes, or the user with --user"
        )
    if _writable(home):
        return None
    if "HF_HOME" not in environ and cache.is_dir() and (_writable(cache) or any(cache.iterdir())):
        environ["HF_HOME"] = str(cache)
    new = temporary(environ) / "home"
    try:
        new.mkdir(exist_ok=True)
    except OSError as problem:
        raise Refusal(
            f"HOME: expected to make the folder {new}, found: {problem.strerror}; give the "
            "container a new --tmpfs, or remove it"
        ) from None
    environ["HOME"] = str(new)
    return f"HOME {new}: {home} cannot be written; what is kept there is lost with the container"


def require_loadable(environ: Mapping[str, str]) -> None:
    """Triton and SGLang compile kernels into HOME and load them from there.

    Raises:
        Refusal: it is mounted so that nothing can be loaded, as --tmpfs does if not told otherwise.
    """
    home = environ["HOME"]
    if os.statvfs(home).f_flag & os.ST_NOEXEC:
        raise Refusal(
            f"HOME: expected to load compiled kernels from {home}, found it mounted noexec; mount "
            f"it with exec (--tmpfs {temporary(environ)}:exec)"
        )
