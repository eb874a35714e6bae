# SPDX-License-Identifier: Apache-2.0
"""The pair, the references and the baselines of the engine tests, each made once a session.

Engines run one at a time: what two engines are compared on is kept as data.
"""

from dataclasses import dataclass

import pytest
import torch
from support.cases import BATCH, NEW_TOKENS, ending, stopping_cases
from support.engine import EngineHost, PoolState, Request
from support.pair import Pair, candidate_prompts, write_random_drafter
from support.reference import Reference, choose_prompts

from models.dflash_reference import DFlashDrafter


@dataclass(frozen=True)
class Baseline:
    """What an engine without DDTREE answered to the prompts, as one batch and one by one."""

    batch: list[dict]
    single: list[dict]
    pool: PoolState


@pytest.fixture(scope="session")
def trained(request) -> Pair:
    """The trained pair."""
    path = request.config.getoption("pair")
    return Pair(path / "target", path / "draft")


@pytest.fixture(scope="session")
def untrained(trained, tmp_path_factory) -> Pair:
    """The target with a random drafter, which is of no use."""
    path = tmp_path_factory.mktemp("random-drafter")
    write_random_drafter(trained.target, path)
    return Pair(trained.target, path)


@pytest.fixture(scope="session")
def reference(trained) -> Reference:
    """The target in transformers."""
    torch.set_num_threads(1)
    return Reference(trained.target)


@pytest.fixture(scope="session")
def drafter(trained) -> DFlashDrafter:
    """The trained drafter in plain PyTorch."""
    return DFlashDrafter.from_pretrained(trained.draft)


@pytest.fixture(scope="session")
def chosen(request, reference) -> list[tuple[list[int], list[int]]]:
    """Prompts of different lengths, each with the 200 tokens that transformers adds to it."""
    candidates = candidate_prompts(request.config.getoption("pair"), reference.tokenizer)
    # The shortest prompt there is goes first.
    single = choose_prompts(reference, [ids[:1] for ids in candidates], 1, NEW_TOKENS)
    return single + choose_prompts(reference, candidates, BATCH - 1, NEW_TOKENS)


@pytest.fixture(scope="session")
def prompts(chosen) -> list[list[int]]:
    return [prompt for prompt, _ in chosen]


@pytest.fixture(scope="session")
def expected(chosen) -> list[list[int]]:
    """transformers' continuation of each prompt."""
    return [tokens for _, tokens in chosen]


@pytest.fixture(scope="session")
def stopping(chosen, reference) -> dict:
    """Requests that end early."""
    return stopping_cases(chosen, reference.tokenizer)


@pytest.fixture(scope="session")
def host(tmp_path_factory):
    """The process for the engines of this session."""
    host = EngineHost(tmp_path_factory.mktemp("engine"))
    yield host
    host.close()


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


def run_baseline(engine, prompts: list[list[int]]) -> Baseline:
    """The prompts as one batch (rids p0, p1, ...), then one by one (rids s0, s1, ...)."""
    batch = engine.greedy(prompts, NEW_TOKENS, [f"p{i}" for i in range(len(prompts))])
    engine.flush_cache()
    single = [engine.greedy([p], NEW_TOKENS, [f"s{i}"])[0] for i, p in enumerate(prompts)]
    return Baseline(batch, single, engine.pool_state())
