# SPDX-License-Identifier: Apache-2.0
"""Draft trees by the heap of the DDTree paper, by enumeration, and at random.

A path is the tuple of candidate ranks it takes at each depth: `(2, 0)` is the third most
probable token at depth 1 and then the most probable one at depth 2. Its weight is the sum of
its log-probabilities, added from the root downwards in float32 as a drafter's weights are.
Paths of weight -inf have probability zero and are no paths.

Ties are broken by depth, then by the order of the parents, then by rank. Both functions here
give that order by themselves: the heap because its keys only grow, the enumeration by sorting.
"""

from __future__ import annotations

import heapq
import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

Path = tuple[int, ...]
LogProbs = Sequence[Sequence[float]]  # [L][K], descending in K


def float32(value: float) -> float:
    """`value` rounded to float32. A float32 sum is the rounded sum of two float64."""
    return struct.unpack("f", struct.pack("f", value))[0]


def heap_tree(logprobs: LogProbs, budget: int) -> list[Path]:
    """Algorithm 1 of arXiv 2604.12989: the `budget` heaviest paths, heaviest first.

    Pop the heaviest path; push its next sibling and its first child.
    """
    popped: list[Path] = []
    # (-weight, depth, place of the parent in the order of popping, rank, parent weight, path)
    heap = [(-float32(logprobs[0][0]), 1, -1, 0, 0.0, (0,))]
    while heap and len(popped) < budget:
        key, depth, parent, rank, parent_weight, path = heapq.heappop(heap)
        weight = -key
        if weight == -math.inf:
            break
        popped.append(path)
        if rank + 1 < len(logprobs[depth - 1]):
            sibling = float32(parent_weight + logprobs[depth - 1][rank + 1])
            heapq.heappush(
                heap, (-sibling, depth, parent, rank + 1, parent_weight, path[:-1] + (rank + 1,))
            )
        if depth < len(logprobs):
            child = float32(weight + logprobs[depth][0])
            heapq.heappush(heap, (-child, depth + 1, len(popped) - 1, 0, weight, path + (0,)))
    return popped


def enumerated_tree(logprobs: LogProbs, budget: int) -> list[Path]:
    """The same by sorting every one of the K + K^2 + ... + K^L paths; small L and K only."""
    everything: list[tuple[float, int, int, Path]] = []  # (-weight, depth, place in depth, path)
    level: list[tuple[float, Path]] = [(0.0, ())]
    for depth, row in enumerate(logprobs, start=1):
        found = [
            (-float32(weight + logprob), place, rank, path + (rank,))
            for place, (weight, path) in enumerate(level)
            for rank, logprob in enumerate(row)
            if logprob > -math.inf
        ]
        found.sort()
        level = [(-key, path) for key, _, _, path in found]
        everything += [(-weight, depth, place, path) for place, (weight, path) in enumerate(level)]
    everything.sort()
    return [path for *_, path in everything[:budget]]


@dataclass(frozen=True)
class TreeRow:
    """One tree, W = budget + 1 nodes, padded at its end."""

    token_ids: list[int]
    parents: list[int]
    depths: list[int]
    valid: list[bool]


def tree_row(
    paths: Sequence[Path], topk_ids: Sequence[Sequence[int]], root_token: int, budget: int
) -> TreeRow:
    """Lay paths out as nodes: node 0 is the root, and node i + 1 is `paths[i]`.

    A padding node repeats the root's token, has no parent, depth 1 and is not valid.
    """
    index = {(): 0} | {path: node for node, path in enumerate(paths, start=1)}
    padding = budget - len(paths)
    return TreeRow(
        token_ids=[root_token]
        + [topk_ids[len(path) - 1][path[-1]] for path in paths]
        + [root_token] * padding,
        parents=[-1] + [index[path[:-1]] for path in paths] + [-1] * padding,
        depths=[0] + [len(path) for path in paths] + [1] * padding,
        valid=[True] + [True] * len(paths) + [False] * padding,
    )


def random_row(rng: random.Random, width: int, max_depth: int, vocab_size: int) -> TreeRow:
    """A random tree of `width` nodes, some of which may be padding.

    Siblings may carry the same token, which a built tree allows as well.
    """
    root_token = rng.randrange(vocab_size)
    token_ids, parents, depths = [root_token], [-1], [0]
    for _ in range(rng.randint(0, width - 1)):
        parent = rng.choice([node for node, depth in enumerate(depths) if depth < max_depth])
        token_ids.append(rng.randrange(vocab_size))
        parents.append(parent)
        depths.append(depths[parent] + 1)
    real = len(parents)
    padding = width - real
    return TreeRow(
        token_ids=token_ids + [root_token] * padding,
        parents=parents + [-1] * padding,
        depths=depths + [1] * padding,
        valid=[True] * real + [False] * padding,
    )


def children_of(row: TreeRow) -> dict[int, list[int]]:
    """Children of every valid node, in node order."""
    children: dict[int, list[int]] = {node: [] for node, ok in enumerate(row.valid) if ok}
    for node, parent in enumerate(row.parents):
        if parent >= 0:
            children[parent].append(node)
    return children
