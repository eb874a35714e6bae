# SPDX-License-Identifier: Apache-2.0
"""The optimizer and learning-rate schedule that both trainings share."""

from collections.abc import Iterable

import torch

WARMUP_STEPS = 80
FINAL_SHARE = 0.02


def make_optimizer(parameters: Iterable[torch.nn.Parameter], weight_decay: float):
    """AdamW that decays matrices only; the learning rate is set by :func:`set_learning_rate`."""
    parameters = list(parameters)
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98))


def set_learning_rate(optimizer, step: int, steps: int, peak: float) -> None:
    """Warm up, hold ``peak`` for the first half of ``steps``, then fall linearly to 2 % of it."""
    fall = min(1.0, 2 * (1 - step / steps))
    share = min(1.0, (step + 1) / WARMUP_STEPS) * max(FINAL_SHARE, fall)
    for group in optimizer.param_groups:
        group["lr"] = peak * share
