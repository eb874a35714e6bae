# SPDX-License-Identifier: Apache-2.0
"""The most probable draft prefixes, best-first with a heap, and how far a text follows them."""

import heapq


def best_first_prefixes(log_probs: list[list[float]], budget: int) -> list[tuple[int, ...]]:
    """The ``budget`` most probable prefixes in descending order of probability.

    Args:
        log_probs: for each drafted position, the log-probabilities of its candidates, descending.
        budget: how many prefixes; fewer come back if there are not so many.

    Returns:
        Prefixes as candidate ranks, one per position; a prefix comes after all its own prefixes,
        so the first n are the tree of budget n.
    """
    heap = [(-log_probs[0][0], (0,))]
    found: list[tuple[int, ...]] = []
    while heap and len(found) < budget:
        cost, prefix = heapq.heappop(heap)
        found.append(prefix)
        depth, rank = len(prefix), prefix[-1]
        here = log_probs[depth - 1]
        if rank + 1 < len(here):
            sibling = cost + here[rank] - here[rank + 1]
            heapq.heappush(heap, (sibling, (*prefix[:-1], rank + 1)))
        if depth < len(log_probs):
            heapq.heappush(heap, (cost - log_probs[depth][0], (*prefix, 0)))
    return found


def followed_ranks(candidates: list[list[int]], text: list[int]) -> tuple[int, ...]:
    """Ranks of the ``text`` tokens among their positions' ``candidates``, up to the first miss."""
    ranks = []
    for position, token in zip(candidates, text, strict=True):
        if token not in position:
            break
        ranks.append(position.index(token))
    return tuple(ranks)


def chain_accepts(ranks: tuple[int, ...]) -> int:
    """How many tokens the chain of rank-0 candidates accepts."""
    return next((i for i, rank in enumerate(ranks) if rank), len(ranks))


def tree_accepts(
    prefixes: list[tuple[int, ...]], ranks: tuple[int, ...], budgets: tuple[int, ...]
) -> dict[int, int]:
    """For each budget, how many tokens the tree of the first ``budget`` prefixes accepts."""
    place = {prefix: i for i, prefix in enumerate(prefixes)}
    needed = []
    for depth in range(1, len(ranks) + 1):
        index = place.get(ranks[:depth])
        if index is None:
            break
        needed.append(index + 1)
    return {budget: sum(need <= budget for need in needed) for budget in budgets}
