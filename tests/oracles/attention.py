# SPDX-License-Identifier: Apache-2.0
"""Attention of drafted rows by the definition: one query, one head, one key at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Vector = Sequence[float]


def attend(query: Vector, keys: Sequence[Vector], values: Sequence[Vector], scale: float) -> Vector:
    """softmax(scale * query . keys) . values over the keys given, in float64."""
    scores = [scale * sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    total = sum(weights)
    return [
        sum(w * value[i] for w, value in zip(weights, values, strict=True)) / total
        for i in range(len(values[0]))
    ]


def verify_attention(
    queries: Sequence[Sequence[Vector]],
    keys: Sequence[Sequence[Vector]],
    values: Sequence[Sequence[Vector]],
    allowed: Callable[[int, int], bool],
    scale: float,
) -> list[list[Vector]]:
    """Attention of one request's drafted rows.

    Args:
        queries: [Q][num_heads][head_dim].
        keys: [P + Q][num_kv_heads][head_dim], the prefix and then the drafted rows.
        values: [P + Q][num_kv_heads][v_head_dim].
        allowed: whether drafted row i may attend to key j.
        scale: multiplies the scores.

    Returns:
        [Q][num_heads][v_head_dim]. Query heads share key heads in consecutive groups.
    """
    out = []
    for i, heads in enumerate(queries):
        seen = [j for j in range(len(keys)) if allowed(i, j)]
        group = len(heads) // len(keys[0])
        out.append(
            [
                attend(
                    query,
                    [keys[j][head // group] for j in seen],
                    [values[j][head // group] for j in seen],
                    scale,
                )
                for head, query in enumerate(heads)
            ]
        )
    return out
