# SPDX-License-Identifier: Apache-2.0
"""`_sample_tree_paths`: mixed batches, degenerate filters, broken rows, memory, the kernel.

That the sampled law is right is shown in tests/exactness; here are the edges.
"""

from types import SimpleNamespace

import pytest
import torch
from ddtree_rows import random_topk
from oracles.target_only import target_distribution, walk_by_coins
from sglang.srt.sampling.sampling_params import TOP_K_ALL
from sglang.srt.speculative import ddtree_sampling, dflash_info
from sglang.srt.speculative.ddtree_sampling import RowSamplingParams, compute_target_probs_
from sglang.srt.speculative.ddtree_utils import (
    build_ddtree_tree_from_topk,
    compile_ddtree_ancestors,
    compile_ddtree_retrieve,
)
from sglang.srt.speculative.dflash_info import DDTreeVerifyInput

VOCAB, DEPTH, BUDGET = 40, 4, 15
WIDTH = BUDGET + 1


@pytest.fixture(autouse=True)
def server_args(monkeypatch):
    args = SimpleNamespace(enable_nan_detection=False, sampling_backend="pytorch")
    monkeypatch.setattr(dflash_info, "get_global_server_args", lambda: args)
    torch.manual_seed(0)
    return args


def verify_input(bs, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logprobs, ids, roots = random_topk(generator, bs, DEPTH, 12, VOCAB)
    tree = build_ddtree_tree_from_topk(logprobs, ids, roots, BUDGET)
    retrieve = compile_ddtree_retrieve(tree.parents, tree.node_logws, WIDTH)
    return DDTreeVerifyInput(
        draft_token=tree.token_ids.flatten(),
        positions=tree.depths.flatten(),
        draft_token_num=WIDTH,
        tree=tree,
        ancestors=compile_ddtree_ancestors(tree.parents, DEPTH),
        max_depth=DEPTH,
        retrieve_index=retrieve[0],
        retrieve_next_token=retrieve[1],
        retrieve_next_sibling=retrieve[2],
    )


def sampling_info(requests, seeds=None):
    """`requests`: (temperature, top_k, top_p, min_p) each; a greedy one has top_k 1."""
    temperatures, top_ks, top_ps, min_ps = zip(*requests, strict=True)
    return SimpleNamespace(
        temperatures=torch.tensor(temperatures).view(-1, 1),
        top_ks=torch.tensor(top_ks, dtype=torch.int32),
        top_ps=torch.tensor(top_ps),
        min_ps=torch.tensor(min_ps),
        need_top_k_sampling=any(k != TOP_K_ALL for k in top_ks),
        need_top_p_sampling=any(p != 1.0 for p in top_ps),
        need_min_p_sampling=any(p > 0 for p in min_ps),
        is_all_greedy=all(k <= 1 for k in top_ks),
        sampling_seed=seeds,
    )


GREEDY = (1.0, 1, 1.0, 0.0)
PLAIN = (1.0, TOP_K_ALL, 1.0, 0.0)


def random_logits(bs, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.randn(bs * WIDTH, VOCAB, generator=generator)


def as_lists(paths):
    return [part.tolist() for part in paths]


@pytest.mark.parametrize("seeded", [False, True])
def test_greedy_rows_of_a_mixed_batch(seeded):
    """They take exactly what an all-greedy batch takes, exact ties included."""
    bs = 8
    logits = random_logits(bs).round()  # many exact ties at the maximum
    assert (logits == logits.max(dim=-1, keepdim=True).values).sum() > bs * WIDTH
    inputs = verify_input(bs)
    all_greedy = as_lists(inputs._greedy_tree_paths(logits.clone()))
    requests = [GREEDY if i % 2 else PLAIN for i in range(bs)]
    seeds = torch.arange(bs) if seeded else None
    mixed = as_lists(inputs._sample_tree_paths(logits.clone(), sampling_info(requests, seeds)))
    for greedy_part, mixed_part in zip(all_greedy, mixed, strict=True):
        assert mixed_part[1::2] == greedy_part[1::2]


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize(
    "request_parameters",
    [(1.5, 1, 1.0, 0.0), (1.0, TOP_K_ALL, 1e-6, 0.0), (2.0, TOP_K_ALL, 1.0, 0.99)],
    ids=["top_k 1", "top_p 1e-6", "min_p 0.99"],
)
def test_filters_that_leave_the_arg_max(request_parameters, seeded):
    bs = 6
    inputs, logits = verify_input(bs), random_logits(bs)
    info = sampling_info([request_parameters] * bs, torch.arange(bs) if seeded else None)
    sampled = inputs._sample_tree_paths(logits.clone(), info)
    assert as_lists(sampled) == as_lists(inputs._greedy_tree_paths(logits))


@pytest.mark.parametrize("seeded", [False, True])
def test_a_broken_row_harms_nobody(seeded):
    """A NaN row gives a token of the vocabulary; its neighbours' tokens do not change."""
    bs = 4
    requests = [PLAIN, (0.7, 5, 0.9, 0.0), PLAIN, GREEDY]
    seeds = torch.arange(bs) if seeded else None
    inputs = verify_input(bs)
    good = random_logits(bs)
    broken = good.clone()
    broken[2 * WIDTH : 3 * WIDTH] = float("nan")
    torch.manual_seed(3)
    expected = as_lists(inputs._sample_tree_paths(good, sampling_info(requests, seeds)))
    torch.manual_seed(3)
    found = as_lists(inputs._sample_tree_paths(broken, sampling_info(requests, seeds)))
    for expected_part, found_part in zip(expected, found, strict=True):
        assert found_part[:2] + found_part[3:] == expected_part[:2] + expected_part[3:]
    assert 0 <= found[2][2] < VOCAB


@pytest.mark.parametrize("seeded", [False, True])
def test_rows_do_not_depend_on_the_chunks(seeded, monkeypatch):
    """Rows are worked on a bounded number at a time; where the cuts fall changes nothing."""
    bs = 5
    inputs, logits = verify_input(bs), random_logits(bs)
    info = sampling_info(
        [(0.8, 9, 0.9, 0.0), PLAIN] * 2 + [(1.2, TOP_K_ALL, 0.7, 0.1)],
        torch.arange(bs) if seeded else None,
    )
    torch.manual_seed(3)
    whole = as_lists(inputs._sample_tree_paths(logits.clone(), info))
    monkeypatch.setattr(ddtree_sampling, "_CHUNK_ELEMENTS", 7 * VOCAB)
    torch.manual_seed(3)
    assert as_lists(inputs._sample_tree_paths(logits.clone(), info)) == whole


def test_logits_of_a_padded_vocabulary():
    """They come as a slice of a wider tensor; the paths are those of the same values alone."""
    bs = 3
    inputs, logits = verify_input(bs), random_logits(bs)
    padded = torch.zeros(bs * WIDTH, VOCAB + 24)
    padded[:, :VOCAB] = logits
    info = sampling_info([PLAIN] * bs)
    torch.manual_seed(3)
    expected = as_lists(inputs._sample_tree_paths(logits, info))
    torch.manual_seed(3)
    assert as_lists(inputs._sample_tree_paths(padded[:, :VOCAB], info)) == expected


def test_every_token_of_a_large_vocabulary_can_be_drawn():
    """The bonus coin is finer than float32: the law of a flat row has no holes."""
    vocab = 152_000
    inputs = verify_input(1)
    coins = []
    draw = ddtree_sampling.draw_bonus

    def keep(tree, probs, last_nodes, bonus_coins):
        coins.append(bonus_coins)
        return draw(tree, probs, last_nodes, bonus_coins)

    ddtree_sampling.draw_bonus = keep
    try:
        inputs._sample_tree_paths(torch.zeros(WIDTH, vocab), sampling_info([PLAIN]))
    finally:
        ddtree_sampling.draw_bonus = draw
    assert coins[0].dtype == torch.float64
    probs = torch.full((1, 1, vocab), 1.0 / vocab)
    tree = SimpleNamespace(parents=torch.tensor([[-1]]), token_ids=torch.tensor([[0]]))
    for token in (0, 1, 77_777, vocab - 1):
        coin = torch.tensor([(token + 0.5) / vocab], dtype=torch.float64)
        assert int(draw(tree, probs, torch.tensor([0]), coin)) == token


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("top_k", [None, 6])
@pytest.mark.parametrize("top_p", [1.0, 0.75])
@pytest.mark.parametrize("min_p", [0.0, 0.1])
def test_target_distribution(temperature, top_k, top_p, min_p):
    """Against the distribution computed one row at a time in float64."""
    logits = random_logits(1)
    info = sampling_info([(temperature, top_k or TOP_K_ALL, top_p, min_p)])
    probs, support = compute_target_probs_(
        logits.clone(), RowSamplingParams(info, WIDTH), joint_top_k_top_p=True
    )
    for row, row_probs, row_support in zip(
        logits.double().tolist(), probs.tolist(), support.tolist(), strict=True
    ):
        expected = target_distribution(
            row, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p
        )
        assert row_probs == pytest.approx(expected, abs=1e-6)
        assert row_support == sum(p > 0 for p in expected)


def test_flashinfer_renormalises_between_top_k_and_top_p(server_args):
    """Its min-p path: top_p counts what top_k left, not the whole distribution."""
    logits = torch.log(torch.tensor([[0.4, 0.3, 0.2, 0.1]])).repeat(WIDTH, 1)
    info = sampling_info([(1.0, 3, 0.75, 0.01)])
    params = RowSamplingParams(info, WIDTH)
    joint, _ = compute_target_probs_(logits.clone(), params, joint_top_k_top_p=True)
    sequential, _ = compute_target_probs_(logits.clone(), params, joint_top_k_top_p=False)
    # Jointly, 0.7 of the mass precedes the third token; of what top_k left, 7/9 does.
    assert joint[0].tolist() == pytest.approx([4 / 9, 3 / 9, 2 / 9, 0.0])
    assert sequential[0].tolist() == pytest.approx([4 / 7, 3 / 7, 0.0, 0.0])


def test_no_second_dense_tensor_in_pytorch():
    """Peak of fresh memory stays below one [bs, W, V] tensor."""
    bs, vocab = 8, 30_000
    logits = torch.randn(bs * WIDTH, vocab)
    info = sampling_info([(0.9, 50, 0.9, 0.05)] * bs)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            for part in out if isinstance(out, (tuple, list)) else (out,):
                if isinstance(part, torch.Tensor):
                    storage = part.untyped_storage()
                    if storage.data_ptr() != logits.untyped_storage().data_ptr():
                        largest = max(largest, storage.nbytes())
            return out

    inputs = verify_input(bs)
    original, ddtree_sampling._CHUNK_ELEMENTS = ddtree_sampling._CHUNK_ELEMENTS, 8 * vocab
    try:
        with Watch():
            inputs._sample_tree_paths(logits, info)
    finally:
        ddtree_sampling._CHUNK_ELEMENTS = original
    assert 0 < largest < logits.nbytes / 4


class FakeKernel:
    """sgl-kernel's rule, run by the plain-Python transcription; keeps what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, **arguments):
        self.calls.append(arguments)
        # sgl-kernel checks both for every tensor.
        for name, value in arguments.items():
            assert not isinstance(value, torch.Tensor) or value.is_contiguous(), name
        probs = arguments["target_probs"].double().tolist()
        next_token = arguments["retrive_next_token"].tolist()
        next_sibling = arguments["retrive_next_sibling"].tolist()
        width = len(next_token[0])
        for row, token_ids in enumerate(arguments["candidates"].tolist()):
            parents = [-1] * width
            for node in range(width):
                child = next_token[row][node]
                while child >= 0:
                    parents[child] = node
                    child = next_sibling[row][child]
            coins = arguments["uniform_samples"][row].tolist()
            path, _ = walk_by_coins(parents, token_ids, probs[row], coins, 1.0)
            for place, node in enumerate(path):
                arguments["accept_index"][row, place] = int(arguments["retrive_index"][row, node])
            arguments["accept_token_num"][row] = len(path) - 1


@pytest.fixture
def kernel(monkeypatch):
    """Stands where sgl-kernel's function would be on CUDA."""
    fake = FakeKernel()
    monkeypatch.setattr(
        ddtree_sampling, "tree_speculative_sampling_target_only", fake, raising=False
    )
    return fake


MIXED = [PLAIN, (0.7, 3, 1.0, 0.0), (1.0, 2, 0.9, 0.0)] * 2


def step_of(requests):
    """Inputs of a step, its target distributions [bs, W, V] and their supports [bs, W]."""
    bs = len(requests)
    params = RowSamplingParams(sampling_info(requests), WIDTH)
    probs, support = compute_target_probs_(random_logits(bs), params, True)
    return verify_input(bs), probs.view(bs, WIDTH, VOCAB), support.view(bs, WIDTH)


def test_kernel_call_gives_the_same_paths(kernel):
    """On CUDA the walk is sgl-kernel's; given its rule, the result is the PyTorch path's."""
    inputs, probs, support = step_of(MIXED)
    for _ in range(20):
        coins = 1.0 - torch.rand(len(MIXED), WIDTH)
        retrieve = (
            inputs.retrieve_index,
            inputs.retrieve_next_token,
            inputs.retrieve_next_sibling,
        )
        by_kernel = ddtree_sampling.accept_by_kernel(
            inputs.tree, retrieve, probs, support, coins, DEPTH
        )
        matches = ddtree_sampling.match_children_by_coin(inputs.tree, probs, support, coins)
        in_torch = ddtree_sampling.follow_ddtree_matches(
            inputs.tree, inputs.ancestors, matches, DEPTH
        )
        assert as_lists(by_kernel) == as_lists(in_torch)
    arguments = kernel.calls[0]
    assert arguments["target_probs"].shape == arguments["draft_probs"].shape
    assert arguments["accept_index"].dtype == arguments["predicts"].dtype == torch.int32
    assert arguments["candidates"].dtype == torch.int64
    assert not arguments["draft_probs"].any()
    assert arguments["threshold_single"] == arguments["threshold_acc"] == 1.0


def test_kernel_coins_stay_below_what_covers_the_support(kernel):
    """A coin of 1 at a node whose children hold everything falls on a child."""
    bs = 6
    inputs, probs, support = step_of([(1.0, 2, 1.0, 0.0)] * bs)
    # Make the root's two possible tokens its first two children.
    for row in range(bs):
        children = [i for i, p in enumerate(inputs.tree.parents[row].tolist()) if p == 0][:2]
        probs[row, 0] = 0.0
        probs[row, 0, inputs.tree.token_ids[row, children]] = 1.0 / len(children)
        support[row, 0] = len(children)
    retrieve = (
        inputs.retrieve_index,
        inputs.retrieve_next_token,
        inputs.retrieve_next_sibling,
    )
    coins = torch.ones(bs, WIDTH)
    ddtree_sampling.accept_by_kernel(inputs.tree, retrieve, probs, support, coins, DEPTH)
    coins = kernel.calls[0]["uniform_samples"]
    assert (coins[:, 0] < 1.0).all() and (coins[:, 0] > 1.0 - 1e-4).all()


class SaysCuda(torch.Tensor):
    """A tensor of the CPU that says it lies on a CUDA device."""

    is_cuda = True


def test_on_cuda_the_walk_is_the_kernels(kernel, monkeypatch):
    """Which of the two walks: by the platform and by where the distributions are."""
    inputs, probs, support = step_of(MIXED)
    found = []
    for is_cuda, given, calls in (
        (False, probs, 0),
        (True, probs, 0),
        (True, probs.as_subclass(SaysCuda), 1),
    ):
        monkeypatch.setattr(ddtree_sampling, "_IS_CUDA", is_cuda)
        torch.manual_seed(3)
        paths = ddtree_sampling.sample_ddtree_paths(
            tree=inputs.tree,
            ancestors=inputs.ancestors,
            retrieve_index=inputs.retrieve_index,
            retrieve_next_token=inputs.retrieve_next_token,
            retrieve_next_sibling=inputs.retrieve_next_sibling,
            probs=given,
            support=support,
            max_depth=DEPTH,
        )
        found.append(as_lists(paths))
        assert len(kernel.calls) == calls
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("min_p", [0.0, 0.01])
@pytest.mark.parametrize("backend", ["pytorch", "flashinfer"])
def test_the_order_of_filters_is_the_servers(server_args, monkeypatch, backend, min_p):
    """FlashInfer's path with min-p renormalises between top-k and top-p."""
    server_args.sampling_backend = backend
    joint = []

    def watch(logits, params, joint_top_k_top_p):
        joint.append(joint_top_k_top_p)
        return compute_target_probs_(logits, params, joint_top_k_top_p)

    monkeypatch.setattr(dflash_info, "compute_target_probs_", watch)
    info = sampling_info([(1.0, 3, 0.75, min_p)] * 2)
    verify_input(2)._sample_tree_paths(random_logits(2), info)
    assert joint == [not (backend == "flashinfer" and min_p > 0)]
