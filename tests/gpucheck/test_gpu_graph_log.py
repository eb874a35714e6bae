# SPDX-License-Identifier: Apache-2.0
"""Which decode steps were replays, read from the scheduler's log."""

from pathlib import Path

from gpucheck.checks.graphs import SIZES, replay_problems
from gpucheck.graph_log import GraphLog, read_graph_log
from gpucheck.series import installed_sglang

LINE = (
    "[2026-01-02 03:04:05] Decode batch, #running-req: {}, #token: 120, token usage: 0.01, "
    "accept len: 3.20, accept rate: 0.10, cuda graph: {}, gen throughput (token/s): 88.0, "
    "#queue-req: 0\n"
)


def log(replayed: dict[int, int], eager: dict[int, int] | None = None) -> GraphLog:
    return read_graph_log(
        "".join(LINE.format(n, True) * times for n, times in replayed.items())
        + "".join(LINE.format(n, False) * times for n, times in (eager or {}).items())
    )


def test_steps_are_counted_by_batch_size():
    found = read_graph_log(
        "loading\n" + LINE.format(3, True) * 2 + LINE.format(3, False) + LINE.format(8, True)
        + "Prefill batch, #new-seq: 1, cuda graph: True, input throughput\n"
    )  # fmt: skip
    assert (found.replays, found.steps) == (3, 4)
    assert found.as_json() == {
        "3": {"replayed": 2, "eager": 1},
        "8": {"replayed": 1, "eager": 0},
    }
    assert found.never_replayed((1, 3, 8)) == [1]


def test_the_words_are_those_that_sglang_writes():
    """A log in other words would make the check say that nothing was replayed."""
    # Releases keep it in different folders.
    sources = (installed_sglang() / "srt").glob("*/**/*metrics*.py")
    [text] = [t for t in map(Path.read_text, sources) if 'msg = f"Decode batch' in t]
    assert 'f"Decode batch{iter_msg}, #running-req: {num_running_reqs}, ' in text
    assert '_graph_backend_label}: {can_run_cuda_graph}, "' in text
    assert '"cuda graph"' in text


def test_all_sizes_replayed_and_the_other_side_eager():
    every = dict.fromkeys(SIZES, 5)
    assert replay_problems("greedy", log(every), log({}, every)) == []


def test_a_comparison_without_a_replay_does_not_count():
    every = dict.fromkeys(SIZES, 5)
    [problem] = replay_problems("greedy", log({}, every), log({}, every))
    assert "no CUDA graph was replayed in 35 logged steps" in problem
    [problem] = replay_problems("greedy", log({}), log({}))
    assert "no decode step" in problem


def test_a_size_without_a_replay_does_not_count():
    some = {size: 5 for size in SIZES if size != 5}
    [problem] = replay_problems("greedy", log(some, {5: 9}), log({}))
    assert problem.endswith("batch size 5")


def test_an_eager_side_that_replays_does_not_count():
    every = dict.fromkeys(SIZES, 5)
    [problem] = replay_problems("greedy", log(every), log({3: 2}))
    assert "eager engine replayed 2" in problem
