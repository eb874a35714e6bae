# SPDX-License-Identifier: Apache-2.0
"""A running engine: a server process of its own, asked over HTTP, and certainly ended."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.client import request
from demo.failure import Failure
from demo.ports import free_port
from demo.server import Server, server_environment
from demo.terminal import Progress

from .graph_log import GraphLog, read_graph_log
from .machine import Machine
from .served import EngineSpec, Pair, dtype_environment, launch_command
from .states import NotRun

_FLUSH_S = 30
_EXCEPTION = re.compile(r"(?:\[[^]]*\] )?(?:[\w.]+\.)?(\w+(?:Error|Exception|Resources)): (.+)")
_NO_ROOM = re.compile(
    r"CUDA out of memory|OutOfMemoryError|Not enough memory|OutOfResources|out of resource"
)
# A ValueError below one of these is the server's answer to its flags, and no crash.
_JUDGES_OF_FLAGS = ("server_args.py", "ddtree_args.py")


class Refused(Failure):
    """The server does not take its flags; the message is its own line."""


@dataclass(frozen=True)
class Ask:
    """One request.

    Attributes:
        label: names it among all requests of a comparison.
        seed: for a temperature above 0.
    """

    label: str
    input_ids: tuple[int, ...]
    max_new_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    ignore_eos: bool = True

    def sampling_params(self) -> dict[str, Any]:
        params = {"temperature": self.temperature, "max_new_tokens": self.max_new_tokens}
        params |= {"ignore_eos": True} if self.ignore_eos else {}
        return params | ({"sampling_seed": self.seed} if self.seed is not None else {})


@dataclass(frozen=True)
class Reply:
    """verify_steps: 0 without speculation."""

    token_ids: tuple[int, ...]
    verify_steps: int


@dataclass
class Bench:
    """Where engines run: the machine, what they serve, where their logs go, how patient we are.

    Attributes:
        start_timeout_s, answer_timeout_s: an engine that takes longer is ended.
        extra: flags for every server, from the command line.
        folder: of the logs, one for each engine.
    """

    machine: Machine
    pair: Pair
    folder: Path
    start_timeout_s: float
    answer_timeout_s: float
    extra: tuple[str, ...] = ()
    _started: int = field(default=0, init=False)

    def environment(self, spec: EngineSpec, temporary: Path) -> dict[str, str]:
        """Variables of an engine's process."""
        on_gpu = self.machine.on_gpu
        environment = server_environment(temporary, on_cpu=not on_gpu)
        if on_gpu:
            environment |= dtype_environment(spec.dtype)
            # SGLang asks for the sgl-kernel of CUDA 13 by its version; the report names ours.
            environment.setdefault("SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK", "1")
        elif spec.tp > 1:
            # Upstream wants a core a rank, or as many NUMA nodes as ranks.
            cores = "|".join(str(core) for core in self.machine.cores[: spec.tp])
            environment.setdefault("SGLANG_CPU_OMP_THREADS_BIND", cores)
        return environment

    @contextmanager
    def engine(self, spec: EngineSpec) -> Iterator[Engine]:
        """An engine for the length of the context.

        Raises:
            Refused: the server does not take its flags.
            NotRun: the device has no room for it.
            Failure: it ended, or was not ready in time.
        """
        self._started += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "-", spec.name.lower())
        log = self.folder / f"{self._started:02d}-{slug}.log"
        port = free_port()
        command = launch_command(spec, self.pair, self.machine.on_gpu, port, self.extra)
        with (
            tempfile.TemporaryDirectory(
                prefix="gpu-check-", ignore_cleanup_errors=True
            ) as temporary,
            Server(
                spec.name, command, port, log, self.environment(spec, Path(temporary))
            ) as server,
        ):
            progress = Progress(f"  starting {spec.name}")
            try:
                server.wait_until_healthy(progress, self.start_timeout_s)
            except Failure as failure:
                text = log.read_text(encoding="utf-8", errors="replace")
                raise why_no_start(text, self.machine.on_gpu, failure) from failure
            progress.done(f"ready after {progress.seconds:.0f} s")
            yield Engine(server, self.answer_timeout_s, progress.seconds)


