# SPDX-License-Identifier: Apache-2.0
"""Sample many copies of one draft tree through DDTreeVerifyInput, without an engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
from oracles.target_only import outcome_distribution, target_distribution
from sglang.srt.sampling.sampling_params import TOP_K_ALL
from sglang.srt.speculative.ddtree_utils import (
    DDTreeBuildResult,
    build_ddtree_tree_from_topk,
    compile_ddtree_ancestors,
    compile_ddtree_retrieve,
)
from sglang.srt.speculative.dflash_info import DDTreeVerifyInput

_COPIES_PER_CALL = 20_000


@dataclass(frozen=True)
class Parameters:
    """Sampling parameters of a request, None or neutral where unused."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0

    def batch(self, num_requests: int, seeds: torch.Tensor | None = None) -> SimpleNamespace:
        """The fields of a SamplingBatchInfo that the verify step reads."""
        ones = torch.ones(num_requests)
        return SimpleNamespace(
            temperatures=(ones * self.temperature).view(-1, 1),
            top_ks=torch.full((num_requests,), self.top_k or TOP_K_ALL, dtype=torch.int32),
            top_ps=ones * self.top_p,
            min_ps=ones * self.min_p,
            need_top_k_sampling=self.top_k is not None,
            need_top_p_sampling=self.top_p < 1.0,
            need_min_p_sampling=self.min_p > 0.0,
            is_all_greedy=self.top_k == 1,
            sampling_seed=seeds,
        )


@dataclass
class TreeCase:
    """One draft tree and the target's logits after each of its nodes."""

    tree: DDTreeBuildResult  # bs 1
    max_depth: int
    logits: torch.Tensor  # float32 [W, V]
    draft_logprobs: torch.Tensor  # float32 [L, V]
    parents: list[int] = field(init=False)
    token_ids: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.parents = self.tree.parents[0].tolist()
        self.token_ids = self.tree.token_ids[0].tolist()

    def target(self, parameters: Parameters) -> list[list[float]]:
        """Each node's exact target distribution, in float64."""
        return [
            target_distribution(
                row,
                temperature=parameters.temperature,
                top_k=parameters.top_k,
                top_p=parameters.top_p,
                min_p=parameters.min_p,
            )
            for row in self.logits.double().tolist()
        ]

    def exact(self, parameters: Parameters) -> dict:
        """Exact law of (accepted path, bonus)."""
        return outcome_distribution(self.parents, self.token_ids, self.target(parameters))

    def verify_input(self, copies: int) -> DDTreeVerifyInput:
        tree = DDTreeBuildResult(
            **{name: value.repeat(copies, 1) for name, value in vars(self.tree).items()}
        )
        width = tree.parents.shape[1]
        index, next_token, next_sibling = compile_ddtree_retrieve(
            tree.parents, tree.node_logws, width
        )
        return DDTreeVerifyInput(
            draft_token=tree.token_ids.flatten(),
            positions=tree.depths.flatten() + 100,
            draft_token_num=width,
            tree=tree,
            ancestors=compile_ddtree_ancestors(tree.parents, self.max_depth),
            max_depth=self.max_depth,
            retrieve_index=index,
            retrieve_next_token=next_token,
            retrieve_next_sibling=next_sibling,
        )

    def sample(self, parameters: Parameters, num_samples: int, seeded: bool = False) -> Counter:
        """Count (accepted path, bonus) over `num_samples` copies of the tree.

        With `seeded`, copy i is a request with sampling_seed i.
        """
        outcomes: Counter = Counter()
        for start in range(0, num_samples, _COPIES_PER_CALL):
            copies = min(_COPIES_PER_CALL, num_samples - start)
            seeds = torch.arange(start, start + copies) if seeded else None
            paths, accept_lens, bonus = self.verify_input(copies)._sample_tree_paths(
                self.logits.repeat(copies, 1), parameters.batch(copies, seeds)
            )
            for path, length, token in zip(
                paths.tolist(), accept_lens.tolist(), bonus.tolist(), strict=True
            ):
                outcomes[tuple(path[: length + 1]), token] += 1
        return outcomes


def random_case(
    seed: int, *, budget: int = 7, max_depth: int = 3, vocab_size: int = 10, sharpness: float = 1.5
) -> TreeCase:
    """A draft tree from random marginals, and a random target after each of its nodes.

    The target leans towards the drafter, so that deep paths are accepted often enough for
    their law to be tested, and differs from it enough for q to be a wrong answer.
    """
    generator = torch.Generator().manual_seed(seed)
    draft_logits = sharpness * torch.randn(max_depth, vocab_size, generator=generator)
    draft_logprobs = torch.log_softmax(draft_logits, dim=-1)
    top = draft_logprobs.topk(min(budget, vocab_size), dim=-1)
    tree = build_ddtree_tree_from_topk(
        top.values.unsqueeze(0), top.indices.unsqueeze(0), torch.tensor([1]), budget
    )
    noise = sharpness * torch.randn(budget + 1, vocab_size, generator=generator)
    next_depth = tree.depths[0].clamp(max=max_depth - 1)
    logits = 0.6 * draft_logits[next_depth] + noise
    return TreeCase(tree, max_depth, logits, draft_logprobs)
