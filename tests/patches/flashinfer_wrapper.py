# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's paged prefill wrapper in plain PyTorch, as far as a verify forward uses it.

It keeps to what flashinfer/prefill.py (0.6.8) does between plan and run: masks are packed eight
pairs a byte, each request from a byte of its own; with CUDA graphs everything is copied into
buffers that were given at the start, a mask is refused if there is no buffer for it, and which
kind of mask is applied depends on that buffer alone.
"""

import torch


class PagedPrefillWrapper:
    def __init__(
        self,
        workspace,
        layout,
        *,
        backend,
        use_cuda_graph=False,
        qo_indptr_buf=None,
        paged_kv_indptr_buf=None,
        paged_kv_indices_buf=None,
        paged_kv_last_page_len_buf=None,
        custom_mask_buf=None,
        mask_indptr_buf=None,
    ):
        assert (layout, backend) == ("NHD", "fa2")
        self.use_cuda_graph = use_cuda_graph
        self.qo_indptr, self.kv_indptr = qo_indptr_buf, paged_kv_indptr_buf
        self.kv_indices = paged_kv_indices_buf
        self.mask, self.mask_indptr = custom_mask_buf, mask_indptr_buf

    def begin_forward(
        self,
        qo_indptr,
        kv_indptr,
        kv_indices,
        last_page_len,
        num_qo_heads,
        num_kv_heads,
        head_dim,
        page_size,
        *,
        custom_mask=None,
        **rest,
    ):
        """Plan: `plan` of FlashInfer."""
        assert page_size == 1
        assert last_page_len.tolist() == [1] * (len(qo_indptr) - 1)
        pairs = (qo_indptr.diff() * kv_indptr.diff()).cumsum(0).tolist()
        if not self.use_cuda_graph:
            self.qo_indptr, self.kv_indptr, self.kv_indices = qo_indptr, kv_indptr, kv_indices
            self.mask = self.mask_indptr = None
            if custom_mask is not None:
                self.mask, self.mask_indptr = pack(custom_mask, pairs)
            return
        assert len(qo_indptr) == len(self.qo_indptr)
        assert len(kv_indices) <= len(self.kv_indices)
        self.qo_indptr.copy_(qo_indptr)
        self.kv_indptr.copy_(kv_indptr)
        self.kv_indices[: len(kv_indices)].copy_(kv_indices)
        if custom_mask is not None:
            if self.mask is None:
                raise ValueError("custom_mask_buf must be initialized in cuda graph mode")
            packed, indptr = pack(custom_mask, pairs)
            self.mask[: len(packed)].copy_(packed)
            self.mask_indptr.copy_(indptr)

    def forward(self, q, kv, *, causal, sm_scale, **rest):
        """Run: attention from what was planned, in float64; kv is (keys, values) by slot."""
        assert rest == dict.fromkeys(("k_scale", "v_scale")) | {
            "window_left": -1,
            "logits_soft_cap": 0.0,
        }
        output = torch.empty_like(q)
        keys, values = kv
        for i in range(len(self.qo_indptr) - 1):
            rows = slice(self.qo_indptr[i], self.qo_indptr[i + 1])
            slots = self.kv_indices[self.kv_indptr[i] : self.kv_indptr[i + 1]].long()
            group = q.shape[1] // keys.shape[1]
            k = keys[slots].repeat_interleave(group, 1).double()
            v = values[slots].repeat_interleave(group, 1).double()
            scores = torch.einsum("qhd,khd->hqk", q[rows].double(), k) * sm_scale
            width, length = scores.shape[1:]
            if self.mask is not None:
                bits = unpack(self.mask[self.mask_indptr[i] : self.mask_indptr[i + 1]])
                seen = bits[: width * length].view(width, length)
            elif causal:
                seen = torch.ones(width, length, dtype=torch.bool).tril(length - width)
            else:
                seen = torch.ones(width, length, dtype=torch.bool)
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            output[rows] = torch.einsum("hqk,khd->qhd", weights, v).to(q.dtype)
        return output


def pack(mask: torch.Tensor, ends: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Little-endian bytes of a flat mask whose segments end at `ends`, and their bounds."""
    chunks, start = [], 0
    for end in ends:
        bits = torch.nn.functional.pad(mask[start:end].to(torch.uint8), (0, -(end - start) % 8))
        chunks.append((bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8))
        start = end
    bounds = torch.tensor([0] + [len(chunk) for chunk in chunks]).cumsum(0)
    return torch.cat(chunks), bounds.to(torch.int32)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    return (packed[:, None] >> torch.arange(8) & 1).flatten().bool()
