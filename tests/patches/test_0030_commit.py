# SPDX-License-Identifier: Apache-2.0
"""`commit_ddtree_paths` on real requests and pools: tokens, KV slots, lengths, hidden states."""

import dataclasses
import random
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from ddtree_rows import random_target_ids, result_of
from oracles.trees import TreeRow, random_row
from oracles.walk import greedy_walk
from sglang.srt.managers.schedule_batch import (
    FINISH_ABORT,
    FINISH_LENGTH,
    FINISH_MATCHED_STR,
    FINISH_MATCHED_TOKEN,
    Req,
)
from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.ddtree_utils import compile_ddtree_ancestors
from sglang.srt.speculative.ddtree_verify import commit_ddtree_paths, walk_ddtree
from support.upstream import accept_histogram, accepted_drafts

NUM_SLOTS, CONTEXT_LEN, FEATURES, VOCAB_SIZE = 400, 64, 3, 50
EOS = 49


class Letters:
    """A tokenizer in which token 0 is "a", token 1 is "b" and so on."""

    eos_token_id = EOS
    additional_stop_token_ids = None

    def decode(self, token_ids, **_):
        return "".join(chr(ord("a") + token) for token in token_ids)

    def encode(self, text, **_):
        return [ord(letter) - ord("a") for letter in text]


def make_request(prompt_len: int, *, require_reasoning=False, **sampling) -> Req:
    """A request in the middle of decoding: one token is out, its KV row is not yet there."""
    params = SamplingParams(temperature=0, **{"max_new_tokens": 100} | sampling)
    params.normalize(Letters())
    req = Req(
        rid=str(prompt_len),
        origin_input_text="",
        origin_input_ids=list(range(prompt_len)),
        sampling_params=params,
        eos_token_ids={EOS},
        vocab_size=VOCAB_SIZE,
        require_reasoning=require_reasoning,
    )
    req.tokenizer = Letters()
    req.kv_committed_len = req.kv_allocated_len = prompt_len
    return req


class Step:
    """One verify step up to its commit, and what the commit must leave behind."""

    def __init__(self, reqs, rows, target_ids, max_depth):
        self.reqs, self.rows, self.target_ids, self.max_depth = reqs, rows, target_ids, max_depth
        self.bs, self.width = len(rows), len(rows[0].parents)
        self.prefix_lens = [req.kv_committed_len for req in reqs]
        for req, row in zip(reqs, rows, strict=True):
            req.output_ids.append(row.token_ids[0])

        generator = torch.Generator().manual_seed(self.bs)
        self.allocator = TokenToKVPoolAllocator(
            NUM_SLOTS, torch.float32, "cpu", kvcache=None, need_sort=False
        )
        # Slots as after long use: in no order, and some held by others.
        self.allocator.free_pages = self.allocator.free_pages[
            torch.randperm(NUM_SLOTS, generator=generator)
        ]
        self.others = self.allocator.alloc(20).tolist()
        self.pool = ReqToTokenPool(self.bs + 2, CONTEXT_LEN, "cpu", enable_memory_saver=False)
        self.req_pool_indices = torch.randperm(self.bs + 2, generator=generator)[: self.bs] + 1
        for pool_index, prefix in zip(self.req_pool_indices, self.prefix_lens, strict=True):
            self.pool.req_to_token[pool_index, :prefix] = self.allocator.alloc(prefix)
        self.slots = self.allocator.alloc(self.bs * self.width)
        for b, prefix in enumerate(self.prefix_lens):  # as prepare_for_verify leaves it
            self.pool.req_to_token[self.req_pool_indices[b], prefix : prefix + self.width] = (
                self.slots.view(self.bs, -1)[b]
            )
        self.table_before = self.pool.req_to_token.clone()
        self.hidden = torch.randn(self.bs * self.width, FEATURES, generator=generator)
        self.logits_output = SimpleNamespace(hidden_states=self.hidden.clone())
        self.batch = SimpleNamespace(
            reqs=reqs,
            model_config=SimpleNamespace(think_end_id=7),
            out_cache_loc=self.slots.clone(),
            token_to_kv_pool_allocator=self.allocator,
            req_to_token_pool=self.pool,
            req_pool_indices=self.req_pool_indices,
            seq_lens=torch.tensor(self.prefix_lens),
            seq_lens_cpu=torch.tensor(self.prefix_lens),
            seq_lens_sum=sum(self.prefix_lens),
        )

    def commit(self):
        tree = result_of(self.rows)
        paths, accept_lens, bonus = walk_ddtree(
            tree,
            compile_ddtree_ancestors(tree.parents, self.max_depth),
            torch.tensor(self.target_ids),
            self.max_depth,
        )
        return commit_ddtree_paths(
            batch=self.batch,
            logits_output=self.logits_output,
            token_ids=tree.token_ids,
            accepted_paths=paths,
            accept_lens=accept_lens,
            bonus=bonus,
        )

    def check(self, result, counts=None) -> None:
        """Compare everything with the oracle's walk, cut after `counts[b]` tokens if given."""
        walks = [greedy_walk(r, t) for r, t in zip(self.rows, self.target_ids, strict=True)]
        paths = [path for path, _ in walks]
        if counts is None:
            counts = [len(path) for path in paths]
        tokens = [
            [row.token_ids[node] for node in path[1:]] + [bonus]
            for row, (path, bonus) in zip(self.rows, walks, strict=True)
        ]
        verified, commit_lens, next_hidden, accepted = result

        outputs = [
            row.token_ids[:1] + step_tokens[:n]
            for row, step_tokens, n in zip(self.rows, tokens, counts, strict=True)
        ]
        assert [list(req.output_ids) for req in self.reqs] == outputs
        assert (verified.dtype, verified.tolist()) == (torch.int64, [out[-1] for out in outputs])
        assert (commit_lens.dtype, commit_lens.tolist()) == (torch.int32, counts)
        assert accepted == [n - 1 for n in counts]

        lens = [prefix + n for prefix, n in zip(self.prefix_lens, counts, strict=True)]
        assert [req.kv_committed_len for req in self.reqs] == lens
        assert [req.kv_allocated_len for req in self.reqs] == lens
        assert self.batch.seq_lens.tolist() == self.batch.seq_lens_cpu.tolist() == lens
        assert self.batch.seq_lens_sum == sum(lens)

        # The first `count` nodes of a path are committed: the root's row is written only now.
        slots = self.slots.view(self.bs, -1).tolist()
        kept = [[slots[b][node] for node in paths[b][: counts[b]]] for b in range(self.bs)]
        table = self.pool.req_to_token
        for b, pool_index in enumerate(self.req_pool_indices.tolist()):
            prefix = self.prefix_lens[b]
            assert table[pool_index, prefix : lens[b]].tolist() == kept[b]
            assert torch.equal(table[pool_index, :prefix], self.table_before[pool_index, :prefix])
        untouched = sorted(set(range(len(table))) - set(self.req_pool_indices.tolist()))
        assert torch.equal(table[untouched], self.table_before[untouched])
        flat_kept = [slot for row in kept for slot in row]
        assert self.batch.out_cache_loc.tolist() == flat_kept

        # Every slot is either free or in use, once.
        in_use = self.others + flat_kept
        for b, pool_index in enumerate(self.req_pool_indices.tolist()):
            in_use += table[pool_index, : self.prefix_lens[b]].tolist()
        held = Counter(self.allocator.free_pages.tolist() + in_use)
        assert held == Counter(range(1, NUM_SLOTS + 1))

        hidden = self.hidden.view(self.bs, self.width, -1)
        rows = [hidden[b, node] for b in range(self.bs) for node in paths[b][: counts[b]]]
        assert torch.equal(next_hidden, torch.stack(rows))
        assert self.logits_output.hidden_states is None

        for req, n in zip(self.reqs, counts, strict=True):
            assert (req.spec_verify_ct, accepted_drafts(req)) == (1, n - 1)
            assert accept_histogram(req) == [0] * (n - 1) + [1]


