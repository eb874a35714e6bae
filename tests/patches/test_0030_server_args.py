# SPDX-License-Identifier: Apache-2.0
"""DDTREE's server arguments: resolved widths, and what is refused at start-up.

Real ServerArgs on small model directories that hold nothing but a config.
"""

from types import SimpleNamespace

import pytest
import torch
from server_models import DEEPSEEK, Models
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.ddtree_args import check_ddtree_model_runner
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from support.upstream import algorithm_classes, draft_window, resolve_speculative_arguments


@pytest.fixture
def models(tmp_path) -> Models:
    return Models(tmp_path)


def refusal(models: Models, **how) -> str:
    """The message of a refusal: one line."""
    with pytest.raises(ValueError) as error:
        models.server_args(**how)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- widths


@pytest.mark.parametrize("budget", [1, 5, 31, 200])
def test_block_and_width_are_separate(models, budget):
    args = models.server_args(speculative_ddtree_budget=budget)
    assert args.speculative_num_draft_tokens == budget + 1
    assert args.speculative_dflash_block_size == 6
    # The scheduler reserves max(num_steps * topk, num_draft_tokens) slots a step.
    assert args.speculative_num_steps * args.speculative_eagle_topk == 6


def test_default_budget(models):
    args = models.server_args()
    assert (args.speculative_ddtree_budget, args.speculative_num_draft_tokens) == (31, 32)


@pytest.mark.parametrize("block_size", [2, 9])
def test_the_flag_overrides_the_drafters_block_size(models, block_size):
    args = models.server_args(speculative_dflash_block_size=block_size, speculative_ddtree_budget=4)
    assert (args.speculative_dflash_block_size, args.speculative_num_steps) == (block_size,) * 2
    assert args.speculative_num_draft_tokens == 5


def test_resolving_resolved_arguments_changes_nothing(models):
    """Processes of one server hand their arguments on and check them again."""
    args = models.server_args(speculative_ddtree_budget=9)
    before = dict(vars(args))
    resolve_speculative_arguments(args)
    assert vars(args) == before


def test_the_draft_window_is_compared_with_the_block_and_not_with_the_width(models, tmp_path):
    models.server_args(**draft_window(6), speculative_ddtree_budget=30)
    other = Models(tmp_path / "other")
    other.directory.mkdir()
    message = refusal(other, **draft_window(5), speculative_ddtree_budget=30)
    assert "draft-window-size" in message


def test_dflash_resolves_as_upstream_does(models):
    """block_size from the drafter's config; steps and topk 1; no overlap; 48 requests."""
    args = models.server_args(speculative_algorithm="DFLASH")
    assert args.speculative_num_draft_tokens == 6
    assert args.speculative_dflash_block_size is None
    assert (args.speculative_num_steps, args.speculative_eagle_topk) == (1, 1)
    assert (args.disable_overlap_schedule, args.max_running_requests) == (True, 48)
    assert args.speculative_ddtree_budget is None


@pytest.mark.parametrize("given", ["speculative_num_draft_tokens", "speculative_dflash_block_size"])
def test_dflash_block_size_flags_work_as_before(models, given):
    args = models.server_args(speculative_algorithm="DFLASH", **{given: 3})
    assert args.speculative_num_draft_tokens == 3
    assert (args.speculative_num_steps, args.speculative_eagle_topk) == (1, 1)


@pytest.mark.until("0100")
def test_a_cuda_server_runs_without_graphs(models):
    args = models.server_args(device="cuda", attention_backend="triton")
    assert args.disable_cuda_graph


def test_every_kind_of_algorithm_can_be_asked():
    assert all(hasattr(kind, "is_ddtree") for kind in algorithm_classes())


def test_the_algorithm_is_a_kind_of_dflash():
    ddtree = SpeculativeAlgorithm.from_string("DDTREE")
    assert ddtree.is_ddtree()
    assert ddtree.is_dflash()
    assert not ddtree.is_eagle()
    dflash = SpeculativeAlgorithm.from_string("DFLASH")
    assert dflash.is_dflash()
    assert not dflash.is_ddtree()


# --- the budget


@pytest.mark.parametrize("algorithm", ["DFLASH", None])
def test_a_budget_without_ddtree_is_refused(models, algorithm):
    message = refusal(models, speculative_algorithm=algorithm, speculative_ddtree_budget=7)
    assert "--speculative-ddtree-budget" in message
    assert str(algorithm) in message


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_below_one_is_refused(models, budget):
    message = refusal(models, speculative_ddtree_budget=budget)
    assert "--speculative-ddtree-budget" in message
    assert f"got {budget}" in message


