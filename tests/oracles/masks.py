# SPDX-License-Identifier: Apache-2.0
"""Attention masks of draft trees, by following parents, one pair at a time."""

from __future__ import annotations

from collections.abc import Sequence


def path_to_root(parents: Sequence[int], node: int) -> list[int]:
    """`node`, its parent, its grandparent and so on; -1 is nobody's index."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def ancestor_mask(parents: Sequence[int]) -> list[list[bool]]:
    """[W][W]: entry (i, j) says whether j is i or an ancestor of i."""
    width = len(parents)
    return [
        [seen in set(path_to_root(parents, node)) for seen in range(width)] for node in range(width)
    ]


def flat_tree_mask(
    parents_of_rows: Sequence[Sequence[int]], prefix_lens: Sequence[int]
) -> list[bool]:
    """SGLang's flat custom mask: for each request, row-major [W, prefix + W], concatenated."""
    flat: list[bool] = []
    for parents, prefix_len in zip(parents_of_rows, prefix_lens, strict=True):
        for sees in ancestor_mask(parents):
            flat += [True] * prefix_len + sees
    return flat
