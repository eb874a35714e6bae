# SPDX-License-Identifier: Apache-2.0
"""TCP ports on the loopback interface, the only one that the commands here listen on."""

from __future__ import annotations

import argparse
import errno
import socket

from .failure import UsageError

LOOPBACK = "127.0.0.1"


def parse_port(text: str) -> int:
    """A port number from the command line.

    Raises:
        argparse.ArgumentTypeError: it is not a number from 1 to 65535.
    """
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(
            f"expected a port number from 1 to 65535, found {text!r}; pass PORT=... to make serve"
        )
    return int(text)


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def require_free_port(port: int) -> None:
    """Check that a server could listen on a port.

    Raises:
        UsageError: it is in use, or this user may not listen on it.
    """
    with socket.socket() as probe:
        # As the server does, so that connections that were just closed are not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            in_use = error.errno == errno.EADDRINUSE
            found = "in use" if in_use else (error.strerror or str(error)).lower()
            raise UsageError(
                f"port {port}: expected a free port, found it {found}; pass PORT=... to make serve"
            ) from None