@pytest.mark.parametrize(("vocab_size", "block_size", "most"), [(20, 2, 20), (3, 4, 3 + 9 + 27)])
def test_a_budget_that_no_tree_can_hold_is_refused(tmp_path, vocab_size, block_size, most):
    for budget in (most, most + 1):
        models = Models(tmp_path / str(budget))
        models.directory.mkdir()
        how = {
            "target": {"vocab_size": vocab_size},
            "draft": {"vocab_size": vocab_size},
            "speculative_dflash_block_size": block_size,
            "speculative_ddtree_budget": budget,
        }
        if budget == most:
            assert models.server_args(**how).speculative_num_draft_tokens == most + 1
        else:
            message = refusal(models, **how)
            assert f"--speculative-ddtree-budget {budget}" in message
            assert f"the {most} nodes" in message


def test_a_width_above_the_context_is_refused(models):
    message = refusal(models, context_length=64, speculative_ddtree_budget=64)
    assert "--speculative-ddtree-budget" in message
    assert "65 tokens" in message
    assert "64 tokens" in message


def test_a_contradicting_number_of_draft_tokens_is_refused(models):
    message = refusal(models, speculative_ddtree_budget=7, speculative_num_draft_tokens=6)
    assert "--speculative-num-draft-tokens" in message


@pytest.mark.parametrize("block_size", [0, 1])
def test_a_block_without_drafted_tokens_is_refused(models, block_size):
    """Block size 1 drafts nothing."""
    assert "--speculative-dflash-block-size" in refusal(
        models, speculative_dflash_block_size=block_size
    )


@pytest.mark.parametrize("algorithm", ["ddtree", "Ddtree"])
def test_a_misspelt_case_is_never_served_as_a_chain(models, algorithm):
    """The Python API does not check the choices of --speculative-algorithm."""
    try:
        args = models.server_args(speculative_algorithm=algorithm)
    except ValueError as error:
        assert "DDTREE" in str(error)
    else:
        assert args.speculative_algorithm == "DDTREE"
        assert args.speculative_num_draft_tokens == 32


# --- backends


@pytest.mark.parametrize("backend", ["triton", "torch_native"])
def test_backends_that_take_a_tree_mask(models, backend):
    assert models.server_args(attention_backend=backend).attention_backend == backend


@pytest.mark.parametrize(
    "backend",
    ["fa3", "fa4", "aiter", pytest.param("flashinfer", marks=pytest.mark.until("0110"))],
)
@pytest.mark.parametrize(
    "flag", ["attention_backend", "prefill_attention_backend", "decode_attention_backend"]
)
def test_backends_that_would_verify_a_chain_are_refused(models, backend, flag):
    message = refusal(models, **{flag: backend})
    assert "--attention-backend" in message
    assert backend in message


def test_the_default_backend_is_checked_as_resolved(models):
    """On a CPU the default is torch_native, which can serve a tree."""
    args = models.server_args(attention_backend=None)
    assert args.get_attention_backends() == ("torch_native", "torch_native")


# --- targets and topology


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        pytest.param(DEEPSEEK, "MLA", marks=pytest.mark.until("0120")),
        (
            {
                "architectures": ["Qwen2VLForConditionalGeneration"],
                "model_type": "qwen2_vl",
                "vision_config": {},
            },
            "multimodal",
        ),
    ],
)
def test_targets_that_are_refused_by_their_config(models, target, reason):
    message = refusal(models, target=target)
    assert reason in message
    assert "--model-path" in message


class TritonAttnBackend:
    """Known by its name, as the check knows it."""


def model_runner(**changes) -> SimpleNamespace:
    fields = {
        "mambaish_config": None,
        "sliding_window_size": None,
        "attn_backend": TritonAttnBackend(),
        "max_total_num_tokens": 33,
        "dtype": torch.bfloat16,
        "kv_cache_dtype": torch.bfloat16,
        "server_args": SimpleNamespace(
            speculative_num_draft_tokens=32, speculative_dflash_block_size=8
        ),
    }
    return SimpleNamespace(**(fields | changes))


def test_a_plain_model_runner_passes():
    check_ddtree_model_runner(model_runner())


@pytest.mark.parametrize(
    ("changes", "names", "flag"),
    [
        ({"mambaish_config": object()}, "Mamba", "--model-path"),
        ({"sliding_window_size": 128}, "128 tokens", "--model-path"),
        ({"attn_backend": object()}, "TritonAttnBackend", "--attention-backend"),
        ({"max_total_num_tokens": 32}, "33 KV slots", "--max-total-tokens"),
        ({"kv_cache_dtype": torch.float8_e4m3fn}, "got torch.float8_e4m3fn", "--kv-cache-dtype"),
    ],
)
def test_model_runners_that_are_refused(changes, names, flag):
    with pytest.raises(ValueError) as error:
        check_ddtree_model_runner(model_runner(**changes))
    assert names in str(error.value)
    assert flag in str(error.value)


def test_a_block_wider_than_the_context_is_refused(models):
    message = refusal(models, speculative_dflash_block_size=5000)
    assert "5000" in message and "--speculative-dflash-block-size" in message


