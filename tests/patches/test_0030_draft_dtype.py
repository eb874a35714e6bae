# SPDX-License-Identifier: Apache-2.0
"""The dtype of an eager draft forward's embeddings: its model's, on every device."""

import pytest
import torch
from draft_forward import embeds_dtype


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_draft_is_fed_in_its_own_dtype(device, dtype):
    """Upstream casts to bfloat16 off the CPU, which a float16 drafter's layers refuse."""
    assert embeds_dtype(device, dtype, ddtree_budget=31) == dtype
