# SPDX-License-Identifier: Apache-2.0
"""Refuse an address that cannot be served on: SGLang would start, and answer nobody."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from .refusal import Refusal


def require_port(flags: Mapping[str, str | None]) -> None:
    """Raises Refusal unless --port is a port that can be named."""
    text = flags["port"] or ""
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise Refusal(f"--port: expected a number from 1 to 65535, found '{text}'; correct it")


def require_free(flags: Mapping[str, str | None]) -> None:
    """Raises Refusal when nothing can listen on --host and --port."""
    host, port = flags["host"] or "", int(flags["port"] or 0)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as problem:
        # Without the address, which is said already; a name that is not found has no such number.
        found = os.strerror(problem.errno) if problem.errno > 0 else problem.strerror
        raise Refusal(
            f"--host {host} --port {port}: expected to listen there, found: {found}; "
            "choose others (a container with --network host shares the ports of its host)"
        ) from None
