# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs on a CPU: the runner's own code, on a graph that records what a stream would.

`RecordedGraph` keeps the operations of a forward with the very tensors they read and wrote. Its
replay runs these again and nothing else: no Python of the model or of the attention backend, so
a value that was not copied into a captured buffer is missed, as on a device. What would
synchronise a stream is refused while capturing.
"""

import contextlib
from functools import partial
from types import SimpleNamespace

import modes
import torch
from engine_probe import LOG, wrap
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten
from triton.runtime import interpreter

# Operations that need a value on the host, or whose result's size does.
SYNCHRONISING = {
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.equal.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten._unique2.default,
    torch.ops.aten.repeat_interleave.Tensor,
}


def synchronises(func, args) -> bool:
    """Whether a device would have to wait for its host; copies to the host are not seen here."""
    if func is torch.ops.aten.index.Tensor:
        return any(index is not None and index.dtype == torch.bool for index in args[1])
    return func in SYNCHRONISING


class RecordedGraph:
    """The operations of one captured forward."""

    recording: "RecordedGraph | None" = None

    def __init__(self) -> None:
        self.operations = []

    def replay(self) -> None:
        """Run the operations again on the tensors of the capture."""
        with torch.inference_mode():
            for run, args, kwargs, outputs in self.operations:
                again = tree_flatten(run(*args, **kwargs))[0]
                for old, new in zip(outputs, again, strict=True):
                    # A view, or the tensor that was written to, is up to date.
                    if isinstance(old, torch.Tensor) and not _same_memory(old, new):
                        old.copy_(new)


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


class Recorder(TorchDispatchMode):
    """Appends every tensor operation to a graph."""

    def __init__(self, graph: RecordedGraph) -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if synchronises(func, args):
            raise RuntimeError(f"{func} is not permitted when a stream is capturing")
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.graph.operations.append((func, args, kwargs, tree_flatten(result)[0]))
        return result


@contextlib.contextmanager
def recording(graph: RecordedGraph):
    RecordedGraph.recording = graph
    try:
        with Recorder(graph):
            yield
    finally:
        RecordedGraph.recording = None


def record_kernels() -> None:
    """Record launches of interpreted Triton kernels as one operation each."""
    launch = interpreter.GridExecutor.__call__

    def launch_and_record(self, *args, **kwargs):
        graph = RecordedGraph.recording
        if graph is None:
            return launch(self, *args, **kwargs)
        # What the interpreter does inside of a kernel is no operation of the stream.
        with _disable_current_modes():
            launch(self, *args, **kwargs)
        graph.operations.append((partial(launch, self), args, kwargs, [None]))

    interpreter.GridExecutor.__call__ = launch_and_record


@contextlib.contextmanager
def capture_context(stream=None):
    yield SimpleNamespace(stream=stream)


def patch_graph_runner(module) -> None:
    """Let `CudaGraphRunner` make recorded graphs."""

    def capture_graph(self, graph, pool, stream, run_once):
        with recording(graph):
            return run_once()

    def poison(replay_prepare):
        def prepare(self, *args, **kwargs):
            mask, positions = self.attn_backend.cuda_graph_custom_mask, self.buffers.positions
            # What an earlier batch left must not matter.
            mask.zero_()
            left = positions.clone()
            replay_prepare(self, *args, **kwargs)
            if modes.CURRENT == "positions_left":
                positions.copy_(left)
            elif modes.CURRENT == "mask_left":
                mask.zero_()

        return prepare

    def log(replay):
        def replay_and_log(self, *args, **kwargs):
            result = replay(self, *args, **kwargs)
            logits = self.output_buffers[self.bs].next_token_logits
            LOG.replays.append(
                {
                    "draft": self.model_runner.is_draft_worker,
                    "rows": self.raw_bs,
                    "captured_rows": self.bs,
                    "finite": logits is None or bool(logits.isfinite().all()),
                }
            )
            return result

        return replay_and_log

    def leave_unpadded(pad):
        return lambda *args: None if modes.CURRENT == "mask_unpadded" else pad(*args)

    wrap(module.CudaGraphRunner, "replay_prepare", poison)
    wrap(module.CudaGraphRunner, "replay", log)
    wrap(module, "pad_ddtree_mask", leave_unpadded)
    record_kernels()
    torch.cpu.graph_pool_handle = object
    module.graph_capture = capture_context
    module.set_graph_pool_id = lambda pool: None
    module.CudaGraphRunner._create_device_graph = lambda self: RecordedGraph()
    module.CudaGraphRunner._capture_graph = capture_graph


def patch_model_runner(module) -> None:
    """Let every `ModelRunner` of a CPU capture as one of a GPU does."""
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    def init_device_graphs(self) -> None:
        self.graph_mem_usage = 0
        self.graph_runner = module.CudaGraphRunner(self)

    ForwardMode.is_cpu_graph = ForwardMode.is_cuda_graph
    module.ModelRunner.init_device_graphs = init_device_graphs
