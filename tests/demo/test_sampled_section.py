# SPDX-License-Identifier: Apache-2.0
"""The sampled section of the demo."""

import pytest
from demo.chain import chain_steps
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
    }
    changed = [Answer(texts[1.0][0], 1), Answer((4, 5, 6, 7, token), 1)]
    result[DDTREE, 1.0] = Measurement(DDTREE, changed, 1.0, True)
    return result


def test_the_table():
    assert render_sampled(measured()) == [
        "temperature   DFLASH   DDTREE   same text, same seeds",
        "───────────   ──────   ──────   ─────────────────────",
        "0.0            2.00      4.00              yes, all 2",
        "0.7            2.00*     4.00              yes, all 2",
        "1.0            2.00*     4.00              yes, all 2",
    ]


def test_the_same_seeds_pass():
    require_same_samples(measured())


def test_another_sample_fails_and_is_called_out():
    assert render_sampled(measured(token=8))[-1].endswith("NO, 1 of 2")
    with pytest.raises(Failure, match="prompt 2 differs from token 5 on"):
        require_same_samples(measured(token=8))


@pytest.mark.parametrize(
    ("drafted", "steps"),
    [
        ([[9, 9]] * 4, 4),  # nothing agrees: a token a step
        ([[11, 12], [12, 13], [13, 14], [14, 15]], 2),  # two agree and one is added
        ([[11, 9], [9, 9], [13, 14], [9, 9]], 2),
        ([[9, 12], [12, 9], [9, 9], [14, 15]], 3),
    ],
)
def test_steps_of_a_chain(drafted, steps):
    """Text 10 to 14 from position 2 on; a step takes what agrees, and one more."""
    assert chain_steps(drafted, [7, 7, 10, 11, 12, 13, 14], 2, 6) == steps
