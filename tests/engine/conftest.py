# SPDX-License-Identifier: Apache-2.0
"""The pair, the references and the baselines of the engine tests, each made once a session.

Engines run one at a time: what two engines are compared on is kept as data.
"""

from dataclasses import dataclass

import pytest
from support.cases import NEW_TOKENS, ending, stopping_cases
from support.engine import PoolState, Request
from support.seeded import DETERMINISTIC, answer, requests

from models.dflash_reference import DFlashDrafter


@dataclass(frozen=True)
class Baseline:
    """What an engine without DDTREE answered to the prompts, as one batch and one by one."""

    batch: list[dict]
    single: list[dict]
    pool: PoolState


@pytest.fixture(scope="session")
def drafter(trained) -> DFlashDrafter:
    """The trained drafter in plain PyTorch."""
    return DFlashDrafter.from_pretrained(trained.draft)


@pytest.fixture(scope="session")
def stopping(chosen, reference) -> dict:
    """Requests that end early."""
    return stopping_cases(chosen, reference.tokenizer)


@pytest.fixture(scope="session")
def plain(host, trained, prompts, stopping) -> tuple[Baseline, dict[str, dict]]:
    """Answers without speculation: to the prompts, and to the requests that end early."""
    with host.engine(model_path=str(trained.target), disable_overlap_schedule=True) as engine:
        baseline = run_baseline(engine, prompts)
        requests = [Request(ids, params, rid=name) for name, (ids, params) in stopping.items()]
        answers = engine.run(requests)
        endings = {r.rid: ending(a) for r, a in zip(requests, answers, strict=True)}
    return baseline, endings


@pytest.fixture(scope="session")
def dflash(host, trained, prompts) -> tuple[Baseline, list[dict], dict]:
    """Answers of DFLASH, its steps (rids p0, p1, ...) and the rows that its drafter was fed."""
    with host.engine(**trained.arguments("DFLASH")) as engine:
        engine.configure(record_hidden=True)
        baseline = run_baseline(engine, prompts)
        return baseline, engine.steps(), engine.hidden_rows()


@pytest.fixture(scope="session")
def seeded(host, trained, prompts) -> tuple[list[list[int]], list[list[int]]]:
    """Seeded answers without speculation: in one batch, and alone."""
    arguments = {"model_path": str(trained.target), "disable_overlap_schedule": True}
    with host.engine(**arguments, **DETERMINISTIC) as engine:
        together = answer(engine, prompts, requests())
        alone = [
            answer(engine, [prompts[i % len(prompts)]], [params])[0]
            for i, params in enumerate(requests())
        ]
    return together, alone


@pytest.fixture
def engine(running):
    """A module's `running` with an empty cache and log; afterwards all slots are free."""
    assert running.flush_cache()
    running.configure()
    yield running
    running.pool_state().assert_all_free()


def run_baseline(engine, prompts: list[list[int]]) -> Baseline:
    """The prompts as one batch (rids p0, p1, ...), then one by one (rids s0, s1, ...)."""
    batch = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    engine.flush_cache()
    single = [engine.greedy([p], NEW_TOKENS, [f"s{i}"])[0] for i, p in enumerate(prompts)]
    return Baseline(batch, single, engine.pool_state())
