# SPDX-License-Identifier: Apache-2.0
"""The guards that let DFLASH run on a CPU change nothing on other devices."""

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from draft_forward import embeds_dtype
from sglang.srt import utils
from sglang.srt.distributed import parallel_state
from sglang.srt.mem_cache import memory_pool, memory_pool_host
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative import dflash_worker


@pytest.mark.parametrize(
    ("device", "model_dtype", "expected"),
    [
        ("cuda", torch.float32, torch.bfloat16),
        ("cuda", torch.float16, torch.bfloat16),
        ("xpu", torch.float32, torch.bfloat16),
        ("cpu", torch.float32, torch.float32),
        ("cpu", torch.bfloat16, torch.bfloat16),
    ],
)
def test_input_embeds_are_cast_as_before_off_the_cpu(device, model_dtype, expected):
    """On a CPU the drafter gets its embeddings in its own dtype, elsewhere in bfloat16."""
    assert embeds_dtype(device, model_dtype, ddtree_budget=None) == expected


class DraftWorkerReached(Exception):
    """Stops DFlashWorker where it has decided about the draft's server arguments."""


def draft_backend_for(monkeypatch, device: str, backend: str) -> str:
    seen = {}

    def draft_worker(*, server_args, **_):
        seen["backend"] = server_args.attention_backend
        raise DraftWorkerReached

    monkeypatch.setattr(dflash_worker, "TpModelWorker", draft_worker)
    monkeypatch.setattr(dflash_worker, "get_global_server_args", lambda: None)
    server_args = object.__new__(ServerArgs)  # field defaults, nothing resolved
    server_args.page_size = 1
    server_args.attention_backend = backend
    target_worker = SimpleNamespace(
        device=device,
        get_memory_pool=lambda: (None, None),
        model_runner=SimpleNamespace(
            model_config=SimpleNamespace(context_len=128), memory_pool_config=None
        ),
    )
    with pytest.raises(DraftWorkerReached):
        dflash_worker.DFlashWorker(server_args, 0, 0, None, 0, 0, 0, 0, target_worker)
    return seen["backend"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("backend", ["flashinfer", "fa3", "fa4", "triton"])
def test_supported_draft_backends_are_kept(monkeypatch, device, backend):
    assert draft_backend_for(monkeypatch, device, backend) == backend


def test_torch_native_drafts_on_a_cpu_only(monkeypatch):
    assert draft_backend_for(monkeypatch, "cpu", "torch_native") == "torch_native"
    assert draft_backend_for(monkeypatch, "cuda", "torch_native") == "flashinfer"


def test_a_deterministic_server_on_a_cpu_needs_no_backend_flag(tmp_path):
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 20,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    args = ServerArgs(model_path=str(tmp_path), device="cpu", enable_deterministic_inference=True)
    assert args.get_attention_backends() == ("torch_native", "torch_native")


@pytest.mark.parametrize(("native", "warmed_up"), [("0", True), ("1", False)])
def test_kv_copy_kernel_is_set_up_unless_the_native_copy_is_chosen(monkeypatch, native, warmed_up):
    calls = []
    monkeypatch.setenv("SGLANG_NATIVE_MOVE_KV_CACHE", native)
    monkeypatch.setattr(
        memory_pool.MHATokenToKVPool, "_init_kv_copy_and_warmup", lambda self: calls.append(self)
    )
    memory_pool.MHATokenToKVPool(
        size=4,
        page_size=1,
        dtype=torch.float32,
        head_num=1,
        head_dim=2,
        layer_num=1,
        device="cpu",
        enable_memory_saver=False,
        enable_kv_cache_copy=True,
    )
    assert bool(calls) == warmed_up


@pytest.mark.parametrize(("device", "direct"), [("cpu", True), ("meta", False)])
def test_only_cpu_tensors_are_gathered_without_the_custom_op(monkeypatch, device, direct):
    """The op has no CPU kernel; DFLASH calls it with --tp-size above 1."""
    calls = []
    monkeypatch.setattr(
        parallel_state,
        "reg_all_gather_into_tensor",
        lambda output, input, group_name: calls.append(f"op in {group_name}"),
    )
    group = SimpleNamespace(
        unique_name="tp:0", _all_gather_into_tensor=lambda output, input: calls.append("direct")
    )
    parallel_state.GroupCoordinator.all_gather_into_tensor(
        group, torch.empty(4, device=device), torch.empty(2, device=device)
    )
    assert calls == ["direct" if direct else "op in tp:0"]


class RecordingModule(ModuleType):
    """Has every name, and remembers which were asked for."""

    def __init__(self, name: str):
        super().__init__(name)
        self.asked_for = []

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        self.asked_for.append(name)
        return object()


@pytest.mark.parametrize(("on_cpu", "imported"), [(True, False), (False, True)])
def test_host_pool_needs_the_kernel_library_off_the_cpu_only(monkeypatch, on_cpu, imported):
    kernels = RecordingModule("sgl_kernel.kvcacheio")
    monkeypatch.setitem(sys.modules, "sgl_kernel", ModuleType("sgl_kernel"))
    monkeypatch.setitem(sys.modules, "sgl_kernel.kvcacheio", kernels)
    monkeypatch.setattr(utils, "is_cpu", lambda: on_cpu)
    monkeypatch.setattr(utils, "is_cuda", lambda: not on_cpu)
    spec = importlib.util.spec_from_file_location("a_second_copy", memory_pool_host.__file__)
    second_copy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, second_copy)
    spec.loader.exec_module(second_copy)
    assert ("transfer_kv_all_layer" in kernels.asked_for) == imported
