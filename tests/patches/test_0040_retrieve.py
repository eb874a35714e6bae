# SPDX-License-Identifier: Apache-2.0
"""First-child and next-sibling pointers against the trees they are compiled from."""

import random

import pytest
import torch
from oracles.trees import children_of, random_row
from sglang.srt.speculative.ddtree_utils import compile_ddtree_retrieve


def random_batch(rng, bs, width, max_depth=6):
    """Random trees, and weights that are not in the order of the nodes; ties are common."""
    rows = [random_row(rng, width, max_depth, vocab_size=5) for _ in range(bs)]
    weights = [
        [float(rng.randint(-4, 0)) if ok else float("-inf") for ok in row.valid] for row in rows
    ]
    return rows, weights


def walk_pointers(next_token, next_sibling):
    """{node: children in the order of the pointers}, from node 0."""
    children, todo = {}, [0]
    while todo:
        node = todo.pop()
        assert node not in children, "a node is reached twice"
        children[node] = []
        child = next_token[node]
        while child >= 0:
            children[node].append(child)
            child = next_sibling[child]
        todo += children[node]
    return children


def test_pointers_visit_every_node_once_in_descending_weight():
    """The walk over the pointers equals the walk over the parents."""
    rng = random.Random(0)
    for _ in range(300):
        rows, weights = random_batch(rng, rng.randint(1, 4), rng.randint(1, 20))
        width = len(weights[0])
        parents = torch.tensor([row.parents for row in rows])
        _, next_token, next_sibling = compile_ddtree_retrieve(parents, torch.tensor(weights), width)
        for row, row_weights, first, following in zip(
            rows, weights, next_token.tolist(), next_sibling.tolist(), strict=True
        ):
            expected = {
                node: sorted(children, key=lambda c: (-row_weights[c], c))
                for node, children in children_of(row).items()
            }
            assert walk_pointers(first, following) == expected
            for node, ok in enumerate(row.valid):
                if not ok:
                    assert first[node] == following[node] == -1


def test_index_is_the_global_row():
    parents = torch.tensor([[-1, 0, 0], [-1, 0, 1]])
    index, _, _ = compile_ddtree_retrieve(parents, torch.zeros(2, 3), 3)
    assert index.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert index.dtype == torch.int64


def test_one_row_without_a_batch():
    """A single tree gives the same pointers as a batch of one, without the first dimension."""
    parents = torch.tensor([-1, 0, 1, 0, -1])
    weights = torch.tensor([0.0, -1.0, -3.0, -0.5, float("-inf")])
    index, next_token, next_sibling = compile_ddtree_retrieve(parents, weights, 5)
    assert index.tolist() == [0, 1, 2, 3, 4]
    assert next_token.tolist() == [3, 2, -1, -1, -1]
    assert next_sibling.tolist() == [-1, -1, -1, 1, -1]


def test_rows_do_not_depend_on_their_neighbours():
    rows, weights = random_batch(random.Random(1), 6, 15)
    parents, weights = torch.tensor([row.parents for row in rows]), torch.tensor(weights)
    together = compile_ddtree_retrieve(parents, weights, 15)
    for i in range(6):
        alone = compile_ddtree_retrieve(parents[i], weights[i], 15)
        assert torch.equal(together[1][i], alone[1])
        assert torch.equal(together[2][i], alone[2])


@pytest.mark.parametrize(
    "parents,weights,q_len",
    [
        (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 4), 3),
        (torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3), 4),
        (torch.zeros(1, 1, 3, dtype=torch.int64), torch.zeros(1, 1, 3), 3),
    ],
)
def test_shapes_that_do_not_fit(parents, weights, q_len):
    with pytest.raises(ValueError, match="DDTree retrieve expects"):
        compile_ddtree_retrieve(parents, weights, q_len)
