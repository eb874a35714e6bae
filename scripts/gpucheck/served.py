# SPDX-License-Identifier: Apache-2.0
"""What is served, and the command line of each engine that serves it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from demo.methods import CPU_FLAGS, IDLE_FLAG, PLAIN, speculation_flags
from demo.ports import LOOPBACK

GREATEST_BATCH = 8
# Between them lie 3, 5, 6 and 7, which a replay pads.
CAPTURED_BATCHES = (1, 2, 4, 8)
_KV_SLOTS = 16384
# Quick to parse; the scheduler writes a line each so many decode steps.
_SPARSE_LOG, _EVERY_STEP = 10, 1


@dataclass(frozen=True)
class Pair:
    """A target, its drafter and the number of drafted nodes of a tree."""

    target: str
    draft: str
    budget: int


@dataclass(frozen=True)
class EngineSpec:
    """One engine. What two engines of a comparison differ in is one field.

    Attributes:
        method: one of `demo.methods.METHODS`.
        dtype: SGLang's --dtype; on a CPU always float32.
        attention: SGLang's --attention-backend; on a CPU always torch_native.
        graphs: whether CUDA graphs may be used.
        deterministic: --enable-deterministic-inference; a request's seed is used with it only.
        overlap: whether the scheduler may prepare a batch while another runs. Speculation of
            this kind cannot, so engines that are compared do without it.
        log_every_step: the log says of each decode step whether it replayed a graph.
    """

    method: str
    dtype: str = "float32"
    attention: str = "triton"
    graphs: bool = True
    tp: int = 1
    deterministic: bool = False
    overlap: bool = False
    log_every_step: bool = False

    @property
    def name(self) -> str:
        """For progress lines and names of logs."""
        parts = [self.method]
        parts += [self.attention] if self.attention != "triton" else []
        parts += ["eager"] if not self.graphs else []
        parts += [f"tp {self.tp}"] if self.tp > 1 else []
        parts += ["deterministic"] if self.deterministic else []
        parts += ["overlap"] if self.overlap else []
        return ", ".join(parts)


def launch_command(
    spec: EngineSpec, pair: Pair, on_gpu: bool, port: int, extra: tuple[str, ...] = ()
) -> list[str]:
    """The command of an engine; `extra` flags come last, so they win."""
    command = [sys.executable, "-m", "sglang.launch_server"]
    command += ["--model-path", pair.target, "--host", LOOPBACK, "--port", str(port)]
    if on_gpu:
        command += ["--dtype", spec.dtype, "--attention-backend", spec.attention]
        # It compiles nothing while a request waits, and it is on every card.
        command += ["--sampling-backend", "pytorch"]
        command += _graph_flags(spec.graphs)
    else:
        command += [*CPU_FLAGS, IDLE_FLAG]
    command += ["--page-size", "1", "--random-seed", "0"]
    command += ["--max-running-requests", str(GREATEST_BATCH)]
    command += ["--max-total-tokens", str(_KV_SLOTS)]
    interval = _EVERY_STEP if spec.log_every_step else _SPARSE_LOG
    command += ["--decode-log-interval", str(interval)]
    if spec.tp > 1:
        command += ["--tp-size", str(spec.tp)]
    if spec.deterministic:
        command += ["--enable-deterministic-inference"]
    if not spec.overlap:
        command += ["--disable-overlap-schedule"]
    command += speculation_flags(spec.method, pair.draft, pair.budget)
    return [*command, *extra]


def _graph_flags(graphs: bool) -> list[str]:
    # Those of prefill are another feature, and not one that is compared here.
    flags = ["--disable-piecewise-cuda-graph"]
    if not graphs:
        return [*flags, "--disable-cuda-graph"]
    return [*flags, "--cuda-graph-bs", *map(str, CAPTURED_BATCHES)]


def dtype_environment(dtype: str) -> dict[str, str]:
    """Variables that make fp32 mean fp32: without them tensor cores round products to TF32."""
    if dtype != "float32":
        return {}
    return {"NVIDIA_TF32_OVERRIDE": "0", "TRITON_F32_DEFAULT": "ieee"}


def without_speculation(spec: EngineSpec) -> EngineSpec:
    """An engine that scores what others answered: same dtype and kernels, nothing else."""
    return EngineSpec(PLAIN, spec.dtype, "triton")
