# SPDX-License-Identifier: Apache-2.0
"""Where the health check finds the server: a user may have chosen another port."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from .choices import PORT
from .refusal import Refusal

_FILE = "sglang-ddtree-health.json"
# A server that listens on every address answers on the loopback one.
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def _file() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp", _FILE)


def remember(flags: Mapping[str, str | None]) -> None:
    """Note the address of the server that these flags start. Raises Refusal."""
    host = flags.get("host") or "127.0.0.1"
    scheme = "https" if flags.get("ssl-certfile") else "http"
    where = {"scheme": scheme, "host": _EVERY.get(host, host), "port": int(flags["port"])}
    try:
        _file().write_text(json.dumps(where))
    except OSError as problem:
        raise Refusal(
            f"{_file()}: expected to write it for the health check, found: {problem.strerror}; "
            "remove it, or give the container a temporary folder of its own"
        ) from None


def address() -> tuple[str, str, int]:
    """(scheme, host, port) of the server of this container."""
    try:
        found = json.loads(_file().read_text())
        return found["scheme"], found["host"], found["port"]
    except (OSError, ValueError, KeyError):
        return "http", "127.0.0.1", PORT
