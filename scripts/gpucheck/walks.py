# SPDX-License-Identifier: Apache-2.0
"""`python -m gpucheck.walks`: many random trees through sgl_kernel's walk and the PyTorch rule.

Both get the same coins. They add the same probabilities in float32, in another order, so a coin
that lies within rounding of the edge between two children may fall on either side; every other
difference is an error. Then the law of (accepted path, bonus token) of the whole sampled step is
compared with the exact one, since a bonus depends on where a walk has ended. Prints one line of
JSON.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

SEED = 20260
TREES, COPIES = 400, 64
LAW_TREES, LAW_COPIES = 4, 100_000
# Standard deviations of a chi-square statistic around its mean; the trees and seeds are fixed.
GREATEST_Z = 5.0
# Least number of walks that a bin of the law must expect.
LEAST_EXPECTED = 20
# A coin has about one chance in 30,000 to lie within rounding of an edge of its node: less than
# this share of all walks. More means that the edges are elsewhere.
GREATEST_BOUNDARY_SHARE = 1e-3

Walk = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


@dataclass
class Case:
    """One random tree, copied, and the target's distribution after each node.

    Attributes:
        tree: `DDTreeBuildResult` of n equal rows.
        probs: float32 [n, W, V]; support: int64 [n, W].
    """

    tree: Any
    ancestors: torch.Tensor
    retrieve: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    probs: torch.Tensor
    support: torch.Tensor
    depth: int


def make_case(
    seed: int, copies: int, device: str, budget: int, depth: int, vocab: int, top_k: int | None
) -> Case:
    """A tree of a random drafter, and a random target that leans towards it."""
    from sglang.srt.speculative import ddtree_utils

    generator = torch.Generator().manual_seed(seed)
    draft = 1.5 * torch.randn(depth, vocab, generator=generator)
    top = torch.log_softmax(draft, dim=-1).topk(min(budget, vocab), dim=-1)
    tree = ddtree_utils.build_ddtree_tree_from_topk(
        top.values[None].to(device),
        top.indices[None].to(device),
        torch.ones(1, dtype=torch.int64, device=device),
        budget,
    )
    noise = 1.5 * torch.randn(budget + 1, vocab, generator=generator)
    logits = 0.8 * draft[tree.depths[0].cpu().clamp(max=depth - 1)] + noise
    if top_k is not None:
        least = logits.topk(top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < least, -math.inf)
    probs = torch.softmax(logits, dim=-1).to(device)
    support = torch.count_nonzero(probs, dim=1)
    many = type(tree)(**{name: x.repeat(copies, 1) for name, x in vars(tree).items()})
    return Case(
        many,
        ddtree_utils.compile_ddtree_ancestors(many.parents, depth),
        ddtree_utils.compile_ddtree_retrieve(many.parents, many.node_logws, budget + 1),
        probs.repeat(copies, 1, 1),
        support.repeat(copies, 1),
        depth,
    )


def cases(count: int, copies: int, device: str):
    """Trees of many shapes; small vocabularies and top-k give nodes whose children are all."""
    for i in range(count):
        vocab = (12, 1000, 32_000)[i % 3] if i % 16 == 2 else (12, 1000)[i % 2]
        top_k = (None, 2, 5)[i % 3]
        some = copies if vocab < 10_000 else max(1, copies // 16)
        yield make_case(SEED + i, some, device, (7, 15, 31)[i % 3], 1 + i % 7, vocab, top_k)


def walk_by_rule(case: Case, coins: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The PyTorch rule: accepted_paths, accept_lens, last_nodes."""
    from sglang.srt.speculative.ddtree_sampling import match_children_by_coin
    from sglang.srt.speculative.ddtree_verify import follow_ddtree_matches

    matches = match_children_by_coin(case.tree, case.probs, case.support, coins)
    return follow_ddtree_matches(case.tree, case.ancestors, matches, case.depth)


