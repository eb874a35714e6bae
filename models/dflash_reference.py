# SPDX-License-Identifier: Apache-2.0
"""The DFlash drafter in plain PyTorch.

It trains the shipped drafter and serves the tests as an oracle. The parameters have the names
and shapes of a DFlash checkpoint, so ``state_dict()`` is the file's content. The drafter has no
embedding and no head of its own: it borrows the target's.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn


class _Attention(nn.Module):
    """Attention of draft blocks to the projected context and to all of their own block."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, self.head_dim = config["hidden_size"], config["head_dim"]
        queries = config["num_attention_heads"] * self.head_dim
        keys = config["num_key_value_heads"] * self.head_dim
        self.q_proj = nn.Linear(hidden, queries, bias=False)
        self.k_proj = nn.Linear(hidden, keys, bias=False)
        self.v_proj = nn.Linear(hidden, keys, bias=False)
        self.o_proj = nn.Linear(queries, hidden, bias=False)
        self.q_norm = nn.RMSNorm(self.head_dim, eps=config["rms_norm_eps"])
        self.k_norm = nn.RMSNorm(self.head_dim, eps=config["rms_norm_eps"])
        self.rope_theta = config["rope_theta"]

    def _rotate(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        exponents = torch.arange(0, self.head_dim, 2, device=x.device) / self.head_dim
        angles = positions[:, None, :, None] * self.rope_theta**-exponents
        cos, sin = angles.cos(), angles.sin()
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def _keys(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return self._rotate(self.k_norm(self._heads(self.k_proj(x))), positions)

    def forward(self, x, positions, context, context_positions, mask):
        q = self._rotate(self.q_norm(self._heads(self.q_proj(x))), positions)
        k = torch.cat([self._keys(context, context_positions), self._keys(x, positions)], 2)
        v = torch.cat([self._heads(self.v_proj(context)), self._heads(self.v_proj(x))], 2)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class _Mlp(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class _Layer(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        self.self_attn = _Attention(config)
        self.mlp = _Mlp(config)
        self.input_layernorm = nn.RMSNorm(config["hidden_size"], eps=config["rms_norm_eps"])
        self.post_attention_layernorm = nn.RMSNorm(
            config["hidden_size"], eps=config["rms_norm_eps"]
        )

    def forward(self, x, *attention_inputs):
        x = x + self.self_attn(self.input_layernorm(x), *attention_inputs)
        return x + self.mlp(self.post_attention_layernorm(x))


class DFlashDrafter(nn.Module):
    """Drafts whole blocks: one token that is known, and ``block_size - 1`` masks to fill."""

    def __init__(self, config: dict) -> None:
        """``config`` is the content of the checkpoint's config.json."""
        super().__init__()
        self.config = config
        self.block_size = config["block_size"]
        self.mask_token_id = config["dflash_config"]["mask_token_id"]
        self.target_layer_ids = tuple(config["dflash_config"]["target_layer_ids"])
        hidden = config["hidden_size"]
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config["num_hidden_layers"]))
        self.fc = nn.Linear(hidden * len(self.target_layer_ids), hidden, bias=False)
        self.hidden_norm = nn.RMSNorm(hidden, eps=config["rms_norm_eps"])
        self.norm = nn.RMSNorm(hidden, eps=config["rms_norm_eps"])

    @classmethod
    def from_pretrained(cls, path: str | Path) -> "DFlashDrafter":
        """Load a checkpoint directory; raises if a tensor is missing, unknown or misshapen."""
        drafter = cls(json.loads((Path(path) / "config.json").read_text()))
        drafter.load_state_dict(load_file(Path(path) / "model.safetensors"))
        return drafter.eval()

    def save_pretrained(self, path: str | Path) -> None:
        """Write config.json and model.safetensors into the directory ``path``."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        tensors = {name: t.detach().contiguous() for name, t in self.state_dict().items()}
        save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})
        (path / "config.json").write_text(json.dumps(self.config, indent=2) + "\n")

    def target_features(self, hidden_states: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """What the drafter reads of the target.

        Args:
            hidden_states: transformers' ``output_hidden_states`` (embeddings first), each
                ``[n, c, hidden]``.

        Returns:
            The outputs of the layers ``target_layer_ids`` side by side, ``[n, c, ids * hidden]``.
        """
        return torch.cat([hidden_states[i + 1] for i in self.target_layer_ids], -1)

    def block_ids(self, known: torch.Tensor) -> torch.Tensor:
        """Input ids ``[..., block_size]``: each of the ``known`` tokens ``[...]``, then masks."""
        masks = known.new_full((*known.shape, self.block_size - 1), self.mask_token_id)
        return torch.cat([known[..., None], masks], -1)

    def forward(
        self, features: torch.Tensor, block_embeds: torch.Tensor, anchors: torch.Tensor
    ) -> torch.Tensor:
        """Hidden states of draft blocks, to be read by the target's head.

        Args:
            features: :meth:`target_features` of positions ``0..c-1``, ``[n, c, ids * hidden]``.
            block_embeds: target embeddings of :meth:`block_ids`, ``[n, k, block_size, hidden]``.
            anchors: int64 ``[n, k]``, the position of each block's known token. A block sees the
                features of positions before its anchor and itself, and no other block.

        Returns:
            ``[n, k, block_size, hidden]``; entry j predicts the token at ``anchor + j`` (entry 0,
            the known token, predicts nothing).
        """
        n, k, block, _ = block_embeds.shape
        device = features.device
        context = self.hidden_norm(self.fc(features))
        context_positions = torch.arange(context.shape[1], device=device).expand(n, -1)
        positions = (anchors[..., None] + torch.arange(block, device=device)).flatten(1)
        sees_context = context_positions[:, None] < anchors.repeat_interleave(block, 1)[..., None]
        owner = torch.arange(k, device=device).repeat_interleave(block)
        sees_block = (owner[:, None] == owner).expand(n, -1, -1)
        mask = torch.cat([sees_context, sees_block], -1)[:, None]
        x = block_embeds.flatten(1, 2)
        for layer in self.layers:
            x = layer(x, positions, context, context_positions, mask)
        return self.norm(x).unflatten(1, (k, block))
