# SPDX-License-Identifier: Apache-2.0
"""The law of (accepted path, bonus) equals the target's, for every parameter combination."""

from __future__ import annotations

import itertools
import math

import pytest
from comparison import compare
from sampled_trees import Parameters, random_case

NUM_SAMPLES = 60_000
COMBINATIONS = [
    Parameters(temperature, top_k, top_p, min_p)
    for temperature, top_k, top_p, min_p in itertools.product(
        (0.3, 1.0, 2.0), (None, 4), (1.0, 0.8), (0.0, 0.15)
    )
]


@pytest.mark.parametrize("seed,parameters", list(enumerate(COMBINATIONS)))
def test_unseeded_law(seed, parameters):
    """Drawn by the target-only rule: chi-square and total variation over 60,000 walks."""
    case = random_case(seed, budget=(3, 7, 12)[seed % 3])
    result = compare(case.sample(parameters, NUM_SAMPLES), case.exact(parameters))
    assert result.agrees(), result


@pytest.mark.parametrize("seed,parameters", list(enumerate(COMBINATIONS))[::5])
def test_seeded_law(seed, parameters):
    """Over many seeds the seeded walk has the same law."""
    case = random_case(seed, budget=7)
    result = compare(case.sample(parameters, NUM_SAMPLES, seeded=True), case.exact(parameters))
    assert result.agrees(), result


@pytest.mark.parametrize("parameters", [Parameters(), Parameters(0.3), Parameters(2.0, 4, 0.8)])
def test_acceptance_is_the_childrens_mass(parameters):
    """No rule accepts a child of the root more often than the target's mass on them."""
    case = random_case(3, budget=7)
    outcomes = case.sample(parameters, NUM_SAMPLES)
    accepted = sum(count for (path, _), count in outcomes.items() if len(path) > 1)
    root = case.target(parameters)[0]
    mass = math.fsum(
        root[token]
        for token, parent in zip(case.token_ids, case.parents, strict=True)
        if parent == 0
    )
    standard_error = math.sqrt(mass * (1.0 - mass) / NUM_SAMPLES)
    assert abs(accepted / NUM_SAMPLES - mass) <= 5.0 * standard_error + 1e-6
