# SPDX-License-Identifier: Apache-2.0
"""Signals that end a command: they raise, so that every `with` block is left in order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _raise_exit(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


def raise_on_termination() -> None:
    """Make SIGTERM and SIGHUP raise SystemExit; SIGINT raises KeyboardInterrupt.

    SIGINT is set too: a shell starts its background jobs with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _raise_exit)


@contextmanager
def ending_signals_ignored() -> Iterator[None]:
    """Let a clean-up finish, whatever else is pressed or sent meanwhile."""
    before = [signal.signal(signum, signal.SIG_IGN) for signum in _ENDING]
    try:
        yield
    finally:
        for signum, handler in zip(_ENDING, before, strict=True):
            signal.signal(signum, handler)
