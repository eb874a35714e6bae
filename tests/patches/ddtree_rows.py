# SPDX-License-Identifier: Apache-2.0
"""Draft trees of the patched code and of the oracles, brought into one form."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from oracles.trees import LogProbs, Path, TreeRow, heap_tree, tree_row
from sglang.srt.speculative.ddtree_utils import DDTreeBuildResult


def rows_of(tree: DDTreeBuildResult) -> list[TreeRow]:
    """The trees of a batch as plain lists."""
    return [
        TreeRow(*columns)
        for columns in zip(
            tree.token_ids.tolist(),
            tree.parents.tolist(),
            tree.depths.tolist(),
            tree.valid.tolist(),
            strict=True,
        )
    ]


def result_of(rows: Sequence[TreeRow]) -> DDTreeBuildResult:
    """The inverse of `rows_of`. Weights, which 0050 adds, are those of the node order."""
    columns = {
        name: torch.tensor([getattr(row, name) for row in rows])
        for name in ("token_ids", "parents", "depths", "valid")
    }
    if "node_logws" in DDTreeBuildResult.__dataclass_fields__:
        node_order = -torch.arange(columns["valid"].shape[1], dtype=torch.float32)
        columns["node_logws"] = torch.where(columns["valid"], node_order, float("-inf"))
    return DDTreeBuildResult(**columns)


def expected_rows(
    logprobs: torch.Tensor,
    ids: torch.Tensor,
    roots: torch.Tensor,
    budget: int,
    oracle: Callable[[LogProbs, int], list[Path]] = heap_tree,
) -> list[TreeRow]:
    """What `build_ddtree_tree_from_topk` must return, by one of the oracles."""
    return [
        tree_row(oracle(row_logprobs, budget), row_ids, root, budget)
        for row_logprobs, row_ids, root in zip(
            logprobs.tolist(), ids.tolist(), roots.tolist(), strict=True
        )
    ]


def random_topk(
    generator: torch.Generator, bs: int, num_depths: int, k: int, vocab_size: int = 300
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probabilities, token ids and root tokens of a drafter with random logits.

    Depths differ in how sure the drafter is, so that trees are neither bushes nor chains.
    """
    sharpness = torch.rand(bs, num_depths, 1, generator=generator) * 6 + 0.5
    logits = torch.randn(bs, num_depths, vocab_size, generator=generator) * sharpness
    logprobs, ids = torch.log_softmax(logits, dim=-1).topk(k, dim=-1)
    return logprobs, ids, torch.randint(vocab_size, (bs,), generator=generator)


def random_target_ids(
    rng: random.Random, row: TreeRow, vocab_size: int, agreement: float
) -> list[int]:
    """A token after each node; with probability `agreement` it is one of the node's children's."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(row.parents):
        children.setdefault(parent, []).append(node)
    return [
        row.token_ids[rng.choice(children[node])]
        if node in children and rng.random() < agreement
        else rng.randrange(vocab_size)
        for node in range(len(row.parents))
    ]
