# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's attention backend verifies trees, eagerly and captured.

SGLang's backend and the series' buffers are real; FlashInfer's planned attention is a PyTorch
one with its contract (flashinfer_wrapper.py), since its kernels need a GPU.
"""

import random
from types import SimpleNamespace

import pytest
import torch
from flashinfer_wrapper import PagedPrefillWrapper
from oracles.masks import flat_tree_mask
from server_models import Models
from sglang.srt.layers.attention import flashinfer_backend
from sglang.srt.layers.attention.flashinfer_backend import FlashInferAttnBackend
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.speculative import ddtree_args
from sglang.srt.speculative.ddtree_cuda_graph import (
    LAYOUTS,
    DDTreeGraphBuffers,
    init_ddtree_cuda_graph_state,
    pad_ddtree_mask,
)
from sglang.srt.speculative.dflash_info import DFlashVerifyInput
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from support.upstream import plan_capture, plan_replay
from verify_batch import Batch, random_trees, tree_positions

CONTEXT = 128
HOW = {"rtol": 0, "atol": 2e-6}


class Torch:
    """torch, with everything for CUDA on the CPU: the backend names the device itself."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def zeros(self, *size, device=None, **how):
        return torch.zeros(*size, **how)


@pytest.fixture(autouse=True)
def flashinfer(monkeypatch):
    for name, value in {
        "get_attention_tp_size": lambda: 1,
        "should_use_tensor_core": lambda **how: False,
        "BatchPrefillWithPagedKVCacheWrapper": PagedPrefillWrapper,
        "BatchPrefillWithRaggedKVCacheWrapper": lambda *args, **how: None,
        "BatchDecodeWithPagedKVCacheWrapper": lambda *args, **how: None,
        "DllmConfig": SimpleNamespace(from_server_args=lambda args: None),
        "torch": Torch(),
    }.items():
        monkeypatch.setattr(flashinfer_backend, name, value, raising=False)
    monkeypatch.setenv("SGLANG_FLASHINFER_WORKSPACE_SIZE", "1024")


def batch_of(prefix_lens, width=6, seed=0) -> Batch:
    return Batch(
        prefix_lens=prefix_lens,
        width=width,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        v_head_dim=16,
        seed=seed,
    )


def backend_of(batch: Batch) -> tuple[FlashInferAttnBackend, SimpleNamespace]:
    """The backend on the batch's pool, and its model runner."""
    runner = batch.model_runner(window=-1, deterministic=False)
    runner.is_draft_worker = False
    runner.mambaish_config = None
    runner.max_total_num_tokens = 10**6
    runner.server_args.speculative_dflash_block_size = 4
    runner.kv_cache_dtype = runner.dtype = torch.float32
    runner.model_config.is_multimodal = False
    runner.model_config.head_dim = batch.head_dim
    runner.model_config.vocab_size = 20
    runner.model_config.hf_config = SimpleNamespace(architectures=["LlamaForCausalLM"])
    runner.server_args.enable_mis = False
    runner.server_args.disable_piecewise_cuda_graph = True
    runner.attn_backend = FlashInferAttnBackend(runner)
    return runner.attn_backend, runner


def verify_input(batch: Batch, custom_mask) -> DFlashVerifyInput:
    return DFlashVerifyInput(
        draft_token=torch.zeros(0),
        positions=None,
        draft_token_num=batch.width,
        custom_mask=custom_mask,
    )


def native(batch, mask, positions, attn_type=AttentionType.DECODER):
    how = {"custom_mask": mask, "positions": positions, "attn_type": attn_type}
    return batch.forward(TorchNativeAttnBackend, **how)[0]


def tree_of(batch: Batch, seed=0) -> tuple[torch.Tensor, torch.Tensor]:
    """A flat mask of random trees, and their positions."""
    trees = random_trees(random.Random(seed), len(batch.prefix_lens), batch.width)
    mask = torch.tensor(flat_tree_mask(trees, batch.prefix_lens))
    return mask, tree_positions(trees, batch.prefix_lens)


@pytest.mark.parametrize("prefix_lens", [[9], [11, 3, 26], [1, 0, 5, 60]])
def test_trees_eagerly(prefix_lens):
    batch = batch_of(prefix_lens)
    mask, positions = tree_of(batch)
    backend, runner = backend_of(batch)
    forward_batch = batch.forward_batch(runner, verify_input(batch, mask), positions)
    backend.init_forward_metadata(forward_batch)
    layer = batch.layer(AttentionType.DECODER)
    output = backend.forward_extend(batch.q, batch.k, batch.v, layer, forward_batch)
    torch.testing.assert_close(output, native(batch, mask, positions), **HOW)


