# SPDX-License-Identifier: Apache-2.0
"""`walk_ddtree` against a walk over parent pointers, and against DFLASH's chain."""

import random

import pytest
import torch
from ddtree_rows import random_target_ids, random_topk, result_of, rows_of
from oracles.trees import TreeRow, random_row
from oracles.walk import chain_accept_len, chosen_walk, follow, greedy_walk
from sglang.srt.speculative.ddtree_utils import (
    build_ddtree_tree_from_topk,
    compile_ddtree_ancestors,
)
from sglang.srt.speculative.ddtree_verify import follow_ddtree_matches, walk_ddtree
from support.upstream import chain_walk


def trimmed_paths(paths, accept_lens, max_depth):
    """Accepted paths as lists without their padding."""
    assert paths.shape == (len(accept_lens), max_depth + 1)
    trimmed = []
    for path, accept_len in zip(paths.tolist(), accept_lens.tolist(), strict=True):
        assert path[accept_len + 1 :] == [-1] * (max_depth - accept_len)
        trimmed.append(path[: accept_len + 1])
    return trimmed


def walk(rows, target_ids, max_depth):
    """Accepted paths, and the bonus tokens."""
    tree = result_of(rows)
    ancestors = compile_ddtree_ancestors(tree.parents, max_depth)
    paths, accept_lens, bonus = walk_ddtree(tree, ancestors, torch.tensor(target_ids), max_depth)
    return trimmed_paths(paths, accept_lens, max_depth), bonus.tolist()


