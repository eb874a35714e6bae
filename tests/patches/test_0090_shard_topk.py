# SPDX-License-Identifier: Apache-2.0
"""The drafter's top-k over a head that is sharded: that of the whole vocabulary, on every rank.

The ranks run in one process: first every rank's half of the exchange, then every rank's answer.
The reference is a full-vocabulary sort in float64 of the logits that the shards have.
"""

from types import SimpleNamespace

import pytest
import torch
from sglang.srt.layers import vocab_parallel_embedding
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from sglang.srt.speculative import ddtree_draft, ddtree_tensor_parallel
from sglang.srt.speculative.ddtree_draft import compute_ddtree_topk

HIDDEN_SIZE = 16
ROWS = 7


def make_shards(
    monkeypatch, tp_size: int, weight: torch.Tensor, num_added: int = 6
) -> list[VocabParallelEmbedding]:
    """The head of each rank, as the engine lays it out: `weight` [V, hidden], added, padding.

    The rows that are no tokens of the target hold large values: using one of them shows.
    """
    vocab_size, shards = weight.shape[0], []
    monkeypatch.setattr(
        vocab_parallel_embedding, "get_tensor_model_parallel_world_size", lambda: tp_size
    )
    for rank in range(tp_size):
        monkeypatch.setattr(
            vocab_parallel_embedding, "get_tensor_model_parallel_rank", lambda rank=rank: rank
        )
        shard = VocabParallelEmbedding(
            vocab_size + num_added,
            HIDDEN_SIZE,
            org_num_embeddings=vocab_size,
            padding_size=64,
            params_dtype=weight.dtype,
        )
        of = shard.shard_indices
        with torch.no_grad():
            shard.weight.fill_(50.0)
            shard.weight[: of.num_org_elements] = weight[
                of.org_vocab_start_index : of.org_vocab_end_index
            ]
        shards.append(shard)
    return shards


class Ranks:
    """A tensor-parallel group whose ranks take turns: `packed` is what each has sent."""

    def __init__(self, world_size: int):
        self.world_size, self.packed = world_size, []

    def all_gather(self, packed: torch.Tensor, dim: int) -> torch.Tensor:
        assert dim == 0
        if len(self.packed) < self.world_size:
            self.packed.append(packed.clone())
            return packed.repeat(self.world_size, 1)
        return torch.cat(self.packed, dim)


def on_every_rank(monkeypatch, hidden, shards, k) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """`compute_ddtree_topk` on each rank; twice, because each needs what the others send."""
    ranks = Ranks(len(shards))
    monkeypatch.setattr(ddtree_tensor_parallel, "get_tp_group", lambda: ranks)
    with torch.inference_mode():
        for shard in shards:
            compute_ddtree_topk(hidden, shard, k)
        return [compute_ddtree_topk(hidden, shard, k) for shard in shards]


