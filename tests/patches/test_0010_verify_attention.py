# SPDX-License-Identifier: Apache-2.0
"""torch_native's TARGET_VERIFY attention against attention computed by the definition."""

import pytest
import torch
from oracles.attention import verify_attention
from oracles.masks import ancestor_mask, flat_tree_mask, path_to_root
from sglang.srt.layers.attention.torch_native_verify import run_sdpa_target_verify

NUM_SLOTS = 64
Q_LEN = 5
# Ragged, in an order that no sorting would give, with an empty prefix in the middle.
PREFIX_LENS = [7, 0, 12, 1]
# Different shapes, so that swapped requests would show. In the third, node 2 stands two depths
# above node 4, and its index is one less than node 4's depth: a window of 1 hides it if keys
# are placed by depth, and shows it if they are placed by index.
TREES = [[-1, 0, 0, 1, 3], [-1, 0, 1, 2, 2], [-1, 0, 0, 2, 3], [-1, 0, 1, 0, -1]]


class Case:
    """Random queries, a KV cache with the slots of each request scattered over it."""

    def __init__(self, *, num_heads=4, num_kv_heads=2, head_dim=8, v_head_dim=8, seed=0):
        generator = torch.Generator().manual_seed(seed)
        bs = len(PREFIX_LENS)
        self.query = torch.randn(bs * Q_LEN, num_heads, head_dim, generator=generator)
        self.k_cache = torch.randn(NUM_SLOTS, num_kv_heads, head_dim, generator=generator)
        self.v_cache = torch.randn(NUM_SLOTS, num_kv_heads, v_head_dim, generator=generator)
        self.req_pool_indices = torch.tensor([3, 1, 5, 2])
        # A slot that no request owns fills the rest of the table: reading it shows.
        self.req_to_token = torch.full((6, 20), NUM_SLOTS - 1, dtype=torch.int32)
        self.k_cache[-1] = self.v_cache[-1] = 1e4
        kv_lens = [prefix + Q_LEN for prefix in PREFIX_LENS]
        slots = torch.randperm(NUM_SLOTS - 1, generator=generator)[: sum(kv_lens)]
        self.slots = slots.split(kv_lens)
        for pool_index, own in zip(self.req_pool_indices, self.slots, strict=True):
            self.req_to_token[pool_index, : len(own)] = own.to(torch.int32)
        self.depths = [[len(path_to_root(tree, n)) - 1 for n in range(Q_LEN)] for tree in TREES]

    def positions(self, of_tree: bool) -> torch.Tensor:
        offsets = self.depths if of_tree else [list(range(Q_LEN))] * len(PREFIX_LENS)
        return torch.tensor(
            [p + o for p, row in zip(PREFIX_LENS, offsets, strict=True) for o in row]
        )

    def run(self, *, kind, window=-1, scaling=0.3, positions=None, custom_mask=None):
        output = torch.full((*self.query.shape[:2], self.v_cache.shape[2]), torch.nan)
        if kind == "tree" and custom_mask is None:
            custom_mask = torch.tensor(flat_tree_mask(TREES, PREFIX_LENS))
        run_sdpa_target_verify(
            query=self.query,
            output=output,
            k_cache=self.k_cache,
            v_cache=self.v_cache,
            req_to_token=self.req_to_token,
            req_pool_indices=self.req_pool_indices,
            prefix_lens=torch.tensor(PREFIX_LENS),
            q_len=Q_LEN,
            positions=self.positions(kind == "tree") if positions is None else positions,
            custom_mask=custom_mask,
            causal=kind != "non-causal",
            sliding_window_size=window,
            scaling=scaling,
            enable_gqa=self.query.shape[1] != self.k_cache.shape[1],
        )
        return output

    def expected(self, *, kind, window=-1, scaling=0.3) -> torch.Tensor:
        out = []
        for b, prefix in enumerate(PREFIX_LENS):
            offsets = self.depths[b] if kind == "tree" else range(Q_LEN)
            sees = {
                "causal": [[j <= i for j in range(Q_LEN)] for i in range(Q_LEN)],
                "non-causal": [[True] * Q_LEN] * Q_LEN,
                "tree": ancestor_mask(TREES[b]),
            }[kind]
            key_positions = list(range(prefix)) + [prefix + o for o in offsets]

            def allowed(i, j, sees=sees, prefix=prefix, key_positions=key_positions):
                near = window < 0 or key_positions[prefix + i] - key_positions[j] <= window
                return near and (j < prefix or sees[i][j - prefix])

            out += verify_attention(
                self.query[b * Q_LEN : (b + 1) * Q_LEN].double().tolist(),
                self.k_cache[self.slots[b]].double().tolist(),
                self.v_cache[self.slots[b]].double().tolist(),
                allowed,
                scaling,
            )
        return torch.tensor(out, dtype=torch.float64)