@pytest.mark.parametrize("agreement", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("vocab_size", [2, 5, 100])
def test_random_trees(vocab_size, agreement):
    """A vocabulary of 2 makes siblings share tokens and padding nodes match all the time."""
    rng = random.Random(vocab_size)
    lengths = set()
    for _ in range(40):
        width, max_depth = rng.randint(2, 24), rng.randint(1, 8)
        rows = [random_row(rng, width, max_depth, vocab_size) for _ in range(8)]
        target_ids = [random_target_ids(rng, row, vocab_size, agreement) for row in rows]
        expected = [greedy_walk(row, ids) for row, ids in zip(rows, target_ids, strict=True)]
        paths, bonus = walk(rows, target_ids, max_depth)
        assert paths == [path for path, _ in expected]
        assert bonus == [token for _, token in expected]
        lengths |= {len(path) for path in paths}
    assert 1 in lengths
    assert agreement == 0 or max(lengths) > 2


def test_built_trees():
    generator = torch.Generator().manual_seed(0)
    rng = random.Random(0)
    for _ in range(40):
        tree = build_ddtree_tree_from_topk(*random_topk(generator, 6, 7, 8, vocab_size=40), 31)
        rows = rows_of(tree)
        target_ids = [random_target_ids(rng, row, 40, agreement=0.8) for row in rows]
        paths, bonus = walk(rows, target_ids, 7)
        assert list(zip(paths, bonus, strict=True)) == [
            greedy_walk(row, ids) for row, ids in zip(rows, target_ids, strict=True)
        ]


@pytest.mark.parametrize("probability", [0.1, 0.6, 1.0])
def test_any_choice_of_nodes(probability):
    """Not only choices by token: what is said of the root and of padding does not count."""
    rng = random.Random(0)
    for _ in range(100):
        width, max_depth = rng.randint(2, 24), rng.randint(1, 8)
        rows = [random_row(rng, width, max_depth, vocab_size=9) for _ in range(4)]
        chosen = [[rng.random() < probability for _ in range(width)] for _ in rows]
        tree = result_of(rows)
        ancestors = compile_ddtree_ancestors(tree.parents, max_depth)
        paths, accept_lens, last_nodes = follow_ddtree_matches(
            tree, ancestors, torch.tensor(chosen), max_depth
        )
        expected = [chosen_walk(row, nodes) for row, nodes in zip(rows, chosen, strict=True)]
        assert trimmed_paths(paths, accept_lens, max_depth) == expected
        assert last_nodes.tolist() == [path[-1] for path in expected]


FORK = TreeRow(
    token_ids=[5, 7, 8, 9, 5, 5],
    parents=[-1, 0, 0, 1, -1, -1],
    depths=[0, 1, 1, 2, 1, 1],
    valid=[True, True, True, True, False, False],
)


@pytest.mark.parametrize(
    ("target_ids", "path", "bonus"),
    [
        ([7, 9, 0, 3, 1, 1], [0, 1, 3], 3),  # everything on the path
        ([8, 9, 4, 3, 1, 1], [0, 2], 4),
        ([7, 6, 0, 3, 1, 1], [0, 1], 6),
        ([6, 9, 9, 9, 1, 1], [0], 6),  # nothing
        ([9, 9, 9, 9, 1, 1], [0], 9),  # a grandchild's token is no child's
        ([5, 9, 9, 9, 1, 1], [0], 5),  # the token of the padding nodes, and of the root
    ],
)
def test_one_tree(target_ids, path, bonus):
    assert walk([FORK], [target_ids], 2) == ([path], [bonus])


def test_siblings_with_the_same_token():
    """The first of them, unless another one leads further."""
    row = TreeRow([1, 4, 4, 4, 6], [-1, 0, 0, 0, 2], [0, 1, 1, 1, 2], [True] * 5)
    assert walk([row], [[4, 6, 3, 6, 2]], 2) == ([[0, 1]], [6])
    assert walk([row], [[4, 3, 6, 3, 2]], 2) == ([[0, 2, 4]], [2])


def test_rows_do_not_mix():
    rng = random.Random(4)
    rows = [random_row(rng, 9, 4, 3) for _ in range(6)]
    target_ids = [random_target_ids(rng, row, 3, agreement=0.8) for row in rows]
    paths, bonus = walk(rows, target_ids, 4)
    for b in range(6):
        assert walk(rows[b : b + 1], target_ids[b : b + 1], 4) == ([paths[b]], [bonus[b]])


@pytest.mark.parametrize("num_depths", [1, 3, 7])
def test_a_spine_accepts_what_dflash_accepts(num_depths):
    """The same accept length and bonus as DFLASH's own function on the same block."""
    rng = random.Random(num_depths)
    spine = list(range(-1, num_depths))
    for _ in range(50):
        rows = [
            TreeRow(
                token_ids=[rng.randrange(3) for _ in spine],
                parents=spine,
                depths=list(range(num_depths + 1)),
                valid=[True] * (num_depths + 1),
            )
            for _ in range(4)
        ]
        target_ids = [random_target_ids(rng, row, 3, agreement=0.7) for row in rows]
        accept_lens, bonus = chain_walk()(
            candidates=torch.tensor([row.token_ids for row in rows]),
            target_predict=torch.tensor(target_ids),
        )
        paths, tree_bonus = walk(rows, target_ids, num_depths)
        assert paths == [list(range(n + 1)) for n in accept_lens.tolist()]
        assert tree_bonus == bonus.tolist()


def test_a_tree_that_holds_the_chain_accepts_no_less():
    """Per step, against the drafter's arg-max chain with the same target."""
    generator = torch.Generator().manual_seed(0)
    rng = random.Random(0)
    held = longer = 0
    for _ in range(40):
        logprobs, ids, roots = random_topk(generator, 6, 4, 8)
        rows = rows_of(build_ddtree_tree_from_topk(logprobs, ids, roots, 40))
        target_ids = [random_target_ids(rng, row, 300, agreement=0.9) for row in rows]
        paths, _ = walk(rows, target_ids, 4)
        for row, target, path, chain in zip(
            rows, target_ids, paths, ids[:, :, 0].tolist(), strict=True
        ):
            nodes = follow(row, chain)
            if len(nodes) <= len(chain):
                continue
            of_chain = chain_accept_len(chain, [target[node] for node in nodes])
            held += 1
            longer += len(path) - 1 > of_chain
            assert len(path) - 1 >= of_chain
    assert held > 100
    assert longer > 20


def test_no_value_is_read_on_the_host():
    tree = build_ddtree_tree_from_topk(
        torch.empty((3, 5, 8), device="meta"),
        torch.empty((3, 5, 8), dtype=torch.int64, device="meta"),
        torch.empty((3,), dtype=torch.int64, device="meta"),
        12,
    )
    paths, accept_lens, bonus = walk_ddtree(
        tree,
        compile_ddtree_ancestors(tree.parents, 5),
        torch.empty((3, 13), dtype=torch.int64, device="meta"),
        5,
    )
    assert (paths.shape, accept_lens.shape, bonus.shape) == ((3, 6), (3,), (3,))
    assert {paths.dtype, accept_lens.dtype, bonus.dtype} == {torch.int64}
