# SPDX-License-Identifier: Apache-2.0
"""From the drafter's hidden states to a verify input, and from it to a model forward."""

from types import SimpleNamespace

import pytest
import torch
from ddtree_rows import rows_of
from oracles.masks import flat_tree_mask
from oracles.trees import heap_tree
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative import dflash_worker
from sglang.srt.speculative.dflash_info import DDTreeVerifyInput

BS, BLOCK_SIZE, BUDGET, HIDDEN_SIZE, VOCAB_SIZE = 3, 5, 9, 8, 40
PREFIX_LENS = [6, 2, 11]
ROOTS = [7, 30, 12]
WIDTH = BUDGET + 1


@pytest.fixture(scope="module")
def head() -> VocabParallelEmbedding:
    head = VocabParallelEmbedding(VOCAB_SIZE, HIDDEN_SIZE, enable_tp=False)
    with torch.no_grad():
        head.weight.normal_(generator=torch.Generator().manual_seed(0))
    return head


@pytest.fixture(scope="module")
def draft_hidden() -> torch.Tensor:
    return torch.randn(BS, BLOCK_SIZE, HIDDEN_SIZE, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def verify_input(head, draft_hidden) -> DDTreeVerifyInput:
    worker = SimpleNamespace(block_size=BLOCK_SIZE, ddtree_budget=BUDGET)
    return dflash_worker.DFlashWorker._build_ddtree_verify_input(
        worker,
        draft_hidden=draft_hidden,
        lm_head=head,
        root_token_ids=torch.tensor(ROOTS),
        prefix_lens=torch.tensor(PREFIX_LENS),
    )


def spelt_paths(row) -> list[tuple[int, ...]]:
    """The tokens from the root's child down to each node but the root, in node order."""
    paths = [()]
    for node in range(1, len(row.parents)):
        paths.append(paths[row.parents[node]] + (row.token_ids[node],))
    return paths[1:]


def test_the_tree_is_that_of_the_drafted_positions(verify_input, head, draft_hidden):
    """Position 0 of the block belongs to the root; the drafter's guesses start at 1."""
    logits = (draft_hidden[:, 1:] @ head.weight[:VOCAB_SIZE].T).detach()
    logprobs, ids = torch.log_softmax(logits, dim=-1).sort(dim=-1, descending=True)
    for b, row in enumerate(rows_of(verify_input.tree)):
        expected = [
            tuple(int(ids[b, depth, rank]) for depth, rank in enumerate(path))
            for path in heap_tree(logprobs[b].tolist(), BUDGET)
        ]
        assert spelt_paths(row) == expected
        assert row.token_ids[0] == ROOTS[b]


def test_widths_tokens_and_positions(verify_input):
    tree = verify_input.tree
    assert verify_input.draft_token_num == WIDTH
    assert verify_input.num_tokens_per_batch == WIDTH
    assert verify_input.get_spec_adjust_token_coefficient() == (WIDTH, WIDTH)
    assert verify_input.max_depth == BLOCK_SIZE - 1
    assert verify_input.topk > 1  # what backends ask to tell a tree from a chain
    assert verify_input.draft_token.tolist() == tree.token_ids.flatten().tolist()
    assert verify_input.positions.tolist() == [
        prefix + depth
        for prefix, depths in zip(PREFIX_LENS, tree.depths.tolist(), strict=True)
        for depth in depths
    ]


def make_batch() -> SimpleNamespace:
    allocator = TokenToKVPoolAllocator(200, torch.float32, "cpu", kvcache=None, need_sort=False)
    pool = ReqToTokenPool(BS + 1, 64, "cpu", enable_memory_saver=False)
    tree_cache = SimpleNamespace(
        token_to_kv_pool_allocator=allocator,
        is_chunk_cache=lambda: True,
        evict=lambda *args, **kwargs: None,
    )
    return SimpleNamespace(
        forward_mode=ForwardMode.DECODE,
        tree_cache=tree_cache,
        device="cpu",
        batch_size=lambda: BS,
        seq_lens=torch.tensor(PREFIX_LENS),
        seq_lens_cpu=torch.tensor(PREFIX_LENS),
        req_pool_indices=torch.tensor([3, 1, 2]),
        req_to_token_pool=pool,
        token_to_kv_pool_allocator=allocator,
    )


def test_prepare_for_verify_allocates_and_compiles_the_mask(verify_input):
    batch = make_batch()
    free = batch.token_to_kv_pool_allocator.available_size()
    verify_input.prepare_for_verify(batch, page_size=1)
    assert batch.token_to_kv_pool_allocator.available_size() == free - BS * WIDTH
    assert batch.input_ids.tolist() == verify_input.draft_token.tolist()
    slots = batch.out_cache_loc.view(BS, WIDTH).tolist()
    for b, pool_index in enumerate(batch.req_pool_indices.tolist()):
        row = batch.req_to_token_pool.req_to_token[pool_index]
        assert row[PREFIX_LENS[b] : PREFIX_LENS[b] + WIDTH].tolist() == slots[b]
    parents = verify_input.tree.parents.tolist()
    assert verify_input.custom_mask.tolist() == flat_tree_mask(parents, PREFIX_LENS)


@pytest.mark.until("0060")
def test_a_sampling_batch_is_never_verified_as_greedy(verify_input):
    """The scheduler refuses such requests; should one slip through, nothing is committed."""
    requests = [SimpleNamespace(sampling_params=SamplingParams(temperature=t)) for t in (0, 0.7)]
    batch = SimpleNamespace(forward_mode=ForwardMode.TARGET_VERIFY, reqs=requests)
    logits_output = SimpleNamespace(next_token_logits=torch.zeros(BS * WIDTH, VOCAB_SIZE))
    with pytest.raises(RuntimeError, match="DDTREE"):
        verify_input.verify(batch=batch, logits_output=logits_output, page_size=1)


class DraftWorkerReached(Exception):
    """Stops DFlashWorker where it has decided about the draft's server arguments."""


@pytest.mark.parametrize(("budget", "expected"), [(BUDGET, BLOCK_SIZE), (None, WIDTH)])
def test_the_draft_runner_works_in_blocks(monkeypatch, budget, expected):
    """Its graphs and attention are as wide as the block; DFLASH's arguments pass unchanged."""
    seen = {}

    def draft_worker(*, server_args, **_):
        seen["num_draft_tokens"] = server_args.speculative_num_draft_tokens
        raise DraftWorkerReached

    monkeypatch.setattr(dflash_worker, "TpModelWorker", draft_worker)
    monkeypatch.setattr(dflash_worker, "get_global_server_args", lambda: None)
    monkeypatch.setattr(dflash_worker, "check_ddtree_model_runner", lambda runner: None)
    server_args = object.__new__(ServerArgs)  # field defaults, nothing resolved
    server_args.page_size = 1
    server_args.attention_backend = "triton"
    server_args.speculative_num_draft_tokens = WIDTH
    server_args.speculative_dflash_block_size = BLOCK_SIZE
    server_args.speculative_ddtree_budget = budget
    target_worker = SimpleNamespace(
        device="cpu",
        get_memory_pool=lambda: (None, None),
        model_runner=SimpleNamespace(
            model_config=SimpleNamespace(context_len=128), memory_pool_config=None
        ),
    )
    with pytest.raises(DraftWorkerReached):
        dflash_worker.DFlashWorker(server_args, 0, 0, None, 0, 0, 0, 0, target_worker)
    assert seen["num_draft_tokens"] == expected
    assert server_args.speculative_num_draft_tokens == WIDTH
