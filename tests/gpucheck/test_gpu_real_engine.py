# SPDX-License-Identifier: Apache-2.0
"""One real engine on the CPU: asked as every check asks, and scored as differences are."""

import os

import pytest
from demo.checkout import MODELS
from demo.failure import Failure
from demo.methods import PLAIN
from gpucheck.answers import Difference, greedy_gap
from gpucheck.compare import measure_gaps
from gpucheck.engine import Ask, Bench
from gpucheck.noise import seeded_gap
from gpucheck.prompts import texts
from gpucheck.questions import batches
from gpucheck.served import EngineSpec, Pair
from gpucheck.tokens import token_ids
from made_up_engines import VERSIONS, machine

pytestmark = pytest.mark.engine
NEW_TOKENS = 12


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Bench:
    pair = Pair(str(MODELS / "target"), str(MODELS / "draft"), 31)
    here = machine(0, cores=tuple(sorted(os.sched_getaffinity(0))), versions=VERSIONS)
    return Bench(here, pair, tmp_path_factory.mktemp("logs"), 600, 300)


@pytest.fixture(scope="module")
def engine(bench):
    with bench.engine(EngineSpec(PLAIN, deterministic=True)) as running:
        yield running


@pytest.fixture(scope="module")
def asks() -> list[Ask]:
    """Two greedy and two seeded requests."""
    model = str(MODELS / "target")
    ids = token_ids(model, texts(model), trust_remote_code=False)
    return batches(ids, (2,), NEW_TOKENS)[0] + batches(ids, (2,), NEW_TOKENS, seeded=True)[0]


@pytest.fixture(scope="module")
def answered(engine, asks) -> dict[str, tuple[int, ...]]:
    replies = engine.answer(asks)
    assert all(reply.verify_steps == 0 for reply in replies)
    return {ask.label: reply.token_ids for ask, reply in zip(asks, replies, strict=True)}


def test_answers_are_as_long_as_asked_for_and_the_same_again(engine, asks, answered):
    assert all(len(tokens) == NEW_TOKENS for tokens in answered.values())
    engine.forget()
    assert [reply.token_ids for reply in engine.answer(asks)] == list(answered.values())


@pytest.mark.parametrize("position", [0, 7])
def test_what_an_engine_chose_is_best_by_its_own_score(engine, asks, answered, position):
    """Greedy tokens have no gap to the best; seeded ones win with the noise of their place."""
    prefixes = [(*ask.input_ids, *answered[ask.label][:position]) for ask in asks]
    chosen = [answered[ask.label][position] for ask in asks]
    vocabulary = list(range(768))
    scores = engine.next_log_probs(prefixes, [vocabulary] * len(asks))
    for ask, prefix, token, (best, by_id) in zip(asks, prefixes, chosen, scores, strict=True):
        assert best == pytest.approx(max(by_id))
        for other in {0, 1, (token + 1) % 768, by_id.index(best)} - {token}:
            if ask.seed is None:
                assert greedy_gap(best, by_id[token], by_id[token]) == pytest.approx(0, abs=1e-6)
                assert greedy_gap(best, by_id[token], by_id[other]) > 0
            else:
                both = ((by_id[token], by_id[other]), (token, other))
                rest = (ask.temperature, ask.seed, len(prefix) - 1)
                gap = seeded_gap(*both, *rest)
                # Moved by the gap, the other token would have won.
                moved = ((by_id[token], by_id[other] + gap), (token, other))
                assert seeded_gap(*moved, *rest) == pytest.approx(0, abs=1e-6)


def test_a_difference_is_scored_where_it_is(bench, engine, asks, answered, monkeypatch):
    """`measure_gaps`, with the engine that runs already."""

    class Running:
        def __enter__(self):
            return engine

        def __exit__(self, *exc_info):
            pass

    monkeypatch.setattr(bench, "engine", lambda spec: Running())
    label = asks[0].label
    right = answered[label][3]
    found = [Difference(label, 3, right, (right + 5) % 768), Difference(asks[1].label, 4, 1, None)]
    gaps = measure_gaps(bench, EngineSpec(PLAIN), asks, answered, found)
    assert gaps[asks[1].label] is None and gaps[label] > 0
    same = [Difference(label, 3, right, right)]
    assert measure_gaps(bench, EngineSpec(PLAIN), asks, answered, same)[label] < 1e-5


def test_a_refused_request_names_the_log(engine, bench):
    """More tokens than the model has positions."""
    with pytest.raises(Failure, match="status 200") as raised:
        engine.answer([Ask("too long", tuple([5] * 3000), 4)])
    assert str(bench.folder) in str(raised.value)


def test_the_log_says_what_ran(bench, engine, answered):
    [log] = bench.folder.glob("*.log")
    assert "Decode batch" in log.read_text()
    # On a CPU it speaks of no CUDA graph, so nothing is taken for a replay.
    assert engine.graphs().replays == 0
