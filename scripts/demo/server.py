# SPDX-License-Identifier: Apache-2.0
"""One server process: started, waited for, and ended with all that it has started itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import NoReturn

from cpu_profile.environment import set_environment

from .client import is_healthy
from .failure import Failure
from .ports import LOOPBACK
from .signals import ending_signals_ignored
from .terminal import Progress

_START_TIMEOUT_S = 600.0
_STOP_TIMEOUT_S = 10.0
_POLL_S = 0.2
_TAIL_LINES = 15
_TAIL_COLUMNS = 200
# Ends a process group when the command that started it is gone, even by SIGKILL: then nobody
# holds the other end of this shell's standard input any more.
_GUARD = 'read -r _; kill -s KILL -- "-$0"'


def server_environment(
    temporary: Path, python_path: Path | None = None, on_cpu: bool = True
) -> dict[str, str]:
    """The environment of a server: this one, the CPU profile, and its own temporary folder.

    Args:
        temporary: folder for the sockets that SGLang leaves behind.
        python_path: folder to put in front of PYTHONPATH.
        on_cpu: False leaves the CPU profile out.
    """
    environment = dict(os.environ)
    if on_cpu:
        set_environment(environment)
    environment["TMPDIR"] = str(temporary)
    if python_path is not None:
        paths = [str(python_path), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Its gRPC server is off, yet it refuses an HTTP port whose gRPC port, by default 10,000 more,
    # is out of range.
    environment.setdefault("SGLANG_GRPC_PORT", "50051")
    # SGLang sends its own warm-up request through the proxy of the environment.
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = ",".join(filter(None, [environment.get(name, ""), LOOPBACK]))
    return environment


class Server:
    """A server in a process group of its own. Use it in a `with` statement."""

    def __init__(
        self, name: str, command: list[str], port: int, log: Path, environment: dict[str, str]
    ) -> None:
        self.name = name
        self.port = port
        self.log = log
        self._stopped = False
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def has_exited(self) -> bool:
        """Whether the first process is gone. It is not reaped, so its group id stays ours."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return self._stopped or os.waitid(os.P_PID, self._process.pid, how) is not None

    def wait_until_healthy(self, progress: Progress, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return when the server answers.

        Raises:
            Failure: it ended, or was not ready in time; with the end of its log.
        """
        while not is_healthy(self.port):
            if self.has_exited():
                self.fail("found that it ended")
            if progress.seconds > timeout_s:
                self.fail(f"found no sign of health after {timeout_s:.0f} s")
            progress.update()
            time.sleep(_POLL_S)

    def wait(self) -> None:
        """Return when the server has ended by itself."""
        while not self.has_exited():
            time.sleep(_POLL_S)

    def fail(self, found: str) -> NoReturn:
        """Raise a `Failure` that quotes the end of the log."""
        with self.log.open(encoding="utf-8", errors="replace") as lines:
            tail = tuple(line.rstrip()[:_TAIL_COLUMNS] for line in deque(lines, _TAIL_LINES))
        raise Failure(
            f"{self.name} server: expected it to answer, {found}; the whole log is {self.log}",
            tail,
        )

    def stop(self) -> None:
        """Ask the first process to end, for ten seconds; then kill what is left of its group."""
        if self._stopped:
            return
        with ending_signals_ignored():
            os.kill(self._process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while not self.has_exited() and time.monotonic() < deadline:
                time.sleep(_POLL_S / 4)
            # The first process is still there, if only as a zombie, so the group is as well.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._guard.kill()
            self._guard.communicate()
            self._process.wait()
            self._stopped = True