# Arguments that not every release has.
SOME_RELEASES = [
    ({"enable_strict_thinking": True}, "--enable-strict-thinking True"),
    ({"kv_canary": "log"}, "--kv-canary log"),
]


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        ({"enable_torch_compile": True}, "--enable-torch-compile True"),
        ({"rl_on_policy_target": "fsdp"}, "--rl-on-policy-target fsdp"),
        (
            # On a CPU the sampling backend is always pytorch.
            {"sampling_backend": "ascend", "device": "cuda", "attention_backend": "triton"},
            "--sampling-backend ascend",
        ),
        ({"speculative_token_map": "file"}, "--speculative-token-map file"),
        ({"speculative_num_steps": 3}, "--speculative-num-steps, got 3"),
        ({"speculative_eagle_topk": 4}, "--speculative-eagle-topk, got 4"),
        pytest.param({"tp_size": 2}, "--tp-size 2", marks=pytest.mark.until("0090")),
        ({"pp_size": 2}, "--pp-size 2"),
        ({"tp_size": 2, "dp_size": 2, "enable_dp_attention": True}, "--enable-dp-attention"),
        ({"disaggregation_mode": "prefill"}, "--disaggregation-mode prefill"),
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode decode"),
        ({"page_size": 16}, "--page-size 16"),
        (
            {"enable_lora": True, "max_lora_rank": 8, "lora_target_modules": ["all"]},
            "--enable-lora",
        ),
        ({"enable_two_batch_overlap": True}, "--enable-two-batch-overlap"),
        ({"enable_pdmux": True}, "--enable-pdmux"),
        ({"speculative_accept_threshold_single": 0.5}, "--speculative-accept-threshold-single"),
        ({"speculative_accept_threshold_acc": 0.5}, "--speculative-accept-threshold-acc"),
    ]
    + [case for case in SOME_RELEASES if case[0].keys() <= ServerArgs.__dataclass_fields__.keys()],
)
def test_topologies_and_modes_that_are_refused(models, arguments, flag):
    assert flag in refusal(models, **arguments)


# --- drafters


def test_no_drafter_is_refused(models):
    assert "--speculative-draft-model-path" in refusal(models, speculative_draft_model_path=None)


@pytest.mark.parametrize(
    ("draft", "expected", "found"),
    [
        ({"hidden_size": 32}, "hidden_size 64", "32"),
        ({"vocab_size": 21}, "vocab_size 20", "21"),
        ({"num_target_layers": 5}, "num_target_layers 4", "5"),
        ({"architectures": ["Qwen3ForCausalLM"]}, "DFlashDraftModel", "['Qwen3ForCausalLM']"),
        ({"architectures": None}, "DFlashDraftModel", "[]"),
        (
            {"dflash_config": {"mask_token_id": 19, "target_layer_ids": [0, 4]}},
            "target_layer_ids",
            "[0, 4]",
        ),
        (
            {"dflash_config": {"mask_token_id": 19, "target_layer_ids": [-1, 2]}},
            "target_layer_ids",
            "[-1, 2]",
        ),
    ],
)
def test_a_drafter_for_another_target_is_refused(models, draft, expected, found):
    message = refusal(models, draft=draft)
    assert "--speculative-draft-model-path" in message
    assert expected in message
    assert f"found {found}" in message


def test_a_drafter_with_fewer_positions_than_the_context_is_refused(models, tmp_path):
    """Unless the context is capped to what the drafter knows."""
    message = refusal(models, draft={"max_position_embeddings": 256})
    assert "--context-length 256" in message
    capped = Models(tmp_path / "capped")
    capped.directory.mkdir()
    capped.server_args(draft={"max_position_embeddings": 256}, context_length=256)


def test_a_drafter_without_a_block_size(models, tmp_path):
    message = refusal(models, draft={"block_size": None})
    assert "--speculative-dflash-block-size" in message
    told = Models(tmp_path / "told")
    told.directory.mkdir()
    args = told.server_args(draft={"block_size": None}, speculative_dflash_block_size=5)
    assert args.speculative_dflash_block_size == 5


@pytest.mark.parametrize(
    "draft",
    [
        {"block_size": 0},
        {"block_size": "many"},
        {"dflash_config": {"mask_token_id": 19, "target_layer_ids": []}},
        {"dflash_config": {"mask_token_id": 19, "target_layer_ids": [0, "x"]}},
    ],
)
def test_a_malformed_drafter_config_is_refused(models, tmp_path, draft):
    message = refusal(models, draft=draft)
    assert "--speculative-draft-model-path" in message
    assert str(tmp_path / "draft") in message


@pytest.mark.parametrize("config", [None, "{", "{}"])
def test_a_drafter_without_a_readable_config_is_refused(models, tmp_path, config):
    broken = tmp_path / "broken"
    broken.mkdir()
    if config is not None:
        (broken / "config.json").write_text(config)
    message = refusal(models, speculative_draft_model_path=str(broken))
    assert "--speculative-draft-model-path" in message
    assert str(broken) in message


def test_a_path_that_is_not_there_is_refused(models, tmp_path):
    nowhere = str(tmp_path / "nowhere")
    assert nowhere in refusal(models, speculative_draft_model_path=nowhere)
