# SPDX-License-Identifier: Apache-2.0
"""The noise of seeded tokens is the one that SGLang samples with."""

import math

import pytest
import torch
from gpucheck.noise import gumbel, murmur3, seeded_gap


def test_published_values_of_the_hash():
    """MurmurHash3 x86_32 of the four bytes 21 43 65 87, and of none."""
    assert murmur3((0x87654321,)) == 0xF55B516B
    assert murmur3(()) == 0


def test_the_hash_is_sglangs():
    from sglang.srt.layers.utils.hash_cpu import murmur_hash32_cpu

    seeds, positions = [0, 1, 1007, 2**40 + 3, 2**63 - 1], [0, 5, 4000, 12, 31]
    table = murmur_hash32_cpu(torch.tensor(seeds), torch.tensor(positions), torch.arange(300))
    for row, (seed, position) in enumerate(zip(seeds, positions, strict=True)):
        mine = [murmur3((seed & 0xFFFFFFFF, seed >> 32, position, token)) for token in range(300)]
        assert mine == table[row].tolist()


def test_a_seeded_token_is_the_best_with_noise():
    """The tokens that SGLang's sampler draws, at three temperatures."""
    from sglang.srt.layers.sampler import multinomial_with_seed

    torch.manual_seed(0)
    log_probs = torch.log_softmax(2 * torch.randn(30, 64), dim=-1)
    temperatures = torch.tensor([0.7, 1.0, 1.3]).repeat(10)
    seeds, positions = torch.arange(1000, 1030), torch.arange(30)
    scaled = torch.log_softmax(log_probs / temperatures[:, None], dim=-1)
    drawn = multinomial_with_seed(scaled, seeds, positions).view(-1).tolist()
    for i, token in enumerate(drawn):
        temperature = float(temperatures[i])
        scores = [
            float(lp) + temperature * gumbel(1000 + i, i, t) for t, lp in enumerate(log_probs[i])
        ]
        assert max(range(64), key=scores.__getitem__) == token
        second = sorted(range(64), key=scores.__getitem__)[-2]
        both = (float(log_probs[i][token]), float(log_probs[i][second]))
        gap = seeded_gap(both, (token, second), temperature, 1000 + i, i)
        assert gap == pytest.approx(scores[token] - scores[second])


def test_a_tie_has_no_gap():
    a, b = gumbel(5, 9, 1), gumbel(5, 9, 2)
    assert seeded_gap((-1.0, -1.0 + 0.7 * (a - b)), (1, 2), 0.7, 5, 9) == pytest.approx(0, abs=1e-9)
    assert math.isfinite(a) and a != b