def random_weight(vocab_size: int, dtype=torch.float32, seed=0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(vocab_size, HIDDEN_SIZE, generator=generator).to(dtype)


def random_hidden(seed=1) -> torch.Tensor:
    return torch.randn(ROWS, HIDDEN_SIZE, generator=torch.Generator().manual_seed(seed)).abs()


def full_logits(hidden: torch.Tensor, shards) -> torch.Tensor:
    """The logits of all real tokens, in the order of their ids: float32 [N, V]."""
    of_shards = []
    for shard in shards:
        weight = shard.weight[: shard.shard_indices.num_org_elements].detach()
        of_shards.append(torch.matmul(hidden.to(weight.dtype), weight.T).float())
    return torch.cat(of_shards, dim=1)


def assert_tokens(ids, logits, k) -> None:
    """The ids are the best k, in order, of NaN-free logits [N, V]."""
    vocab_size = logits.shape[1]
    k = min(k, vocab_size)
    assert (ids.shape, ids.dtype) == ((logits.shape[0], k), torch.int64)
    assert ((ids >= 0) & (ids < vocab_size)).all(), "padding or added vocabulary was proposed"
    assert all(len(set(row)) == k for row in ids.tolist())
    assert torch.equal(logits.gather(1, ids), logits.sort(dim=1, descending=True).values[:, :k])
    for row_logits, row_ids in zip(logits.gather(1, ids).tolist(), ids.tolist(), strict=True):
        pairs = [(-value, token) for value, token in zip(row_logits, row_ids, strict=True)]
        assert pairs == sorted(pairs)


def assert_top_k(logprobs, ids, logits, k) -> None:
    """The tokens, and log q in float64 over the whole vocabulary."""
    assert_tokens(ids, logits, k)
    assert (logprobs.shape, logprobs.dtype) == (ids.shape, torch.float32)
    expected = torch.log_softmax(logits.double(), dim=-1).gather(1, ids)
    torch.testing.assert_close(logprobs.double(), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("k", [1, 31, 10_000])
@pytest.mark.parametrize("vocab_size", [65, 128, 257, 1000])
@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_equal_to_the_whole_vocabulary(monkeypatch, tp_size, vocab_size, k, dtype):
    """Vocabularies that fill the shards, that leave the last ones short, or empty."""
    shards = make_shards(monkeypatch, tp_size, random_weight(vocab_size, dtype))
    if (vocab_size, tp_size) == (65, 4):
        assert shards[-1].shard_indices.num_org_elements == 0
    hidden = random_hidden()
    answers = on_every_rank(monkeypatch, hidden, shards, k)
    assert_top_k(*answers[0], full_logits(hidden, shards), k)
    for logprobs, ids in answers[1:]:
        assert torch.equal(logprobs, answers[0][0])
        assert torch.equal(ids, answers[0][1])


@pytest.mark.parametrize("tp_size", [2, 4])
def test_equal_to_one_rank(monkeypatch, tp_size):
    """Integer weights make every sum exact, so that one rank and many have the same logits."""
    generator = torch.Generator().manual_seed(2)
    weight = torch.randint(-3, 4, (300, HIDDEN_SIZE), generator=generator).float()
    hidden = torch.randint(-3, 4, (ROWS, HIDDEN_SIZE), generator=generator).float()
    (alone,) = on_every_rank(monkeypatch, hidden, make_shards(monkeypatch, 1, weight), 300)
    answers = on_every_rank(monkeypatch, hidden, make_shards(monkeypatch, tp_size, weight), 300)
    assert len(set(alone[0][0].tolist())) < 150  # many ties
    for logprobs, ids in answers:
        assert torch.equal(ids, alone[1])
        torch.testing.assert_close(logprobs, alone[0], rtol=0, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_ties_across_shards_come_in_order_of_token_ids(monkeypatch, tp_size, dtype):
    weight = random_weight(256, dtype)
    weight[[250, 3, 130, 66, 129]] = 2.0  # the most probable: hidden states are positive
    shards = make_shards(monkeypatch, tp_size, weight)
    for logprobs, ids in on_every_rank(monkeypatch, random_hidden(), shards, 8):
        assert ids[:, :5].tolist() == [[3, 66, 129, 130, 250]] * ROWS
        assert (logprobs[:, :5] == logprobs[:, :1]).all()


@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_impossible_tokens(monkeypatch, tp_size):
    """Logits of -inf: possible tokens first, then real ids, and never an empty place."""
    weight = random_weight(100)
    possible = [5, 70, 99]
    weight[:, 0] = float("-inf")
    weight[possible, 0] = 0.0
    shards = make_shards(monkeypatch, tp_size, weight)
    for logprobs, ids in on_every_rank(monkeypatch, random_hidden(), shards, 100):
        assert ids.sort(dim=1).values.tolist() == [list(range(100))] * ROWS
        assert ids[:, :3].sort(dim=1).values.tolist() == [possible] * ROWS
        assert ids[:, 3:].tolist() == [[i for i in range(100) if i not in possible]] * ROWS
        assert logprobs[:, 3:].isneginf().all()
        total = logprobs.double().exp().sum(dim=1)
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-5)


@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_nan_hidden_states_give_nan_and_not_a_guess(monkeypatch, tp_size):
    hidden = random_hidden()
    hidden[1] = torch.nan
    shards = make_shards(monkeypatch, tp_size, random_weight(100))
    for logprobs, ids in on_every_rank(monkeypatch, hidden, shards, 100):
        assert logprobs.isnan().any(dim=1).tolist() == [row == 1 for row in range(ROWS)]
        assert logprobs[1].isnan().all()
        assert ids.sort(dim=1).values.tolist() == [list(range(100))] * ROWS


@pytest.mark.parametrize("tp_size", [2, 4])
def test_large_logits_do_not_overflow(monkeypatch, tp_size):
    shards = make_shards(monkeypatch, tp_size, 100 * random_weight(200))
    hidden = 10 * random_hidden()
    logits = full_logits(hidden, shards)
    assert logits.max() > 1000
    for logprobs, ids in on_every_rank(monkeypatch, hidden, shards, 9):
        expected = torch.log_softmax(logits.double(), dim=-1).gather(1, ids)
        torch.testing.assert_close(logprobs.double(), expected, rtol=1e-6, atol=1e-6)


def test_one_collective_for_many_rows(monkeypatch):
    """However many pieces the logits are made in, the ranks trade once, and integers."""
    monkeypatch.setattr(ddtree_draft, "_CHUNK_ROWS", 2)
    shards, hidden = make_shards(monkeypatch, 2, random_weight(300)), random_hidden()
    answers = on_every_rank(monkeypatch, hidden, shards, 31)
    assert_top_k(*answers[0], full_logits(hidden, shards), 31)
    ranks = ddtree_tensor_parallel.get_tp_group()
    assert [tuple(packed.shape) for packed in ranks.packed] == [(ROWS, 2 * 31 + 1)] * 2
    assert {packed.dtype for packed in ranks.packed} == {torch.int32}


def test_one_rank_asks_no_group(monkeypatch):
    (shard,) = make_shards(monkeypatch, 1, random_weight(100))

    def no_group():
        raise AssertionError("a collective on a single rank")

    monkeypatch.setattr(ddtree_tensor_parallel, "get_tp_group", no_group)
    _, ids = compute_ddtree_topk(random_hidden(), shard, 5)
    assert ids.shape == (ROWS, 5)


# --- mutants: what the comparison above must not let through


def of_first_shard(packed, k):
    logits, ids, _ = ddtree_tensor_parallel.merge_shard_topk(packed, k)
    return logits, ids, packed[0, :, 2 * k :].view(torch.float32)


def of_candidates(packed, k):
    logits, ids, _ = ddtree_tensor_parallel.merge_shard_topk(packed, k)
    return logits, ids, logits.logsumexp(dim=1, keepdim=True)


def greatest_of_shards(packed, k):
    logits, ids, _ = ddtree_tensor_parallel.merge_shard_topk(packed, k)
    return logits, ids, packed[:, :, 2 * k].view(torch.float32).amax(dim=0)[:, None]


def in_order_of_ranks(packed, k):
    """Merged without regard to ids, from the last rank to the first."""
    rows = packed.flip(0).transpose(0, 1)
    logits = rows[..., :k].reshape(ROWS, -1).view(torch.float32)
    logits = logits.sort(dim=1, descending=True, stable=True)
    ids = rows[..., k : 2 * k].reshape(ROWS, -1).long().gather(1, logits.indices)
    log_sum_exp = ddtree_tensor_parallel.merge_shard_topk(packed, k)[2]
    return logits.values[:, :k], ids[:, :k], log_sum_exp


@pytest.mark.parametrize(
    "merge", [of_first_shard, of_candidates, greatest_of_shards, in_order_of_ranks]
)
def test_a_wrong_merge_is_caught(monkeypatch, merge):
    """A log-sum-exp of one shard, of the top-k or a maximum; ties by rank instead of by id."""
    # Flat enough that five tokens are a small part of the whole.
    weight, hidden = random_weight(256), 0.1 * random_hidden()
    weight[[3, 130]] = 2.0
    shards = make_shards(monkeypatch, 2, weight)

    def gather(logits, token_ids, log_sum_exp, k):
        packed = ddtree_tensor_parallel.pack_shard_topk(logits, token_ids, log_sum_exp, k)
        group = ddtree_tensor_parallel.get_tp_group()
        return merge(group.all_gather(packed, dim=0).view(2, *packed.shape), k)

    monkeypatch.setattr(ddtree_draft, "gather_shard_topk", gather)
    answers = on_every_rank(monkeypatch, hidden, shards, 5)
    with pytest.raises(AssertionError):
        assert_top_k(*answers[0], full_logits(hidden, shards), 5)


@pytest.mark.parametrize("added", [False, True], ids=["padding", "added vocabulary"])
def test_reading_rows_that_are_no_tokens_is_caught(monkeypatch, added):
    """The mutant: a rank takes its padding rows, or its added vocabulary too, for tokens."""
    shards = make_shards(monkeypatch, 2, random_weight(100))
    hidden = random_hidden()
    logits = full_logits(hidden, shards)
    for shard in shards:
        of = shard.shard_indices
        shard.shard_indices = SimpleNamespace(
            num_org_elements=of.num_org_elements_padded + added * of.num_added_elements,
            org_vocab_start_index=of.org_vocab_start_index,
        )
    _, ids = on_every_rank(monkeypatch, hidden, shards, 5)[0]
    with pytest.raises(AssertionError):
        assert_tokens(ids, logits, 5)


def test_proposing_an_empty_place_is_caught(monkeypatch):
    """The mutant: an empty place that sorts before the real tokens that are as unlikely."""
    weight = random_weight(100)
    weight[:, 0] = float("-inf")
    shards, hidden = make_shards(monkeypatch, 2, weight), random_hidden()
    logits = full_logits(hidden, shards)
    assert_tokens(on_every_rank(monkeypatch, hidden, shards, 100)[0][1], logits, 100)
    monkeypatch.setattr(ddtree_tensor_parallel, "_NO_TOKEN", -1)
    _, ids = on_every_rank(monkeypatch, hidden, shards, 100)[0]
    with pytest.raises(AssertionError, match="was proposed"):
        assert_tokens(ids, logits, 100)
