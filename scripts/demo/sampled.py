# SPDX-License-Identifier: Apache-2.0
"""The sampled section: accept lengths by temperature, and the same text for the same seeds."""

from __future__ import annotations

from collections.abc import Mapping

from .methods import DDTREE, DFLASH, PLAIN
from .table import Measurement, align, require_same_text, same_answers

TEMPERATURES = (0.7, 1.0)
NOTE = (
    "Each prompt has a seed of its own. A token depends on the seed, its position and the",
    "target's logits, so the drafter cannot change it.",
    "*: DFLASH does not sample on a CPU, it would answer greedily. These are the steps of its",
    "chain along the same text, counted with the drafter in PyTorch.",
)
_HEADINGS = ("temperature", "DFLASH", "DDTREE", "same text, same seeds")

Measured = Mapping[tuple[str, float], Measurement]


def render_sampled(measured: Measured) -> list[str]:
    """Tokens a step at each temperature; `measured` is by method and temperature."""
    rows = [_HEADINGS]
    for temperature in (0.0, *TEMPERATURES):
        reference, ddtree = measured[PLAIN, temperature], measured[DDTREE, temperature]
        dflash = measured[DFLASH, temperature]
        same, count = same_answers(ddtree, reference), len(reference.answers)
        rows.append(
            (
                f"{temperature:.1f}",
                f"{dflash.tokens_a_step:.2f}{'*' if temperature else ' '}",
                f"{ddtree.tokens_a_step:.2f}",
                f"yes, all {count}" if same == count else f"NO, {same} of {count}",
            )
        )
    return align(rows)


def require_same_samples(measured: Measured) -> None:
    """Check that the seeds gave the same text with and without speculation.

    Raises:
        Failure: they did not.
    """
    for temperature in TEMPERATURES:
        require_same_text(measured[DDTREE, temperature], measured[PLAIN, temperature])
