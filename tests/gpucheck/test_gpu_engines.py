# SPDX-License-Identifier: Apache-2.0
"""The engines' command lines and environments, and what a log says of one that did not start."""

import argparse
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from container.gpu import Found
from demo.failure import Failure, UsageError
from demo.methods import DDTREE, DFLASH, PLAIN
from gpucheck.checks import speed
from gpucheck.engine import Ask, Bench, Refused, why_no_start
from gpucheck.machine import ask_driver_version, ask_versions, choose_device
from gpucheck.prompts import EACH, KINDS, is_tiny, texts
from gpucheck.questions import batches
from gpucheck.served import CAPTURED_BATCHES, EngineSpec, Pair, launch_command
from gpucheck.states import NotRun
from made_up_engines import CARD, VERSIONS, MadeUpBench, context, machine

PAIR = Pair("target", "draft", 31)
SPECS = [
    EngineSpec(PLAIN),
    EngineSpec(DFLASH, "bfloat16"),
    EngineSpec(DDTREE, graphs=False, log_every_step=True),
    EngineSpec(DDTREE, "float16", "flashinfer", tp=2, deterministic=True),
    EngineSpec(PLAIN, "auto", overlap=True),
]


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    from sglang.srt.server_args import ServerArgs

    made = argparse.ArgumentParser(allow_abbrev=False)
    ServerArgs.add_cli_args(made)
    return made


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_sglang_knows_every_flag(parser, spec, on_gpu):
    command = launch_command(spec, PAIR, on_gpu, 1234, ("--trust-remote-code",))
    assert command[1:3] == ["-m", "sglang.launch_server"]
    parsed = parser.parse_args(command[3:])
    assert parsed.trust_remote_code and parsed.port == 1234 and parsed.page_size == 1
    assert parsed.tensor_parallel_size == spec.tp
    assert parsed.disable_overlap_schedule is not spec.overlap
    assert parsed.enable_deterministic_inference is spec.deterministic
    assert parsed.speculative_algorithm == (None if spec.method == PLAIN else spec.method)
    assert parsed.speculative_ddtree_budget == (31 if spec.method == DDTREE else None)
    if on_gpu:
        assert parsed.attention_backend == spec.attention and parsed.dtype == spec.dtype
        assert parsed.disable_cuda_graph is not spec.graphs
        assert parsed.cuda_graph_bs == (list(CAPTURED_BATCHES) if spec.graphs else None)
    else:
        assert (parsed.device, parsed.dtype) == ("cpu", "float32")


@pytest.mark.parametrize("on_gpu", [True, False])
def test_scheduling_is_equal_but_for_speculation(parser, on_gpu):
    """All that differs between the engines of the speed comparison says how to speculate."""
    comparison = speed.Comparison(context(MadeUpBench(machine())))
    found = {
        method: vars(
            parser.parse_args(launch_command(comparison.spec(method), PAIR, on_gpu, 1)[3:])
        )
        for method in (PLAIN, DFLASH, DDTREE, speed.OVERLAP)
    }
    differing = {
        method: {name for name, value in args.items() if value != found[PLAIN][name]}
        for method, args in found.items()
    }
    assert all(name.startswith("speculative_") for name in differing[DFLASH] | differing[DDTREE])
    assert differing[speed.OVERLAP] == {"disable_overlap_schedule"}
    assert found[PLAIN]["disable_overlap_schedule"]


def bench(tmp_path: Path, **changes) -> Bench:
    return Bench(machine(**changes), PAIR, tmp_path, 10, 10)


