# SPDX-License-Identifier: Apache-2.0
"""The noise of a seeded token, so that a difference of two seeded answers can be judged.

A seeded token is the arg max of log p / temperature + noise, and the noise is a function of the
seed, the position and the token: MurmurHash3 (32 bit) as a uniform number, made Gumbel. Written
from the definition of the hash; `tests/gpucheck` compares it with SGLang's.
"""

from __future__ import annotations

import math

_MASK = 0xFFFFFFFF


def _rotated(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (32 - bits))) & _MASK


def murmur3(words: tuple[int, ...]) -> int:
    """MurmurHash3 x86_32 with seed 0 of little-endian 32-bit words."""
    h = 0
    for word in words:
        k = (_rotated((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593) & _MASK
        h = (_rotated(h ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4 * len(words)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    return h ^ (h >> 16)


def gumbel(seed: int, position: int, token: int) -> float:
    """Noise of a token id.

    Args:
        seed: of the request, 64 bits.
        position: of the last token before it, counted from 0.
    """
    seed &= (1 << 64) - 1
    uniform = murmur3((seed & _MASK, seed >> 32, position, token)) / _MASK
    if uniform == 0.0:
        return -math.inf
    return math.inf if uniform == 1.0 else -math.log(-math.log(uniform))


def seeded_gap(
    log_probs: tuple[float, float],
    tokens: tuple[int, int],
    temperature: float,
    seed: int,
    position: int,
) -> float:
    """How far two tokens are from a tie at their noisy places, times the temperature.

    In nats of the log-probabilities at temperature 1, as the gap of a greedy answer is.
    """
    left, right = (
        log_p + temperature * gumbel(seed, position, token)
        for log_p, token in zip(log_probs, tokens, strict=True)
    )
    return abs(left - right)
