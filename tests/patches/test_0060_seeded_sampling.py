# SPDX-License-Identifier: Apache-2.0
"""Seeded tokens depend on the request alone, and are upstream's for a batch of one."""

import pytest
import torch
from sglang.srt.layers.sampler import (
    sampling_from_probs_torch,
    top_k_top_p_min_p_sampling_from_probs_torch,
)
from sglang.srt.layers.seeded_sampling import sample_from_probs_with_seed
from sglang.srt.sampling.sampling_params import TOP_K_ALL

VOCAB = 50


def draw(probs, requests, positions):
    """Draw for a batch of (top_k, top_p, min_p, seed) requests."""
    top_ks, top_ps, min_ps, seeds = zip(*requests, strict=True)
    return sample_from_probs_with_seed(
        probs,
        torch.tensor(top_ks, dtype=torch.int32),
        torch.tensor(top_ps),
        torch.tensor(min_ps),
        torch.tensor(seeds),
        torch.tensor(positions),
        any_filter=any(r[:3] != (TOP_K_ALL, 1.0, 0.0) for r in requests),
    ).tolist()


def random_probs(n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(2 * torch.randn(n, VOCAB, generator=generator), dim=-1)


def test_unfiltered_rows_are_upstreams():
    probs = random_probs(64)
    seeds, positions = torch.arange(64) * 977, torch.arange(64)
    expected = sampling_from_probs_torch(probs.clone(), seeds, positions)
    requests = [(TOP_K_ALL, 1.0, 0.0, int(seed)) for seed in seeds]
    assert draw(probs, requests, positions.tolist()) == expected.tolist()


@pytest.mark.parametrize("top_k,top_p", [(5, 1.0), (TOP_K_ALL, 0.7), (7, 0.9), (VOCAB + 9, 1.0)])
def test_filtered_rows_are_upstreams(top_k, top_p):
    probs = random_probs(64)
    seeds, positions = torch.arange(64) * 977, torch.arange(64)
    expected = top_k_top_p_min_p_sampling_from_probs_torch(
        probs.clone(),
        torch.full((64,), top_k),
        torch.full((64,), top_p),
        torch.zeros(64),
        False,
        seeds,
        positions,
    )
    requests = [(top_k, top_p, 0.0, int(seed)) for seed in seeds]
    assert draw(probs, requests, positions.tolist()) == expected.tolist()


def test_a_row_does_not_depend_on_its_neighbours():
    """Upstream changes an unfiltered row's noise when any row of the batch is filtered."""
    probs = random_probs(60)
    kinds = [(TOP_K_ALL, 1.0, 0.0), (5, 1.0, 0.0), (TOP_K_ALL, 0.8, 0.0), (TOP_K_ALL, 1.0, 0.2)]
    requests = [(*kinds[i % 4], 31 * i) for i in range(60)]
    positions = [7 * i % 23 for i in range(60)]
    together = draw(probs, requests, positions)
    alone = [draw(probs[i : i + 1], [requests[i]], [positions[i]])[0] for i in range(60)]
    assert together == alone


def test_min_p_with_a_seed_has_the_right_law():
    """The draw needs no normalised probabilities: 40,000 seeds against p restricted to min_p."""
    n = 40_000
    probs = random_probs(1, seed=3)
    kept = probs[0] * (probs[0] >= 0.3 * probs[0].max())
    exact = (kept / kept.sum()).tolist()
    tokens = draw(probs.expand(n, -1), [(TOP_K_ALL, 1.0, 0.3, i) for i in range(n)], [5] * n)
    for token, p in enumerate(exact):
        frequency = tokens.count(token) / n
        assert abs(frequency - p) <= 5 * (p * (1 - p) / n) ** 0.5
    assert sum(p > 0 for p in exact) > 1


def test_min_p_near_one_is_the_arg_max():
    """The greatest probability stands out, so that no other is within 1 % of it."""
    probs = random_probs(40)
    probs = torch.where(probs == probs.amax(dim=-1, keepdim=True), 1.1 * probs, probs)
    tokens = draw(probs, [(TOP_K_ALL, 1.0, 0.99, i) for i in range(40)], list(range(40)))
    assert tokens == probs.argmax(dim=-1).tolist()
