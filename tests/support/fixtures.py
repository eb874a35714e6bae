# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that start engines: the pair, the reference, and the engines' process.

A plugin of tests/conftest.py. torch and transformers are imported where a fixture is used: most
tests need neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.cases import BATCH, NEW_TOKENS

if TYPE_CHECKING:
    from support.pair import Pair
    from support.reference import Reference


@pytest.fixture(scope="session")
def trained(request) -> Pair:
    """The trained pair."""
    from support.pair import Pair

    path = request.config.getoption("pair")
    return Pair(path / "target", path / "draft")


@pytest.fixture(scope="session")
def untrained(trained, tmp_path_factory) -> Pair:
    """The target with a random drafter, which is of no use."""
    from support.pair import Pair, write_random_drafter

    path = tmp_path_factory.mktemp("random-drafter")
    write_random_drafter(trained.target, path)
    return Pair(trained.target, path)


@pytest.fixture(scope="session")
def reference(trained) -> Reference:
    """The target in transformers."""
    import torch

    from support.reference import Reference

    torch.set_num_threads(1)
    return Reference(trained.target)


@pytest.fixture(scope="session")
def chosen(request, reference) -> list[tuple[list[int], list[int]]]:
    """Prompts of different lengths, each with the 200 tokens that transformers adds to it."""
    from support.pair import candidate_prompts
    from support.reference import choose_prompts

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
def host(tmp_path_factory):
    """The process for the engines of this session."""
    from support.engine import EngineHost

    host = EngineHost(tmp_path_factory.mktemp("engine"))
    yield host
    host.close()
