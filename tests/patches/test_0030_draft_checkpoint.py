# SPDX-License-Identifier: Apache-2.0
"""A draft checkpoint with missing tensors is refused by DDTREE, and by DDTREE only."""

import re
from types import SimpleNamespace

import pytest
import torch
from sglang.srt.models.dflash import DFlashDraftModel
from sglang.srt.speculative import ddtree_draft

CHECKPOINT_NAMES = [
    "fc.weight",
    "hidden_norm.weight",
    "norm.weight",
    *(
        f"layers.{layer}.{name}.weight"
        for layer in range(2)
        for name in (
            "input_layernorm",
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.q_norm",
            "self_attn.o_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
        )
    ),
]


class DraftModel(torch.nn.Module):
    """The parameter names of a DFlash drafter; remembers what was loaded into which.

    Its weights are loaded by the real model class.
    """

    load_weights = DFlashDraftModel.load_weights
    num_context_features = 1
    config = SimpleNamespace(hidden_size=1)

    def __init__(self):
        super().__init__()
        self.loaded = []
        self.parameters_by_name = {}
        for name in CHECKPOINT_NAMES:
            fused = re.sub(r"\.[qkv]_proj\.", ".qkv_proj.", name)
            fused = re.sub(r"\.(gate|up)_proj\.", ".gate_up_proj.", fused)
            self.parameters_by_name[fused] = self.parameter(fused)

    def parameter(self, name: str) -> torch.nn.Parameter:
        param = torch.nn.Parameter(torch.zeros(1))
        param.weight_loader = lambda param, weight, shard=None: self.loaded.append((name, shard))
        return param

    def named_parameters(self, *args, **kwargs):
        return iter(self.parameters_by_name.items())


@pytest.fixture(params=["DDTREE", "DFLASH"])
def algorithm(request, monkeypatch):
    monkeypatch.setattr(
        ddtree_draft,
        "get_global_server_args",
        lambda: SimpleNamespace(speculative_algorithm=request.param),
    )
    return request.param


def tensors(names):
    return [(name, torch.zeros(1)) for name in names]


@pytest.mark.parametrize("prefix", ["", "model."])
def test_a_complete_checkpoint_loads(algorithm, prefix):
    model = DraftModel()
    model.load_weights(tensors([prefix + name for name in CHECKPOINT_NAMES]))
    assert len(model.loaded) == len(CHECKPOINT_NAMES)
    assert ("layers.1.self_attn.qkv_proj.weight", "k") in model.loaded
    assert ("layers.0.mlp.gate_up_proj.weight", 1) in model.loaded


def test_a_checkpoint_with_fused_projections_loads(algorithm):
    """The loader takes a projection in parts or as the model names it."""
    model = DraftModel()
    model.load_weights(tensors(model.parameters_by_name))
    assert len(model.loaded) == len(model.parameters_by_name) < len(CHECKPOINT_NAMES)


def test_tensors_the_model_does_not_know_are_ignored(algorithm):
    DraftModel().load_weights(tensors([*CHECKPOINT_NAMES, "rotary_emb.inv_freq", "lm_head.weight"]))


@pytest.mark.parametrize("missing", CHECKPOINT_NAMES)
def test_one_missing_tensor(algorithm, missing):
    weights = tensors([name for name in CHECKPOINT_NAMES if name != missing])
    if algorithm == "DFLASH":
        DraftModel().load_weights(weights)
        return
    with pytest.raises(ValueError) as error:
        DraftModel().load_weights(weights)
    message = str(error.value)
    assert "lacks 1 tensors" in message
    assert missing in message
    assert "--speculative-draft-model-path" in message
    assert "\n" not in message


def test_an_empty_checkpoint_is_refused_in_one_short_line(algorithm):
    if algorithm == "DFLASH":
        DraftModel().load_weights([])
        return
    with pytest.raises(ValueError, match=f"lacks {len(CHECKPOINT_NAMES)} tensors") as error:
        DraftModel().load_weights([])
    assert len(str(error.value)) < 400
