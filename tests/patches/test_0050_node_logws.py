# SPDX-License-Identifier: Apache-2.0
"""`node_logws` is the summed log q of each node's path."""

import math

import torch
from ddtree_rows import random_topk
from oracles.masks import path_to_root
from sglang.srt.speculative.ddtree_utils import build_ddtree_tree_from_topk


def test_weight_of_a_path_is_its_summed_log_q():
    logprobs, ids, roots = random_topk(torch.Generator().manual_seed(0), 5, 6, 8)
    tree = build_ddtree_tree_from_topk(logprobs, ids, roots, 40)
    assert tree.node_logws.dtype == torch.float32
    for row in range(5):
        log_q = [
            dict(zip(ids[row, d].tolist(), logprobs[row, d].double().tolist(), strict=True))
            for d in range(6)
        ]
        parents = tree.parents[row].tolist()
        for node, weight in enumerate(tree.node_logws[row].tolist()):
            path = path_to_root(parents, node)[:-1]
            expected = math.fsum(
                log_q[int(tree.depths[row, n]) - 1][int(tree.token_ids[row, n])] for n in path
            )
            assert math.isclose(weight, expected, abs_tol=1e-5)


def test_root_is_zero_padding_is_minus_infinity_and_nodes_descend():
    """A budget above the number of paths; candidates of probability zero."""
    logprobs = torch.log(torch.tensor([[[0.75, 0.25, 0.0]] * 2]))
    ids = torch.tensor([[[4, 5, 6]] * 2])
    tree = build_ddtree_tree_from_topk(logprobs, ids, torch.tensor([1]), 9)
    weights = tree.node_logws[0]
    assert weights[0] == 0.0
    assert torch.equal(weights.isneginf(), ~tree.valid[0])
    assert tree.valid[0].sum() == 1 + 2 + 4
    assert (weights[:-1] >= weights[1:]).all()