def test_a_draft_block_eagerly():
    """No mask: every row of the block sees every other."""
    batch = batch_of([11, 3])
    positions = torch.arange(12)
    backend, runner = backend_of(batch)
    forward_batch = batch.forward_batch(runner, verify_input(batch, None), positions)
    backend.init_forward_metadata(forward_batch)
    layer = batch.layer(AttentionType.ENCODER_ONLY)
    output = backend.forward_extend(batch.q, batch.k, batch.v, layer, forward_batch)
    expected = native(batch, None, positions, AttentionType.ENCODER_ONLY)
    torch.testing.assert_close(output, expected, **HOW)


class Captured:
    """A verify forward that was captured for four requests of one token each.

    `Batch` stands for the runner's buffers: capture and replay get its tensors.
    """

    def __init__(self, mask_at_capture: bool = True) -> None:
        self.batch = batch_of([1, 1, 1, 1])
        self.backend, self.runner = backend_of(self.batch)
        width = self.batch.width
        init_ddtree_cuda_graph_state(
            SimpleNamespace(
                attn_backend=self.backend,
                max_bs=4,
                num_tokens_per_bs=width,
                model_runner=self.runner,
            )
        )
        mask = torch.ones((4 + 4 * width) * width, dtype=torch.bool) if mask_at_capture else None
        self.forward_batch = self.batch.forward_batch(
            self.runner, verify_input(self.batch, mask), torch.zeros(4 * width, dtype=torch.int64)
        )
        plan_capture(self.backend, self.forward_batch)
        self.metadata = self.backend.forward_metadata
        (self.wrapper,) = self.metadata.prefill_wrappers

    def addresses(self) -> list[int]:
        names = ("qo_indptr", "kv_indptr", "kv_indices", "mask", "mask_indptr")
        return [getattr(self.wrapper, name).data_ptr() for name in names]

    def replay(self, batch: Batch, mask, positions) -> torch.Tensor:
        """The output of all four rows, of which the last belong to nobody."""
        rows, width = len(batch.prefix_lens), batch.width
        lens = torch.tensor(batch.prefix_lens + [1] * (4 - rows))
        spec_info = verify_input(batch, mask)
        pad_ddtree_mask(spec_info, 4 - rows, 1)
        forward_batch = batch.forward_batch(self.runner, spec_info, positions)
        forward_batch.batch_size = 4
        forward_batch.seq_lens = forward_batch.seq_lens_cpu = lens
        forward_batch.seq_lens_sum = int(lens.sum())
        forward_batch.req_pool_indices = torch.zeros(4, dtype=torch.int64)
        forward_batch.req_pool_indices[:rows] = batch.req_pool_indices
        # Table and pool are the engine's own, each at one address.
        self.runner.token_to_kv_pool.get_key_buffer(0).copy_(batch.keys)
        self.runner.token_to_kv_pool.get_value_buffer(0).copy_(batch.values)
        table = self.backend.indices_updater_prefill.req_to_token
        table.copy_(batch.req_to_token_pool.req_to_token[: len(table)])
        plan_replay(self.backend, forward_batch)
        assert self.backend.forward_metadata is self.metadata
        padded = torch.zeros((4 - rows) * width, dtype=torch.int64)
        forward_batch.out_cache_loc = torch.cat([batch.out_cache_loc, padded])
        q, k, v = (
            torch.cat([x, torch.ones(len(padded), *x.shape[1:])])
            for x in (batch.q, batch.k, batch.v)
        )
        layer = batch.layer(AttentionType.DECODER)
        return self.backend.forward_extend(q, k, v, layer, forward_batch)


def test_trees_captured():
    """Batches of four, then of fewer, in one graph: same addresses, nothing of the batch before."""
    captured = Captured()
    addresses = captured.addresses()
    for seed, prefix_lens in enumerate([[40, 3, 17, 60], [5], [9, 30, 2], [1, 2]]):
        batch = batch_of(prefix_lens, seed=seed)
        pad_pool(batch)
        mask, positions = tree_of(batch, seed)
        output = captured.replay(batch, mask, positions)
        rows = len(prefix_lens) * batch.width
        torch.testing.assert_close(output[:rows], native(batch, mask, positions), **HOW)
        assert output.isfinite().all()
    assert captured.addresses() == addresses


def pad_pool(batch: Batch) -> None:
    """As many requests in the table as the captured batch has, so that tables are alike."""
    table = batch.req_to_token_pool.req_to_token
    batch.req_to_token_pool.req_to_token = torch.nn.functional.pad(
        table, (0, 0, 0, max(0, 7 - len(table)))
    )


def test_a_graph_captured_without_a_mask_takes_none():
    """What upstream captures for a chain; the hook in the runner is what prevents it."""
    captured = Captured(mask_at_capture=False)
    batch = batch_of([3])
    pad_pool(batch)
    with pytest.raises(ValueError, match="custom_mask_buf must be initialized"):
        captured.replay(batch, *tree_of(batch))


