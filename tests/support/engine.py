# SPDX-License-Identifier: Apache-2.0
"""A real SGLang engine on the CPU profile, for tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
PROBE = HERE / "probe"
# Seconds to wait for an answer before an engine counts as hung.
PATIENCE = 600
DEFAULTS = {
    "device": "cpu",
    "dtype": "float32",
    "attention_backend": "torch_native",
    "disable_cuda_graph": True,
    "page_size": 1,
    "max_total_tokens": 8192,
    "max_running_requests": 8,
    "random_seed": 0,
    # Without it an idle scheduler keeps a core busy.
    "sleep_on_idle": True,
    "log_level": "warning",
}


class EngineError(Exception):
    """A call that the engine refused; `kind` is the name of the exception's type there."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class EngineDied(Exception):
    """The engine's process ended or hung; the message holds the end of its log."""


@dataclass(frozen=True)
class Request:
    """A greedy request of `Engine.run`.

    Attributes:
        input_ids: the prompt.
        sampling_params: what differs from temperature 0.
        rid: the request's name in the probe's log.
        after: (i, n): sent once the i-th request of the same call has streamed n tokens.
        abort_after: aborted by its client once it has streamed so many tokens.
    """

    input_ids: list[int]
    sampling_params: dict
    rid: str
    after: tuple[int, int] | None = None
    abort_after: int | None = None


@dataclass(frozen=True)
class PoolState:
    """The scheduler's memory, as counted in its process.

    Attributes:
        total: KV slots that there are.
        available: KV slots that the allocator calls free.
        cached: KV slots that the radix cache holds and could evict.
        protected: KV slots of the radix cache that a running request holds.
        accounted: distinct slots that are free or cached; less than `total` after a leak.
        duplicates: slots that are listed more than once, after a double free.
        free_requests: unused rows of the request table.
        total_requests: rows of the request table.
    """

    total: int
    available: int
    cached: int
    protected: int
    accounted: int
    duplicates: int
    free_requests: int
    total_requests: int

    def assert_all_free(self) -> None:
        """No slot is lost, doubled or held: all are free or can be evicted."""
        assert self.available + self.cached == self.total, f"KV slots leaked: {self}"
        assert self.protected == 0, f"the radix cache is still locked: {self}"
        assert self.accounted == self.total and not self.duplicates, f"KV slots lost: {self}"
        assert self.free_requests == self.total_requests, f"request rows leaked: {self}"


class EngineHost:
    """The process that runs engines, one after another; it survives their crashes."""

    def __init__(self, directory: Path) -> None:
        """`directory` is for its log and for what the probe writes."""
        self.directory = directory
        self.log = directory / "engine.log"
        self.process: subprocess.Popen | None = None
        self.connection = None

    @contextlib.contextmanager
    def engine(
        self, environment: dict[str, str] | None = None, **arguments: Any
    ) -> Iterator["Engine"]:
        """An engine for the length of the context.

        Args:
            environment: variables for the engine's processes.
            arguments: server arguments beside and over `DEFAULTS`.

        Raises:
            EngineError: the server refused its arguments.
            EngineDied: it ended before it was ready.
        """
        # Variables stay set in a process, so an engine with its own gets a process of its own.
        if environment:
            self.close()
        try:
            self.call("start", environment=environment or {}, arguments=DEFAULTS | arguments)
            yield Engine(self)
            self.call("stop")
        except BaseException:
            self.close()
            raise
        if environment:
            self.close()

    def call(self, name: str, **arguments: Any) -> Any:
        """Call a function of `engine_host.Host`.

        A call that gets no answer ends the process: the answer to it, if it came late, would be
        taken for the next call's.
        """
        if self.process is None:
            if name != "start":
                raise EngineDied(f"no engine to {name}: an earlier call has ended it")
            self._open()
        try:
            self.connection.send((name, arguments))
            if not self.connection.poll(PATIENCE):
                raise TimeoutError(f"no answer in {PATIENCE} s")
            status, *answer = self.connection.recv()
        except (EOFError, OSError) as error:
            self.close()
            message = f"the engine died during {name} ({error!r}); its log ends:\n"
            raise EngineDied(message + self._log_end()) from error
        except BaseException:
            self.close()
            raise
        if status == "error":
            raise EngineError(*answer)
        return answer[0]

    def close(self) -> None:
        """End the process and everything that it started."""
        if self.process is None:
            return
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=60)
        # The session is the process's own: nothing of it may outlive the tests.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def _open(self) -> None:
        self.connection, theirs = Pipe()
        python_path = [str(PROBE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
            "SGLANG_DDTREE_PROBE": "1",
        }
        with self.log.open("ab") as log, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.engine_host", str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _log_end(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])


class Engine:
    """A running engine."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host

    def generate(self, **arguments: Any) -> Any:
        """`sglang.Engine.generate` as it is."""
        return self._host.call("generate", arguments=arguments)

    def greedy(
        self, prompts: list[list[int]], max_new_tokens: int, rids: list[str] | None = None, **params
    ) -> list[dict]:
        """One batch at temperature 0 that runs through stop tokens; an output per prompt."""
        params = {"temperature": 0, "ignore_eos": True, "max_new_tokens": max_new_tokens} | params
        return self.generate(input_ids=prompts, sampling_params=params, rid=rids)

    def run(self, requests: list[Request]) -> list[dict]:
        """Stream requests at once, each started when its `after` says.

        Returns:
            The last output of each, with its token ids at every chunk as `chunks`.
        """
        calls = []
        for request in requests:
            call = asdict(request)
            call["sampling_params"] = {"temperature": 0} | request.sampling_params
            calls.append(call)
        return self._host.call("run", requests=calls)

    def server_info(self) -> dict:
        """What the server says of itself, as far as the series changes it."""
        return self._host.call("server_info")

    def flush_cache(self) -> bool:
        """Drop the radix cache; False if a request is still running."""
        return self._host.call("flush_cache")

    def pool_state(self, rank: int = 0) -> PoolState:
        """Count the KV slots in the process of a tensor-parallel rank."""
        return PoolState(**json.loads(self._probe("pool", rank).read_text()))

    def configure(self, mode: str | None = None, record_hidden: bool = False) -> None:
        """Clear the probe's log, choose a mode of `probe/modes.py`, and what is recorded."""
        self._probe("configure", mode=mode, record_hidden=record_hidden)

    def steps(self, rank: int = 0) -> list[dict]:
        """A rank's log of verify steps since `configure`, see `probe/engine_probe.py`."""
        return json.loads(self._probe("steps", rank).read_text())

    def replays(self) -> list[dict]:
        """The log of graph replays since `configure`, see `probe/engine_probe.py`."""
        return json.loads(self._probe("replays").read_text())

    def materialised(self) -> list[int]:
        """Rows of each fused append to the drafter's KV since `configure`."""
        return json.loads(self._probe("materialised").read_text())

    def hidden_rows(self) -> dict[tuple[str, int], torch.Tensor]:
        """What the drafter was fed since `configure`: (rid, position) to a row [features]."""
        return torch.load(self._probe("hidden"))

    def _probe(self, operation: str, rank: int = 0, **arguments: Any) -> Path:
        """Ask the probe of every rank; the file that `rank` has written."""
        handle, path = tempfile.mkstemp(dir=self._host.directory)
        os.close(handle)
        arguments |= {"operation": operation, "path": path}
        self._host.call("rpc", method="ddtree_probe", arguments=arguments)
        return Path(f"{path}.{rank}")
