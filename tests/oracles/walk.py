# SPDX-License-Identifier: Apache-2.0
"""The greedy walk through a verified tree, over parent pointers."""

from __future__ import annotations

from collections.abc import Sequence

from oracles.trees import TreeRow, children_of


def chosen_walk(row: TreeRow, chosen: Sequence[bool]) -> list[int]:
    """The longest path from node 0 over nodes that were chosen at their parents.

    Of several longest paths it is the one whose last node has the smallest index. What
    `chosen` says of node 0 and of padding nodes does not count.
    """
    children = children_of(row)

    def longest(node: int) -> list[int]:
        tails = [longest(child) for child in children[node] if chosen[child]]
        return [node] + min(tails, key=lambda tail: (-len(tail), tail[-1]), default=[])

    return longest(0)


def greedy_walk(row: TreeRow, target_ids: Sequence[int]) -> tuple[list[int], int]:
    """The path the target takes, node 0 first, and its token after the last node.

    From a node the target goes on to a child that carries the token it chose there. Siblings
    with the same token are alternatives: all are tried, and the longest path is kept.

    Args:
        row: the tree.
        target_ids: [W], the token that the target chose after each node.
    """
    path = chosen_walk(
        row,
        [
            parent >= 0 and token == target_ids[parent]
            for token, parent in zip(row.token_ids, row.parents, strict=True)
        ],
    )
    return path, target_ids[path[-1]]


def follow(row: TreeRow, token_ids: Sequence[int]) -> list[int]:
    """The nodes that spell `token_ids` from the root, node 0 first, as far as the tree goes."""
    children = children_of(row)
    nodes = [0]
    for token in token_ids:
        found = [child for child in children[nodes[-1]] if row.token_ids[child] == token]
        if not found:
            break
        nodes.append(found[0])
    return nodes


def chain_accept_len(drafted: Sequence[int], target_ids: Sequence[int]) -> int:
    """How many drafted tokens of a chain are accepted.

    Args:
        drafted: [L], the tokens after the root.
        target_ids: [L + 1], the target's token after the root and after each drafted token.
    """
    accepted = 0
    while accepted < len(drafted) and drafted[accepted] == target_ids[accepted]:
        accepted += 1
    return accepted