@pytest.mark.parametrize(
    ("budget", "is_draft", "masked"), [(5, False, True), (5, True, False), (None, False, False)]
)
def test_the_runner_captures_a_mask_for_trees_only(budget, is_draft, masked):
    """A draft block and a chain of DFLASH have none with this backend."""
    buffers = SimpleNamespace(custom_mask=torch.ones(4))
    runner = SimpleNamespace(
        buffers=buffers,
        model_runner=SimpleNamespace(
            spec_algorithm=SpeculativeAlgorithm.from_string("DDTREE" if budget else "DFLASH"),
            is_draft_worker=is_draft,
            attn_backend=FlashInferAttnBackend.__new__(FlashInferAttnBackend),
            server_args=SimpleNamespace(
                speculative_num_draft_tokens=6, speculative_ddtree_budget=budget
            ),
        ),
    )
    spec_info = CudaGraphRunner.get_spec_info(runner, num_tokens=6)
    assert (spec_info.custom_mask is buffers.custom_mask) == masked
    assert masked or spec_info.custom_mask is None


def test_the_packed_mask_and_the_slots_have_flashinfers_sizes():
    """Eight pairs a byte, each request from a byte of its own; 32-bit slots."""
    plan = DDTreeGraphBuffers.plan(
        max_bs=3,
        width=5,
        context_len=50,
        vocab_size=10,
        layout=LAYOUTS["FlashInferAttnBackend"],
        is_draft=False,
    )
    assert plan.custom_mask == 3 * 35  # 275 pairs a request are 34.4 bytes
    assert plan.kv_indices == 4 * 3 * 55


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path)


def test_a_server_on_flashinfer_starts(models):
    args = models.server_args(device="cuda", attention_backend="flashinfer")
    assert args.attention_backend == "flashinfer"
    assert not args.disable_cuda_graph


@pytest.mark.parametrize(
    ("flag", "arguments"),
    [
        ("--attention-backend flashinfer", {"attention_backend": "flashinfer"}),
        ("--sampling-backend flashinfer", {"sampling_backend": "flashinfer"}),
        (
            "--speculative-draft-attention-backend flashinfer",
            {"speculative_draft_attention_backend": "flashinfer"},
        ),
    ],
)
@pytest.mark.parametrize(("cuda", "refused"), [("12.8", True), ("12.9", False), ("13.0", False)])
def test_flashinfer_on_sm120_needs_cuda_12_9(models, monkeypatch, flag, arguments, cuda, refused):
    monkeypatch.setattr(ddtree_args, "is_sm120_supported", lambda: True)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    how = {"device": "cuda", "attention_backend": "triton", "sampling_backend": "pytorch"}
    if not refused:
        models.server_args(**how | arguments)
        return
    with pytest.raises(ValueError, match=f"{flag} needs CUDA 12.9 .* found CUDA 12.8: pass "):
        models.server_args(**how | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"decode_attention_backend": "triton"},
            "one attention backend, got flashinfer for prefill and triton for decode",
        ),
        (
            {"prefill_attention_backend": "triton"},
            "one attention backend, got triton for prefill and flashinfer for decode",
        ),
        ({"enable_deterministic_inference": True}, "--enable-deterministic-inference with FlashI"),
        ({"speculative_draft_attention_backend": "trtllm_mha"}, "on CUDA, got trtllm_mha: pass"),
        ({"attention_backend": "torch_native"}, "on CUDA, got torch_native: pass"),
    ],
)
def test_combinations_that_are_refused(models, arguments, message):
    """Each would start, and serve something else or fail in mid-request."""
    with pytest.raises(ValueError, match=message):
        models.server_args(**({"device": "cuda", "attention_backend": "flashinfer"} | arguments))


@pytest.mark.parametrize("draft", ["fa3", "flashinfer"])
def test_a_drafter_may_have_a_backend_of_its_own(models, draft):
    models.server_args(
        device="cuda", attention_backend="triton", speculative_draft_attention_backend=draft
    )


def test_flashinfer_on_other_cards_takes_any_cuda(models, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    models.server_args(device="cuda", attention_backend="flashinfer")


@pytest.mark.parametrize(("requests", "refused"), [(15, False), (16, True)])
def test_masks_beyond_32_bits_are_refused(requests, refused):
    """16 requests of 1,024 tokens after 130,048: 2^31 pairs."""

    class FlashInferAttnBackend:
        pass

    runner = SimpleNamespace(
        mambaish_config=None,
        sliding_window_size=None,
        dtype=torch.bfloat16,
        kv_cache_dtype=torch.bfloat16,
        attn_backend=FlashInferAttnBackend(),
        req_to_token_pool=SimpleNamespace(size=requests),
        model_config=SimpleNamespace(context_len=130048),
        max_total_num_tokens=10**6,
        server_args=SimpleNamespace(
            speculative_num_draft_tokens=1024, speculative_dflash_block_size=16
        ),
    )
    if not refused:
        ddtree_args.check_ddtree_model_runner(runner)
        return
    with pytest.raises(ValueError, match="can have 2147483648 entries"):
        ddtree_args.check_ddtree_model_runner(runner)
