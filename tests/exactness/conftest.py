# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import pytest
import torch


@pytest.fixture(autouse=True)
def sampler_of_a_server_without_a_gpu(monkeypatch):
    """What the verify step asks of the server's arguments; a fixed stream of coins."""
    from sglang.srt.speculative import dflash_info

    args = SimpleNamespace(enable_nan_detection=False, sampling_backend="pytorch")
    monkeypatch.setattr(dflash_info, "get_global_server_args", lambda: args)
    torch.manual_seed(20261130)
