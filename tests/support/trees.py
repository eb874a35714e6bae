# SPDX-License-Identifier: Apache-2.0
"""Oracles over the probe's log of verify steps."""

from collections.abc import Iterator
from dataclasses import dataclass

from support.reference import common_length


@dataclass(frozen=True)
class Step:
    """One request's part of a verify step.

    Attributes:
        rid: the request.
        prefix_len: committed tokens before the root, so the root's position in the text.
        draft_len: committed tokens that the drafter could see.
        chain: the drafter's most probable token at each position after the root.
        accepted: accepted draft tokens; the step committed one token more.
        paths: tokens of every valid node's path from the root, root excluded; None for DFLASH.
        batch_size: requests in the step.
    """

    rid: str
    prefix_len: int
    draft_len: int
    chain: list[int]
    accepted: int
    paths: set[tuple[int, ...]] | None
    batch_size: int

    def chain_accepts(self, text: list[int]) -> int:
        """Accepted tokens if the chain had been verified; `text` is all that was committed."""
        return self._cut(common_length(self.chain, text[self.prefix_len + 1 :]), text)

    def tree_accepts(self, text: list[int]) -> int:
        """Accepted tokens by a walk over the tree's paths."""
        following = tuple(text[self.prefix_len + 1 :])
        depth = max(len(p) for p in self.paths if p == following[: len(p)])
        return self._cut(depth, text)

    def chain_held(self) -> int:
        """How many tokens of the chain, from its first, are a path of the tree."""
        return max(len(p) for p in self.paths if p == tuple(self.chain[: len(p)]))

    def holds_chain(self) -> bool:
        """Whether the tree has the whole chain as a path."""
        return self.chain_held() == len(self.chain)

    def _cut(self, accepted: int, text: list[int]) -> int:
        """The token after the accepted ones must fit into the text as well."""
        return min(accepted, len(text) - self.prefix_len - 2)


def read_steps(log: list[dict]) -> Iterator[Step]:
    """Split the probe's log into the parts of single requests, in order."""
    for entry in log:
        for i, rid in enumerate(entry["rids"]):
            tree = entry["tree"]
            yield Step(
                rid=rid,
                prefix_len=entry["prefix_lens"][i],
                draft_len=entry["draft_lens"][i],
                chain=entry["chain"][i],
                accepted=entry["accepted"][i],
                paths=tree and tree_paths(*(tree[k][i] for k in ("token_ids", "parents", "valid"))),
                batch_size=len(entry["rids"]),
            )


def tree_paths(tokens: list[int], parents: list[int], valid: list[bool]) -> set[tuple[int, ...]]:
    """The path of every valid node, by parent pointers; the root's is empty."""
    paths = [()]
    for node in range(1, len(tokens)):
        paths.append(paths[parents[node]] + (tokens[node],) if valid[node] else ())
    return set(paths)
