# SPDX-License-Identifier: Apache-2.0
"""Run a server as the only child that counts, and end it when this process is told to end.

SGLang drains its requests on SIGTERM, looking every five seconds whether it may end, and then
kills itself, which Docker would show as a crash (137). As a container's first process this also
has to reap the orphans, and to act on signals that have no default action there.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE_S = 7.0
"""Docker kills ten seconds after it has asked; the rest is for the kernel to free memory."""


class Supervisor:
    """One server process in a session of its own. `run` may be called once."""

    def __init__(self, grace_s: float = GRACE_S) -> None:
        """`grace_s`: how long a server may take to end before it is killed, in seconds."""
        self._grace_s = grace_s
        self._pid = 0
        self._deadline: float | None = None

    @property
    def stopped(self) -> bool:
        """Whether this process was told to end."""
        return self._deadline is not None

    def run(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Start the command and wait for its end.

        Returns:
            0 when this process was told to end, however the server took it; else the server's own
            exit code, or 128 and the signal that ended it.
        """
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, self._on_ending)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only wakes the loop below
        if not self.stopped:
            self._pid = os.posix_spawn(
                command[0], list(command), dict(environ), setsid=True, setsigmask=[],
                setsigdef=[*ENDING, signal.SIGCHLD, signal.SIGPIPE],
            )  # fmt: skip
        if self.stopped:  # told so before there was anything to tell
            self._forward()
        status = self._wait(wake) if self._pid else 0
        self._kill_rest()
        return 0 if self.stopped else _exit_code(status)

    def _on_ending(self, number: int, frame: object) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._grace_s
            self._forward()

    def _forward(self) -> None:
        if self._pid:
            try:
                os.kill(self._pid, signal.SIGTERM)
            except ProcessLookupError:
                pass

    def _wait(self, wake: int) -> int:
        """Reap every child until the server is one of them; returns its wait status."""
        while True:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._pid:
                    return status
                if pid == 0:
                    break
            left = None if self._deadline is None else self._deadline - time.monotonic()
            if left is not None and left <= 0:
                self._kill_rest()
                left = None
            select.select([wake], [], [], left)
            try:
                os.read(wake, 4096)
            except BlockingIOError:
                pass

    def _kill_rest(self) -> None:
        """Kill what is left of the server's session."""
        if self._pid:
            try:
                os.killpg(self._pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
