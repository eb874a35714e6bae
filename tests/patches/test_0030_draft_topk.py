# SPDX-License-Identifier: Apache-2.0
"""`compute_ddtree_topk`: log q over the full vocabulary, and only of real tokens."""

import pytest
import torch
from sglang.srt.layers.vocab_parallel_embedding import VocabParallelEmbedding
from sglang.srt.speculative.ddtree_draft import compute_ddtree_topk

HIDDEN_SIZE, VOCAB_SIZE, NUM_ADDED = 16, 100, 6


def make_head(dtype=torch.float32, seed=0) -> VocabParallelEmbedding:
    """An unsharded head with added vocabulary and padding rows, as the engine lays it out.

    The rows that are no tokens of the target hold large values: using one of them shows.
    """
    head = VocabParallelEmbedding(
        VOCAB_SIZE + NUM_ADDED,
        HIDDEN_SIZE,
        org_num_embeddings=VOCAB_SIZE,
        padding_size=64,
        params_dtype=dtype,
        enable_tp=False,
    )
    assert head.weight.shape[0] > VOCAB_SIZE + NUM_ADDED
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.fill_(50.0)
        head.weight[:VOCAB_SIZE] = torch.randn(VOCAB_SIZE, HIDDEN_SIZE, generator=generator)
    return head


def make_hidden(rows: int, seed=1) -> torch.Tensor:
    return torch.randn(rows, HIDDEN_SIZE, generator=torch.Generator().manual_seed(seed)).abs()


def topk(hidden, head, k):
    with torch.inference_mode():
        return compute_ddtree_topk(hidden, head, k)


def log_q(hidden, head) -> torch.Tensor:
    """log softmax in float64 of the logits as the head's dtype gives them."""
    weight = head.weight[:VOCAB_SIZE]
    with torch.inference_mode():
        logits = torch.matmul(hidden.to(weight.dtype), weight.T)
        return torch.log_softmax(logits.double(), dim=-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("k", [1, 7, VOCAB_SIZE])
@pytest.mark.parametrize("rows", [1, 21])
def test_values_and_order(dtype, k, rows):
    head, hidden = make_head(dtype), make_hidden(rows)
    logprobs, ids = topk(hidden, head, k)
    assert (logprobs.shape, logprobs.dtype) == ((rows, k), torch.float32)
    assert (ids.shape, ids.dtype) == ((rows, k), torch.int64)
    expected = log_q(hidden, head)
    best = expected.sort(dim=-1, descending=True).values[:, :k]
    torch.testing.assert_close(logprobs.double(), best, rtol=0, atol=2e-5)
    torch.testing.assert_close(logprobs.double(), expected.gather(1, ids), rtol=0, atol=2e-5)
    for row_logprobs, row_ids in zip(logprobs.tolist(), ids.tolist(), strict=True):
        pairs = [(-value, token) for value, token in zip(row_logprobs, row_ids, strict=True)]
        assert pairs == sorted(pairs)
        assert len(set(row_ids)) == k


def test_normalised_over_the_whole_vocabulary():
    """The mutant: a log-sum-exp of the top-k alone makes the k probabilities sum to 1."""
    head, hidden = make_head(), make_hidden(5)
    few, _ = topk(hidden, head, 3)
    assert (few.exp().sum(dim=-1) < 0.9).all()
    everything, _ = topk(hidden, head, VOCAB_SIZE)
    torch.testing.assert_close(everything.exp().sum(dim=-1), torch.ones(5), rtol=0, atol=1e-5)
    assert torch.equal(everything[:, :3], few)


def test_a_bfloat16_head_is_normalised_in_float32():
    """A log-sum-exp in bfloat16 is off by up to 1 %."""
    head, hidden = make_head(torch.bfloat16), make_hidden(8)
    logprobs, _ = topk(hidden, head, VOCAB_SIZE)
    total = logprobs.double().exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-5)


@pytest.mark.parametrize("k", [VOCAB_SIZE + 1, 10 * VOCAB_SIZE])
def test_k_larger_than_the_vocabulary(k):
    """Every token once, and neither padding rows nor added vocabulary."""
    _, ids = topk(make_hidden(4), make_head(), k)
    assert ids.shape == (4, VOCAB_SIZE)
    assert ids.sort(dim=-1).values.tolist() == [list(range(VOCAB_SIZE))] * 4


def test_rows_that_are_no_tokens_change_nothing():
    head, hidden = make_head(), make_hidden(4)
    before = topk(hidden, head, 9)
    with torch.no_grad():
        head.weight[VOCAB_SIZE:] = torch.nan
    after = topk(hidden, head, 9)
    assert torch.equal(before[0], after[0])
    assert torch.equal(before[1], after[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equal_probabilities_come_in_order_of_token_ids(dtype):
    """Tokens 90, 17, 4 and 55 share a row of the head, and so does every other pair."""
    head = make_head(dtype)
    with torch.no_grad():
        head.weight[1:VOCAB_SIZE:2] = head.weight[0:VOCAB_SIZE:2]
        head.weight[[90, 17, 4, 55]] = 2.0  # the most probable: hidden states are positive
    logprobs, ids = topk(make_hidden(6), head, VOCAB_SIZE)
    assert ids[:, :4].tolist() == [[4, 17, 55, 90]] * 6
    for row_logprobs, row_ids in zip(logprobs.tolist(), ids.tolist(), strict=True):
        pairs = [(-value, token) for value, token in zip(row_logprobs, row_ids, strict=True)]
        assert pairs == sorted(pairs)
        assert len({value for value, _ in pairs}) < len(pairs) - 40


def test_many_rows_equal_one_row_at_a_time():
    """The logits of many rows are made in pieces; integer weights make every sum exact."""
    head = make_head()
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        head.weight[:VOCAB_SIZE] = torch.randint(
            -3, 4, (VOCAB_SIZE, HIDDEN_SIZE), generator=generator
        ).float()
    hidden = torch.randint(-3, 4, (600, HIDDEN_SIZE), generator=generator).float()
    logprobs, ids = topk(hidden, head, 5)
    for row in (0, 255, 256, 511, 512, 599):
        alone = topk(hidden[row : row + 1], head, 5)
        torch.testing.assert_close(logprobs[row : row + 1], alone[0], rtol=0, atol=1e-6)
        assert logprobs[row].tolist() == sorted(logprobs[row].tolist(), reverse=True)
        logits = head.weight[:VOCAB_SIZE].detach() @ hidden[row]
        assert logits[ids[row]].tolist() == logits.sort(descending=True).values[:5].tolist()


def test_nan_hidden_states_give_nan_and_not_a_guess():
    hidden = make_hidden(3)
    hidden[1] = torch.nan
    logprobs, ids = topk(hidden, make_head(), 4)
    assert logprobs.isnan().all(dim=1).tolist() == [False, True, False]
    assert ((ids >= 0) & (ids < VOCAB_SIZE)).all()