def walk_by_kernel(case: Case, coins: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """sgl_kernel's walk, as the series calls it."""
    from sglang.srt.speculative.ddtree_sampling import accept_by_kernel

    return accept_by_kernel(case.tree, case.retrieve, case.probs, case.support, coins, case.depth)


def is_at_a_boundary(
    parents: list[int], tokens: list[int], probs: list[list[float]], node: int, coin: float
) -> bool:
    """Whether a coin is within float32 rounding of an edge between a node's children.

    Adding n numbers of sum at most 1 in float32 errs by at most n units of 2**-24, on each side
    of a comparison; and the kernel's coin is kept W units of 2**-23 below a full sum.
    """
    margin = 4 * len(parents) * 2.0**-23
    edge, near_an_edge = 0.0, False
    for child, parent in enumerate(parents):
        if parent == node:
            edge += probs[node][tokens[child]]
            near_an_edge |= abs(coin - edge) <= margin
    return near_an_edge


@dataclass
class Compared:
    """Counts over all walks; `wrong`: a line for each difference that no rounding excuses."""

    compared: int = 0
    equal: int = 0
    at_a_boundary: int = 0
    wrong: list[str] | None = None

    def add(self, case: Case, coins: torch.Tensor, mine: Walk, rule: Walk, name: str) -> None:
        """Walk a case both ways."""
        paths, expected = (walk(case, coins.clone())[0].tolist() for walk in (mine, rule))
        self.compared += len(paths)
        for row, (found, wanted) in enumerate(zip(paths, expected, strict=True)):
            if found == wanted:
                self.equal += 1
                continue
            place = next(
                i for i, pair in enumerate(zip(found, wanted, strict=True)) if len(set(pair)) > 1
            )
            parted = wanted[place - 1] if place else 0
            near = place > 0 and is_at_a_boundary(
                case.tree.parents[row].tolist(),
                case.tree.token_ids[row].tolist(),
                case.probs[row].double().tolist(),
                parted,
                float(coins[row, parted]),
            )
            if near:
                self.at_a_boundary += 1
            else:
                self.wrong = [*(self.wrong or []), f"{name} walk {row}: {found}, expected {wanted}"]


def compare_walks(device: str, mine: Walk, trees: int = TREES, copies: int = COPIES) -> Compared:
    """The PyTorch rule against `mine` on the same coins."""
    generator = torch.Generator().manual_seed(SEED)
    total = Compared()
    for i, case in enumerate(cases(trees, copies, device)):
        shape = case.probs.shape[:2]
        coins = (1.0 - torch.rand(shape, generator=generator)).to(device)
        total.add(case, coins, mine, walk_by_rule, f"tree {i}")
    return total


def exact_law(case: Case) -> dict[tuple[tuple[int, ...], int], float]:
    """Probability of each (accepted path, bonus) if every token follows the target."""
    parents, tokens = case.tree.parents[0].tolist(), case.tree.token_ids[0].tolist()
    probs = case.probs[0].double().tolist()
    law = {}

    def descend(path: tuple[int, ...], weight: float) -> None:
        below = {tokens[c]: c for c, parent in enumerate(parents) if parent == path[-1]}
        for token, p in enumerate(probs[path[-1]]):
            if p and token in below:
                descend((*path, below[token]), weight * p)
            elif p:
                law[path, token] = weight * p

    descend((0,), 1.0)
    return law


def chi_square_z(counts: Counter, law: dict[Any, float], total: int) -> float:
    """How many standard deviations a chi-square statistic is above its mean.

    Outcomes that are expected too rarely share one bin. An impossible outcome is infinitely far.
    """
    if any(outcome not in law for outcome in counts):
        return math.inf
    bins, rest, rest_count = [], 0.0, 0
    for outcome, p in law.items():
        if p * total >= LEAST_EXPECTED:
            bins.append((counts[outcome], p * total))
        else:
            rest, rest_count = rest + p * total, rest_count + counts[outcome]
    if rest > 0:
        bins.append((rest_count, rest))
    freedom = len(bins) - 1
    if freedom < 1:
        return 0.0
    statistic = sum((found - wanted) ** 2 / wanted for found, wanted in bins)
    return (statistic - freedom) / math.sqrt(2 * freedom)


def law_of(case: Case, step: Callable[[Case], tuple[torch.Tensor, ...]]) -> float:
    """z of what a sampled step drew for every copy of a tree."""
    paths, lengths, bonus = (x.tolist() for x in step(case))
    drawn = Counter(
        (tuple(path[: length + 1]), token)
        for path, length, token in zip(paths, lengths, bonus, strict=True)
    )
    return chi_square_z(drawn, exact_law(case), len(paths))


def sampled_step(case: Case) -> tuple[torch.Tensor, ...]:
    """accepted_paths, accept_lens, bonus, as the series draws them on this device."""
    from sglang.srt.speculative.ddtree_sampling import sample_ddtree_paths

    index, next_token, next_sibling = case.retrieve
    return sample_ddtree_paths(
        tree=case.tree,
        ancestors=case.ancestors,
        retrieve_index=index,
        retrieve_next_token=next_token,
        retrieve_next_sibling=next_sibling,
        probs=case.probs,
        support=case.support,
        max_depth=case.depth,
    )


def compare_laws(
    device: str, step: Callable[[Case], tuple[torch.Tensor, ...]], copies: int = LAW_COPIES
) -> list[float]:
    """z for each of some small trees."""
    torch.manual_seed(SEED)
    found = []
    for i in range(LAW_TREES):
        case = make_case(SEED - 1 - i, copies, device, 7, 3, 10, (None, 3)[i % 2])
        found.append(law_of(case, step))
    return found


def report(compared: Compared, zs: list[float]) -> dict[str, Any]:
    """What was counted, and what is wrong with it."""
    wrong = compared.wrong or []
    problems = [f"{len(wrong)} walks differ"] * bool(wrong) + wrong[:20]
    if compared.at_a_boundary > GREATEST_BOUNDARY_SHARE * compared.compared:
        problems.append(
            f"{compared.at_a_boundary} of {compared.compared} walks part at a boundary, more than "
            f"a share of {GREATEST_BOUNDARY_SHARE}"
        )
    if not compared.compared:
        problems.append("no walk was compared")
    if not zs or max(zs) > GREATEST_Z:
        problems.append(f"the law of (path, bonus) is not the target's: z {max(zs, default=0):.1f}")
    return {
        "walks": {
            "compared": compared.compared,
            "equal": compared.equal,
            "at_a_boundary": compared.at_a_boundary,
            "wrong": len(wrong),
        },
        # JSON has no infinity; an impossible outcome is as far as can be said.
        "law": {"greatest_z": min(max(zs, default=0.0), 1e9), "z": [min(z, 1e9) for z in zs]},
        "problems": problems,
    }


def main() -> None:
    zs = compare_laws("cuda", sampled_step)
    print(json.dumps(report(compare_walks("cuda", walk_by_kernel), zs)))


if __name__ == "__main__":
    main()
