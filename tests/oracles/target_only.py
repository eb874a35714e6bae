# SPDX-License-Identifier: Apache-2.0
"""The target-only rule and the request's own distribution, one row at a time in Python.

Nothing here imports sglang. Distributions are lists of floats over the vocabulary; a tree
is (parents, token_ids) with node 0 the root and -1 for "no parent".
"""

from __future__ import annotations

import math


def target_distribution(
    logits: list[float],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> list[float]:
    """What one request samples from: temperature, then top-k, top-p and min-p jointly.

    A token stays if it is among the k most probable, if the tokens before it hold at most
    top_p, and if it has at least min_p of the greatest probability.
    """
    peak = max(logits)
    weights = [math.exp((x - peak) / temperature) for x in logits]
    total = math.fsum(weights)
    probs = [w / total for w in weights]
    order = sorted(range(len(probs)), key=lambda t: (-probs[t], t))
    kept = [0.0] * len(probs)
    before = 0.0
    for rank, token in enumerate(order):
        p = probs[token]
        in_top_p = top_p >= 1.0 or before <= top_p
        if (top_k is None or rank < top_k) and in_top_p and p >= min_p * probs[order[0]]:
            kept[token] = p
        before += p
    total = math.fsum(kept)
    return [p / total for p in kept]


def children_of(parents: list[int], node: int) -> list[int]:
    """Children of a node in sibling order, which is the order of their indices."""
    return [i for i, parent in enumerate(parents) if parent == node]


def walk_by_coins(
    parents: list[int],
    token_ids: list[int],
    probs: list[list[float]],
    coins: list[float],
    bonus_coin: float,
) -> tuple[list[int], int]:
    """The rule for one tree: (accepted path, bonus token).

    At a node its coin falls on the first child at which the summed probability reaches it.
    If it falls on none, the bonus is the first token, in vocabulary order, at which the
    summed probability of the tokens that are no child's reaches `bonus_coin` of their mass.
    If the children hold the whole support, the last possible child takes the rest.
    """
    path = [0]
    while True:
        node = path[-1]
        possible = [c for c in children_of(parents, node) if probs[node][token_ids[c]] > 0.0]
        summed, chosen = 0.0, None
        for child in possible:
            summed += probs[node][token_ids[child]]
            if coins[node] <= summed:
                chosen = child
                break
        if chosen is None and len(possible) == sum(p > 0.0 for p in probs[node]):
            chosen = possible[-1]
        if chosen is None:
            break
        path.append(chosen)
    taken = {token_ids[c] for c in children_of(parents, node)}
    rest = [0.0 if t in taken else p for t, p in enumerate(probs[node])]
    threshold, summed = bonus_coin * math.fsum(rest), 0.0
    for token, p in enumerate(rest):
        summed += p
        if p > 0.0 and summed >= threshold:
            return path, token
    return path, max(t for t, p in enumerate(rest) if p > 0.0)


def outcome_distribution(
    parents: list[int], token_ids: list[int], probs: list[list[float]]
) -> dict[tuple[tuple[int, ...], int], float]:
    """Exact probability of every (accepted path, bonus) if each token follows `probs`.

    The text then is the path's tokens and the bonus: a path stops at a node if and only if
    the next token is no child's.
    """
    outcomes: dict[tuple[tuple[int, ...], int], float] = {}

    def visit(path: tuple[int, ...], weight: float) -> None:
        node = path[-1]
        by_token = {token_ids[c]: c for c in children_of(parents, node)}
        for token, p in enumerate(probs[node]):
            if p == 0.0:
                continue
            if token in by_token:
                visit((*path, by_token[token]), weight * p)
            else:
                outcomes[path, token] = weight * p

    visit((0,), 1.0)
    return outcomes