def test_fp32_is_fp32_on_a_gpu(tmp_path, monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", "TRITON_INTERPRET", "SGLANG_USE_CPU_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    environment = bench(tmp_path).environment(EngineSpec(PLAIN, "float32"), tmp_path)
    assert environment["NVIDIA_TF32_OVERRIDE"] == "0"
    assert environment["TRITON_F32_DEFAULT"] == "ieee"
    assert "CUDA_VISIBLE_DEVICES" not in environment, "the CPU profile would hide the GPU"
    half = bench(tmp_path).environment(EngineSpec(PLAIN, "bfloat16"), tmp_path)
    assert "NVIDIA_TF32_OVERRIDE" not in half


def test_ranks_on_a_cpu_get_a_core_each(tmp_path):
    made = bench(tmp_path, cards=0, cores=(4, 6, 7))
    environment = made.environment(EngineSpec(DDTREE, tp=2), tmp_path)
    assert environment["SGLANG_CPU_OMP_THREADS_BIND"] == "4|6"
    assert environment["CUDA_VISIBLE_DEVICES"] == ""


REFUSAL = """\
Traceback (most recent call last):
  File "/x/sglang/srt/server_args.py", line 900, in __post_init__
    check(self)
  File "/x/sglang/srt/speculative/ddtree_args.py", line 1, in check
ValueError: DDTREE needs an attention backend that takes a tree mask, one of triton.
"""
CRASH = """\
[2026-01-02 03:04:05] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 900, in load
ValueError: expected a tensor
"""


def test_a_refusal_is_the_servers_own_line():
    found = why_no_start(REFUSAL, True, Failure("it ended"))
    assert isinstance(found, Refused) and str(found).startswith("DDTREE needs an attention")


def test_a_crash_is_no_refusal():
    found = why_no_start(CRASH, True, Failure("it ended", ("tail",)))
    assert type(found) is Failure and "ValueError: expected a tensor" in str(found)
    assert found.details == ("tail",)


def test_the_last_exception_counts():
    assert isinstance(why_no_start(CRASH + REFUSAL, True, Failure("x")), Refused)
    assert type(why_no_start(REFUSAL + CRASH, True, Failure("x"))) is Failure


def test_no_room_is_not_run_on_a_gpu_only():
    log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.\n"
    assert isinstance(why_no_start(log, True, Failure("x")), NotRun)
    assert not isinstance(why_no_start(log, False, Failure("x")), NotRun)


def test_a_log_without_a_reason_keeps_the_failure():
    failure = Failure("found no sign of health")
    assert why_no_start("loading\n", True, failure) is failure


NO_DRIVER = Found((), "no NVIDIA driver (libcuda.so.1)")
ONE_CARD = Found((CARD,))


def test_the_device():
    assert choose_device("auto", ONE_CARD, VERSIONS) == ("cuda", "")
    assert choose_device("auto", NO_DRIVER, VERSIONS)[0] == "cpu"
    assert "no NVIDIA driver" in choose_device("auto", NO_DRIVER, VERSIONS)[1]
    assert choose_device("cpu", ONE_CARD, VERSIONS)[0] == "cpu"
    with pytest.raises(UsageError, match="--device cuda"):
        choose_device("cuda", NO_DRIVER, VERSIONS)


@pytest.mark.parametrize(
    ("code", "text", "version"),
    [
        (0, "570.86.15\n570.86.15\n", "570.86.15"),
        (9, "No devices were found\n", None),
        (0, "", None),
    ],
)
def test_the_drivers_version_is_what_nvidia_smi_says(monkeypatch, code, text, version):
    def run(command, **how):
        assert command[0] == "nvidia-smi"
        return subprocess.CompletedProcess(command, code, text, "")

    monkeypatch.setattr(subprocess, "run", run)
    assert ask_driver_version() == version


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"torch_cuda": None}, "without CUDA"),
        ({"torch_sees_device": False}, "sees no device"),
        ({"packages": VERSIONS["packages"] | {"sgl_kernel": None}}, "no sgl_kernel"),
    ],
)
def test_a_python_that_cannot_use_the_card_is_refused(changes, found):
    """Checking the CPU in its place would look like an answer about the card."""
    with pytest.raises(UsageError, match=found):
        choose_device("auto", ONE_CARD, VERSIONS | changes)


def test_a_python_whose_torch_is_broken_is_refused(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12: not found')\n")
    paths = [str(tmp_path), str(Path(__file__).parents[2] / "scripts")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    with pytest.raises(UsageError, match=r"found: ImportError: libcudart.so.12: not found"):
        ask_versions()


@pytest.mark.parametrize("model", ["models/tiny/target", "owner/name"])
def test_there_are_enough_prompts_of_each_kind(model, monkeypatch):
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    found = texts(model)
    assert set(found) == set(KINDS)
    assert all(len({text for text, _ in some}) == EACH for some in found.values())
    assert is_tiny(model) == (model != "owner/name")


def test_batches_hold_every_kind_and_seeds_of_their_own():
    ids = {kind: [[i, j] for j in range(EACH)] for i, kind in enumerate(KINDS)}
    greedy = batches(ids, (1, 3, 8), 16)
    assert [len(batch) for batch in greedy] == [1, 3, 8]
    labels = [ask.label for batch in greedy for ask in batch]
    assert len(set(labels)) == 12
    assert {ask.input_ids[0] for ask in greedy[1]} == {0, 1, 2}
    assert greedy[0][0].sampling_params() == {
        "temperature": 0.0,
        "max_new_tokens": 16,
        "ignore_eos": True,
    }
    seeded = [ask for batch in batches(ids, (1, 3, 8), 16, seeded=True) for ask in batch]
    assert len({ask.seed for ask in seeded}) == 12
    assert all(ask.temperature > 0 for ask in seeded)
    one = replace(seeded[0], ignore_eos=False)
    assert one.sampling_params()["sampling_seed"] == one.seed
    assert "ignore_eos" not in Ask("a", (1,), 2, ignore_eos=False).sampling_params()