def assert_attends(case: Case, **how) -> None:
    torch.testing.assert_close(case.run(**how).double(), case.expected(**how), rtol=0, atol=1e-5)


@pytest.mark.parametrize("window", [-1, 1, 3, 100])
@pytest.mark.parametrize("kind", ["causal", "non-causal", "tree"])
def test_masks_and_windows(kind, window):
    assert_attends(Case(), kind=kind, window=window)


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(1, 1), (4, 4), (4, 1), (6, 3)])
def test_grouped_query_heads(num_heads, num_kv_heads):
    assert_attends(Case(num_heads=num_heads, num_kv_heads=num_kv_heads), kind="tree")


@pytest.mark.parametrize(("head_dim", "v_head_dim"), [(8, 4), (4, 12)])
@pytest.mark.parametrize("kind", ["causal", "tree"])
def test_value_dim_differs_from_key_dim(kind, head_dim, v_head_dim):
    assert_attends(Case(head_dim=head_dim, v_head_dim=v_head_dim), kind=kind)


@pytest.mark.parametrize("scaling", [0.05, 1.0])
def test_scaling(scaling):
    assert_attends(Case(), kind="tree", scaling=scaling)


def test_a_window_counts_depths_and_not_indices():
    """The mutant: positions by index put distant siblings outside each other's window."""
    case = Case()
    by_index = case.run(kind="tree", window=1, positions=case.positions(of_tree=False))
    assert not torch.allclose(by_index, case.run(kind="tree", window=1))


def test_requests_do_not_swap_masks():
    """Two trees of the same size in one batch, exchanged, give other outputs."""
    case = Case()
    swapped = [TREES[2], TREES[1], TREES[0], TREES[3]]
    exchanged = case.run(
        kind="tree", custom_mask=torch.tensor(flat_tree_mask(swapped, PREFIX_LENS))
    )
    differs = (exchanged != case.run(kind="tree")).flatten(1).any(1).view(-1, Q_LEN).any(1)
    assert differs.tolist() == [True, False, True, False]


def test_a_request_does_not_depend_on_its_neighbours():
    case = Case()
    alone = torch.empty(Q_LEN, 4, 8)
    rows = slice(2 * Q_LEN, 3 * Q_LEN)
    run_sdpa_target_verify(
        query=case.query[rows],
        output=alone,
        k_cache=case.k_cache,
        v_cache=case.v_cache,
        req_to_token=case.req_to_token,
        req_pool_indices=case.req_pool_indices[2:3],
        prefix_lens=torch.tensor(PREFIX_LENS[2:3]),
        q_len=Q_LEN,
        positions=case.positions(of_tree=True)[rows],
        custom_mask=torch.tensor(flat_tree_mask(TREES[2:3], PREFIX_LENS[2:3])),
        causal=True,
        sliding_window_size=-1,
        scaling=0.3,
        enable_gqa=True,
    )
    assert torch.equal(alone, case.run(kind="tree")[rows])


@pytest.mark.parametrize("change", [-1, 1])
def test_a_mask_of_the_wrong_size_is_refused(change):
    flat = flat_tree_mask(TREES, PREFIX_LENS)
    wrong = torch.ones(len(flat) + change, dtype=torch.bool)
    with pytest.raises(ValueError, match=rf"must have {len(flat)} entries .*got {len(wrong)}"):
        Case().run(kind="tree", custom_mask=wrong)


def test_cache_dtype_may_differ_from_the_query_dtype():
    case = Case()
    case.k_cache, case.v_cache = case.k_cache.to(torch.float16), case.v_cache.to(torch.float16)
    assert_attends(case, kind="tree")
