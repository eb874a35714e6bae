# SPDX-License-Identifier: Apache-2.0
"""The sampled section of the demo."""

import pytest
from demo.client import Answer
from demo.failure import Failure
from demo.methods import DDTREE, DFLASH, PLAIN
from demo.sampled import TEMPERATURES, render_sampled, require_same_samples
from demo.table import Measurement


def measured(token: int = 7):
    """Two prompts; `token` is the last token of DDTREE's second answer at temperature 1."""
    texts = {t: [(1, 2, 3, 4, 5), (4, 5, 6, 7, 7)] for t in (0.0, *TEMPERATURES)}
    result = {
        (method, t): Measurement(method, [Answer(text, steps) for text in texts[t]], 1.0, steps > 0)
        for method, steps in ((PLAIN, 0), (DFLASH, 2), (DDTREE, 1))
        for t in texts
        if method != DFLASH or t == 0.0
    }
    changed = [Answer(texts[1.0][0], 1), Answer((4, 5, 6, 7, token), 1)]
    result[DDTREE, 1.0] = Measurement(DDTREE, changed, 1.0, True)
    return result


def test_the_table():
    assert render_sampled(measured()) == [
        "temperature   DFLASH   DDTREE   same text, same seeds",
        "───────────   ──────   ──────   ─────────────────────",
        "0.0             2.00     4.00              yes, all 2",
        "0.7                —     4.00              yes, all 2",
        "1.0                —     4.00              yes, all 2",
    ]


def test_the_same_seeds_pass():
    require_same_samples(measured())


def test_another_sample_fails_and_is_called_out():
    assert render_sampled(measured(token=8))[-1].endswith("NO, 1 of 2")
    with pytest.raises(Failure, match="prompt 2 differs from token 5 on"):
        require_same_samples(measured(token=8))
