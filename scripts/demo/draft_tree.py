# SPDX-License-Identifier: Apache-2.0
"""Draft trees that a traced server wrote down, and which of them is worth showing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from .failure import Failure


@dataclass(frozen=True)
class DraftTree:
    """The tree of one verify step, and what the target made of it.

    `tokens`, `parents` and `log_q` have one entry a node. Node 0 is the root, whose parent is
    -1; a parent stands before its children. `log_q` is the drafter's log-probability (natural
    logarithm) of the node's own token at its depth, 0.0 for the root.
    """

    context: tuple[int, ...]
    """The tokens before the root, the last few of them."""
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    log_q: tuple[float, ...]
    accepted: tuple[int, ...]
    """Nodes of the accepted path, beginning with 0."""
    bonus: int | None
    """The target's own token after the path, or None where the answer ended in the path."""

    def children(self, node: int) -> list[int]:
        """Children in descending probability."""
        found = [i for i, parent in enumerate(self.parents) if parent == node]
        return sorted(found, key=lambda i: -self.log_q[i])

    @property
    def drafts_accepted(self) -> int:
        """Accepted tokens without the root and the bonus."""
        return len(self.accepted) - 1

    @property
    def chain_accepted(self) -> int:
        """Accepted tokens that are the drafter's first choice, up to the first that is not.

        Where this is less than `drafts_accepted`, it is what DFLASH's chain would have got.
        """
        choices = [self.children(parent)[0] == child for parent, child in pairwise(self.accepted)]
        return [*choices, False].index(False)


def _tree(fields: dict) -> DraftTree:
    bonus = fields.pop("bonus")
    return DraftTree(**{name: tuple(values) for name, values in fields.items()}, bonus=bonus)


def read_trace(path: Path) -> list[DraftTree]:
    """The trees of a trace file, one a line, in the order of the steps.

    Raises:
        Failure: the server wrote no tree, or something else.
    """
    try:
        trees = [_tree(json.loads(line)) for line in path.read_text().splitlines()]
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise Failure(f"trace: expected draft trees in {path}, found {error!r}") from error
    if not trees:
        raise Failure(f"trace: expected a draft tree a step in {path}, found none")
    return trees


def most_telling(trees: Sequence[DraftTree]) -> int:
    """Index of the tree that shows most: where the tree gained most over a chain.

    Among equals, the one with the longest path, then the first. One that ended the answer is
    taken only if there is no other.
    """

    def worth(index: int) -> tuple[bool, int, int, int]:
        tree = trees[index]
        gained = tree.drafts_accepted - tree.chain_accepted
        return tree.bonus is not None, gained, tree.drafts_accepted, -index

    return max(range(len(trees)), key=worth)