# Root 20; the path 0, 2, 3, 5 spells c, d, e; its nodes are not contiguous.
BRANCHED = TreeRow(
    token_ids=[20, 10, 2, 3, 11, 4, 12],
    parents=[-1, 0, 0, 2, 2, 3, 3],
    depths=[0, 1, 1, 2, 2, 3, 3],
    valid=[True] * 7,
)
BRANCHED_TARGET = [2, 30, 3, 4, 31, 5, 32]  # accepts c, d, e; the bonus token is f


def branched_step(**request) -> Step:
    return Step([make_request(6, **request)], [BRANCHED], [BRANCHED_TARGET], max_depth=3)


def test_a_path_of_scattered_nodes():
    step = branched_step()
    step.check(step.commit())
    assert list(step.reqs[0].output_ids) == [20, 2, 3, 4, 5]
    assert not step.reqs[0].finished()


@pytest.mark.parametrize("agreement", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("bs", [1, 2, 5])
def test_random_ragged_batches(bs, agreement):
    rng = random.Random(bs)
    for _ in range(30):
        width, max_depth = rng.randint(2, 12), rng.randint(1, 6)
        rows = [random_row(rng, width, max_depth, EOS - 1) for _ in range(bs)]
        target_ids = [random_target_ids(rng, row, EOS - 1, agreement) for row in rows]
        step = Step(
            [make_request(rng.randint(1, 30)) for _ in range(bs)], rows, target_ids, max_depth
        )
        step.check(step.commit())


def test_requests_with_nothing_and_with_everything_accepted():
    nothing = [1, *BRANCHED_TARGET[1:]]
    step = Step(
        [make_request(4), make_request(9), make_request(1)],
        [BRANCHED] * 3,
        [nothing, BRANCHED_TARGET, nothing],
        max_depth=3,
    )
    step.check(step.commit(), counts=[1, 4, 1])


@pytest.mark.parametrize("left", [1, 2, 3, 4, 5])
def test_max_new_tokens_cuts_a_path(left):
    """One token is out before the step; `left` more are allowed, of the step's four."""
    step = branched_step(max_new_tokens=1 + left)
    step.check(step.commit(), counts=[min(left, 4)])
    assert step.reqs[0].finished() == (left <= 4)
    if left <= 4:
        assert isinstance(step.reqs[0].finished_reason, FINISH_LENGTH)


@pytest.mark.parametrize(("stop", "count"), [(2, 1), (3, 2), (4, 3), (5, 4)])
def test_a_stop_token_cuts_a_path(stop, count):
    step = branched_step(stop_token_ids=[stop])
    step.check(step.commit(), counts=[count])
    assert isinstance(step.reqs[0].finished_reason, FINISH_MATCHED_TOKEN)
    assert step.reqs[0].output_ids[-1] == stop


def with_token(row: TreeRow, node: int, token: int) -> TreeRow:
    tokens = list(row.token_ids)
    tokens[node] = token
    return dataclasses.replace(row, token_ids=tokens)


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_eos_cuts_a_path(ignore_eos):
    target = list(BRANCHED_TARGET)
    target[2] = EOS
    step = Step(
        [make_request(6, ignore_eos=ignore_eos), make_request(3)],
        [with_token(BRANCHED, 3, EOS), BRANCHED],
        [target, BRANCHED_TARGET],
        max_depth=3,
    )
    step.check(step.commit(), counts=[4 if ignore_eos else 2, 4])
    assert step.reqs[0].finished() != ignore_eos
    assert not step.reqs[1].finished()


@pytest.mark.parametrize(("stop", "count"), [("c", 1), ("cd", 2), ("de", 3), ("ef", 4)])
def test_a_stop_string_cuts_a_path(stop, count):
    step = branched_step(stop=[stop])
    step.check(step.commit(), counts=[count])
    assert isinstance(step.reqs[0].finished_reason, FINISH_MATCHED_STR)


def test_an_aborted_request_takes_one_token():
    step = branched_step()
    step.reqs[0].to_finish = FINISH_ABORT("client went away")
    step.check(step.commit(), counts=[1])
    assert isinstance(step.reqs[0].finished_reason, FINISH_ABORT)


def test_reasoning_tokens_are_counted_up_to_the_end_of_thinking():
    """`think_end_id` is 7: the third token of this step."""
    target = list(BRANCHED_TARGET)
    target[3] = 7
    step = Step(
        [make_request(6, require_reasoning=True), make_request(6)],
        [with_token(BRANCHED, 5, 7)] * 2,
        [target] * 2,
        max_depth=3,
    )
    step.check(step.commit())
    assert [req.reasoning_tokens for req in step.reqs] == [3, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_length_dtypes_are_kept(dtype):
    step = branched_step()
    step.batch.seq_lens = step.batch.seq_lens.to(dtype)
    lens = step.batch.seq_lens
    step.check(step.commit())
    assert step.batch.seq_lens.dtype == dtype
    assert step.batch.seq_lens is lens  # others hold this tensor


def test_missing_hidden_states_are_an_error_and_change_nothing():
    step = branched_step()
    step.logits_output.hidden_states = None
    with pytest.raises(RuntimeError, match="hidden states"):
        step.commit()
    assert list(step.reqs[0].output_ids) == [20]
    assert step.reqs[0].kv_committed_len == 6


def keep_rows_by_index(step, result):
    """KV: the first n slots of the tree instead of the path's."""
    n = int(result[1][0])
    step.pool.req_to_token[step.req_pool_indices[0], 6 : 6 + n] = step.slots[:n].to(torch.int32)
    return result


def hidden_rows_by_index(step, result):
    return (*result[:2], step.hidden[: int(result[1][0])], *result[3:])


def hidden_rows_in_node_order(step, result):
    return (*result[:2], result[2].flip(0), *result[3:])


def leak_one_slot(step, result):
    step.allocator.free_pages = step.allocator.free_pages[:-1]
    return result


def free_one_slot_twice(step, result):
    step.allocator.free(step.allocator.free_pages[-1:])
    return result


def free_a_kept_slot(step, result):
    step.allocator.free(step.batch.out_cache_loc[:1])
    return result


def allocated_len_ahead(step, result):
    step.reqs[0].kv_allocated_len += 1
    return result


def host_lengths_behind(step, result):
    step.batch.seq_lens_cpu -= 1
    return result


def bonus_not_counted(step, result):
    return (result[0], result[1] - 1, *result[2:])


@pytest.mark.parametrize(
    "mutate",
    [
        keep_rows_by_index,
        hidden_rows_by_index,
        hidden_rows_in_node_order,
        leak_one_slot,
        free_one_slot_twice,
        free_a_kept_slot,
        allocated_len_ahead,
        host_lengths_behind,
        bonus_not_counted,
    ],
)
def test_the_checks_see_a_wrong_commit(mutate):
    """Mutants: each is a commit as it should be, but for one thing."""
    step = branched_step()
    result = mutate(step, step.commit())
    with pytest.raises(AssertionError):
        step.check(result)
