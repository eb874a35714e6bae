# SPDX-License-Identifier: Apache-2.0
"""The checks that compare engines: right engines pass, each wrong one is seen."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from demo.failure import Failure
from gpucheck.checks import CHECKS, backends, graphs, identity, kernel, ranks, speed
from gpucheck.engine import Refused
from gpucheck.graph_log import GraphLog
from gpucheck.states import NotRun, State
from made_up_engines import VERSIONS, MadeUpBench, context, machine, wrong_at


def replays(spec) -> GraphLog:
    """Every step of an engine with graphs is a replay."""
    steps = Counter(dict.fromkeys(graphs.SIZES, 3))
    return GraphLog(replayed=steps) if spec.graphs else GraphLog(eager=steps)


COMPARING = {"identity": identity, "graphs": graphs, "flashinfer": backends, "tp": ranks}
# What is special about the second engine of each.
OTHER_SIDE = {
    "identity": lambda spec: spec.method == "DDTREE",
    "graphs": lambda spec: spec.graphs,
    "flashinfer": lambda spec: spec.attention == "flashinfer",
    "tp": lambda spec: spec.tp == 2,
}


@pytest.mark.parametrize("name", COMPARING)
def test_equal_engines_pass(name):
    bench = MadeUpBench(machine(2), logs=replays)
    outcome = COMPARING[name].run(context(bench))
    assert outcome.state is State.PASSED, outcome
    assert outcome.details == []
    sides = {OTHER_SIDE[name](spec) for spec in bench.started}
    assert sides == {True, False}, "both engines must have run"


@pytest.mark.parametrize("name", COMPARING)
@pytest.mark.parametrize("position", [0, 19])
def test_one_wrong_token_fails(name, position):
    """In one answer of many, the first or the last token."""
    hit = []

    def is_wrong(spec, ask) -> bool:
        if OTHER_SIDE[name](spec) and (not hit or ask.label in hit):
            hit.append(ask.label)
            return True
        return False

    bench = MadeUpBench(machine(2), wrong_at(position, is_wrong), replays, log_probs=(0, 0, -9))
    outcome = COMPARING[name].run(context(bench))
    assert outcome.state is State.FAILED
    assert "1 DIFFERENT" in outcome.summary
    [line] = outcome.details
    assert f"new token {position + 1} on" in line and hit[0] in line


@pytest.mark.parametrize("name", ["identity", "graphs", "tp"])
def test_a_wrong_seeded_token_fails(name):
    def is_wrong(spec, ask) -> bool:
        return OTHER_SIDE[name](spec) and ask.seed is not None

    bench = MadeUpBench(machine(2), wrong_at(3, is_wrong), replays, log_probs=(0, 0, -99))
    outcome = COMPARING[name].run(context(bench))
    assert outcome.state is State.FAILED
    assert outcome.details and all("seeded" in line for line in outcome.details)


@pytest.mark.parametrize(
    ("dtype", "gap", "state"),
    [
        ("float32", 0.0, State.FAILED),
        ("bfloat16", 0.2, State.PASSED),
        ("bfloat16", 0.9, State.FAILED),
        ("float16", 0.2, State.FAILED),
    ],
)
def test_near_ties_are_excused_in_16_bits_only(dtype, gap, state):
    def is_wrong(spec, ask) -> bool:
        return spec.method == "DDTREE" and "chat 1" in ask.label and ask.seed is None

    bench = MadeUpBench(machine(), wrong_at(3, is_wrong), log_probs=(-0.5, -0.5, -0.5 - gap))
    outcome = identity.run(context(bench, dtype))
    assert outcome.state is state
    figures = outcome.figures["greedy"]
    differing = figures["near_ties"] + figures["different"]
    assert differing == len(outcome.details) > 0
    assert figures["equal"] == figures["requests"] - differing
    assert figures["differences"][0]["gap"] == pytest.approx(gap)


def test_gaps_are_measured_without_speculation_and_in_the_same_dtype():
    bench = MadeUpBench(machine(), wrong_at(3, lambda spec, ask: spec.method == "DDTREE"))
    identity.run(context(bench, "bfloat16"))
    assert (bench.started[-1].method, bench.started[-1].dtype) == ("no speculation", "bfloat16")


def test_an_answer_that_ends_early_is_no_near_tie():
    def answers(spec, ask):
        from made_up_engines import text_of

        return text_of(ask)[: 10 if spec.method == "DDTREE" else 20]

    outcome = identity.run(context(MadeUpBench(machine(), answers), "bfloat16"))
    assert outcome.state is State.FAILED
    assert outcome.figures["greedy"]["near_ties"] == 0


def test_graphs_that_were_not_replayed_fail_though_the_text_is_equal():
    bench = MadeUpBench(machine(), logs=lambda spec: GraphLog(eager=Counter({1: 5})))
    outcome = graphs.run(context(bench))
    assert outcome.state is State.FAILED
    assert "no CUDA graph was replayed" in outcome.summary


def test_a_refused_flashinfer_is_not_run_and_a_crashed_one_is_no_excuse():
    def refuse(error):
        def fails(spec):
            if spec.attention == "flashinfer":
                raise error

        return fails

    line = "DDTREE needs an attention backend that takes a tree mask"
    with pytest.raises(NotRun, match=line):
        backends.run(context(MadeUpBench(machine(), fails=refuse(Refused(line)))))
    with pytest.raises(Failure, match="it ended"):
        backends.run(context(MadeUpBench(machine(), fails=refuse(Failure("it ended")))))


@pytest.mark.parametrize("name", ["identity", "graphs", "tp"])
def test_an_engine_that_ends_fails_its_part_and_leaves_the_other(name):
    """Only deterministic engines end: the greedy part is there, and the check has failed."""

    def fails(spec):
        if spec.deterministic:
            raise Failure("it ended", ("last words",))

    outcome = COMPARING[name].run(context(MadeUpBench(machine(2), logs=replays, fails=fails)))
    assert outcome.state is State.FAILED
    assert list(outcome.figures) == ["greedy"]
    assert outcome.figures["greedy"]["different"] == 0
    assert outcome.summary.startswith("seeded: it ended")
    assert any("last words" in line for line in outcome.details)


@pytest.mark.parametrize(
    ("method", "error", "state", "rows"),
    [
        ("DDTREE", Failure("it ended"), State.FAILED, {"no speculation", "DFLASH"}),
        ("DFLASH", NotRun("no room"), State.NOT_RUN, {"no speculation"}),
        ("no speculation", Failure("it ended"), State.FAILED, set()),
    ],
)
def test_speed_keeps_what_was_measured_before_an_engine_ended(method, error, state, rows):
    def fails(spec):
        if spec.method == method:
            raise error

    outcome = speed.run(context(MadeUpBench(machine(), fails=fails)))
    assert outcome.state is state and str(error) in outcome.summary
    assert {row["method"] for row in outcome.figures.get("rows", ())} == rows


def test_flashinfer_is_compared_in_a_dtype_that_it_has():
    bench = MadeUpBench(machine())
    backends.run(context(bench, "float32"))
    assert {spec.dtype for spec in bench.started} == {"bfloat16"}


def test_seeds_are_asked_of_deterministic_engines_only():
    asked = []

    def answers(spec, ask):
        from made_up_engines import text_of

        asked.append((spec.deterministic, ask.seed is not None))
        return text_of(ask)

    for check in (identity, graphs, ranks):
        check.run(context(MadeUpBench(machine(2), answers, replays)))
    assert set(asked) == {(False, False), (True, True)}


@pytest.mark.parametrize(("cards", "tp"), [(1, None), (2, 4)])
def test_too_few_cards_for_the_ranks(cards, tp):
    with pytest.raises(NotRun, match=f"{'one GPU' if cards == 1 else '2 GPUs'}, {tp or 2} ranks"):
        ranks.run(context(MadeUpBench(machine(cards)), tp=tp))


def test_two_cpu_cores_make_two_ranks_and_one_does_not():
    bench = MadeUpBench(machine(0))
    assert ranks.run(context(bench)).state is State.PASSED
    assert [spec.tp for spec in bench.started] == [1, 2]
    with pytest.raises(NotRun, match="one CPU core"):
        ranks.run(context(MadeUpBench(machine(0, cores=(3,)))))


@pytest.mark.parametrize("name", ["graphs", "flashinfer", "sampling-kernel"])
def test_what_needs_a_gpu_is_not_run_without_one(name):
    bench = MadeUpBench(machine(0))
    [check] = [check for check in CHECKS if check.name == name]
    with pytest.raises(NotRun, match="no CUDA device: no NVIDIA driver"):
        check.run(context(bench))
    assert not bench.started


def test_the_kernel_needs_sgl_kernel():
    packages = VERSIONS["packages"] | {"sgl_kernel": None}
    lacking = machine(0, versions=VERSIONS | {"packages": packages})
    with pytest.raises(NotRun, match="no sgl_kernel"):
        kernel.run(context(MadeUpBench(lacking)))


def test_the_kernel_fails_on_a_problem_and_passes_on_none():
    assert kernel.judge(FIGURES).state is State.PASSED
    failed = kernel.judge(FIGURES | {"problems": ["3 walks differ"]})
    assert failed.state is State.FAILED and "3 walks differ" in failed.summary


FIGURES = {
    "walks": {"compared": 100, "equal": 99, "at_a_boundary": 1, "wrong": 0},
    "law": {"greatest_z": 0.5, "z": [0.5]},
    "problems": [],
}


def answers(monkeypatch, code: int, stdout: str = "", stderr: str = "") -> list:
    """The process in which the kernel runs ends like this; returns the calls."""
    calls = []

    def run(command, **how):
        calls.append((command, how["env"]["SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"]))
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_kernel_is_judged_by_the_last_line_of_its_process(monkeypatch):
    calls = answers(monkeypatch, 0, f"a library says hello\n{json.dumps(FIGURES)}\n")
    assert kernel.run(context(MadeUpBench(machine()))) == kernel.judge(FIGURES)
    assert calls == [([sys.executable, "-m", "gpucheck.walks"], "1")]


def test_a_kernel_that_fails_or_hangs(monkeypatch):
    answers(monkeypatch, 1, stderr="first\nCUDA error: an illegal memory access\n")
    with pytest.raises(Failure, match="found: CUDA error: an illegal memory access") as info:
        kernel.run(context(MadeUpBench(machine())))
    assert info.value.details == ("first", "CUDA error: an illegal memory access")

    def hang(command, timeout, **how):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(Failure, match="within 600 s, found none"):
        kernel.run(context(MadeUpBench(machine())))


def test_speed_measures_every_method_in_every_cell():
    bench = MadeUpBench(machine())
    figures = speed.run(context(bench)).figures
    assert figures["order"][:3] == ["no speculation", "DFLASH", "DDTREE"]
    rows = figures["rows"]
    cells = {(r["kind"], r["batch"], r["temperature"]) for r in rows}
    assert len(cells) == 3 * 2 * 2 and len(rows) == 3 * len(cells)
    ddtree = next(r for r in rows if r["method"] == "DDTREE" and r["batch"] == 8)
    # 8 answers of 256 tokens with 4 verify steps each.
    assert ddtree["tokens_per_step"] == pytest.approx(255 / 4)
    assert ddtree["accept_length"] == pytest.approx(64)
    assert ddtree["same_text"] == ddtree["answers_a_round"] == 8
    assert "speedup" not in rows[0]


def test_ratios_are_of_the_same_cell():
    def row(method, batch, rate):
        cell = {"kind": "code", "batch": batch, "temperature": 0.0}
        return {"method": method, "tokens_per_second": rate, **cell}

    rows = [row("DDTREE", 1, 30.0), row("DDTREE", 8, 90.0), row("DFLASH", 8, 60.0)]
    assert speed.ratios(rows, "DDTREE", "DFLASH") == [1.5]
    assert speed.ratios(rows, "DDTREE", "no speculation") == []


def test_on_a_cpu_nothing_is_sampled_and_the_figures_are_labelled():
    outcome = speed.run(context(MadeUpBench(machine(0))))
    assert {row["temperature"] for row in outcome.figures["rows"]} == {0.0}
    assert speed.ON_CPU in outcome.summary and speed.ON_CPU in outcome.details


def test_a_loop_is_named():
    row = {"kind": "code", "repeated_8_grams": 0.9}
    figures = {"order": [speed.OVERLAP], "mirrored": True, "rows": [row]}
    assert any("looping text" in note and "code" in note for note in speed.notes(figures, False))
    row["repeated_8_grams"] = 0.1
    assert not any("looping" in note for note in speed.notes(figures, False))


@pytest.mark.parametrize(("graphs_of", "equal"), [(("DDTREE",), True), ((), False)])
def test_methods_of_which_one_has_no_graphs_are_not_equal(graphs_of, equal):
    """As long as the server turns them off for DDTREE, the others' speed is no match."""

    def logs(spec):
        replayed = spec.method in ("no speculation", "DFLASH", *graphs_of)
        steps = Counter({1: 8, 8: 2})
        return GraphLog(replayed=steps) if replayed else GraphLog(eager=steps)

    outcome = speed.run(context(MadeUpBench(machine(), logs=logs)))
    assert (speed.UNEQUAL in outcome.summary) is not equal
    assert f"DFLASH 100%, DDTREE {100 if equal else 0}%" in outcome.details[0]