def why_no_start(log: str, on_gpu: bool, failure: Failure) -> Exception:
    """What to raise for a server that did not start, from its log."""
    lines = log.splitlines()
    if on_gpu and (no_room := next((x for x in lines if _NO_ROOM.search(x)), None)):
        return NotRun(f"the GPU has no room for it: {no_room.strip()[:200]}")
    errors = [(i, m) for i, line in enumerate(lines) if (m := _EXCEPTION.match(line))]
    if errors:
        index, found = errors[-1]
        begin = next((i for i in range(index, -1, -1) if "Traceback" in lines[i]), 0)
        judged = any(judge in line for line in lines[begin:index] for judge in _JUDGES_OF_FLAGS)
        if found[1] == "ValueError" and judged:
            return Refused(found[2].strip())
        return Failure(f"{failure} ({found[1]}: {found[2].strip()[:300]})", failure.details)
    return failure


class Engine:
    """A server that has answered its health check."""

    def __init__(self, server: Server, answer_timeout_s: float, start_seconds: float) -> None:
        self._server = server
        self._timeout_s = answer_timeout_s
        self.start_seconds = start_seconds

    def answer(self, asks: Sequence[Ask]) -> list[Reply]:
        """All requests in one call, which makes one batch of them.

        Raises:
            Failure: there was no answer, or the engine ended.
        """
        body = {
            "input_ids": [list(ask.input_ids) for ask in asks],
            "sampling_params": [ask.sampling_params() for ask in asks],
        }
        return [
            Reply(tuple(each["output_ids"]), each["meta_info"].get("spec_verify_ct", 0))
            for each in self._post("/generate", body)
        ]

    def next_log_probs(
        self, prefixes: Sequence[Sequence[int]], tokens: Sequence[Sequence[int]]
    ) -> list[tuple[float, list[float]]]:
        """For each prefix the best log-probability of a next token, and those of some tokens.

        At temperature 1, from an engine without speculation: DDTREE refuses the question.
        """
        body = {
            "input_ids": [list(prefix) for prefix in prefixes],
            "sampling_params": [{"temperature": 0, "max_new_tokens": 1} for _ in prefixes],
            "return_logprob": [True for _ in prefixes],
            "top_logprobs_num": [1 for _ in prefixes],
            "token_ids_logprob": [list(some) for some in tokens],
        }
        found = []
        for each, some in zip(self._post("/generate", body), tokens, strict=True):
            meta = each["meta_info"]
            by_id = {entry[1]: entry[0] for entry in meta["output_token_ids_logprobs"][0]}
            best = meta["output_top_logprobs"][0][0][0]
            found.append((best, [by_id[token] for token in some]))
        return found

    def forget(self) -> None:
        """Empty the prefix cache, so that the next prompt is read in full."""
        with request(
            self._server.port,
            "POST",
            f"/flush_cache?timeout={_FLUSH_S}",
            timeout_s=2 * _FLUSH_S,
            log=self._server.log,
        ):
            pass

    def log_size(self) -> int:
        """Bytes of the log so far, for `graphs`."""
        return os.path.getsize(self._server.log)

    def graphs(self, since: int = 0) -> GraphLog:
        """What the log says of graph replays, from a byte on."""
        with self._server.log.open("rb") as log:
            log.seek(since)
            return read_graph_log(log.read().decode("utf-8", "replace"))

    def _post(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        log = self._server.log
        try:
            with request(self._server.port, "POST", path, body, self._timeout_s, log) as response:
                answer = json.load(response)
        except Failure:
            if self._server.has_exited():
                self._server.fail("found that it ended")
            raise
        except ValueError as error:
            raise Failure(
                f"{path}: expected JSON from the server, found {error}; see {log}"
            ) from None
        return answer if isinstance(answer, list) else [answer]
