# SPDX-License-Identifier: Apache-2.0
"""The table of the comparison, and when the demo fails because of it."""

import pytest
from demo.client import Answer
from demo.failure import Failure
from demo.table import HEADINGS, NOTE, Measurement, render_table, verdict
from demo.terminal import WIDTH

TEXTS = ((5, 6, 7, 8, 9), (5, 1, 2, 3, 4))


def measured(method: str, steps: int, texts=TEXTS) -> Measurement:
    answers = [Answer(text, steps) for text in texts]
    return Measurement(method, answers, 1.25, speculative=method != "no speculation")


PLAIN, DFLASH, DDTREE = measured("no speculation", 0), measured("DFLASH", 3), measured("DDTREE", 2)


def test_the_whole_table():
    assert "\n".join(render_table(PLAIN, [DFLASH, DDTREE])) == (
        """\
                 verify steps   tokens   tokens a step   wall time   same text as without
──────────────   ────────────   ──────   ─────────────   ─────────   ────────────────────
no speculation              8        8            1.00       1.2 s                      —
DFLASH                      6        8            1.33       1.2 s             yes, all 2
DDTREE                      4        8            2.00       1.2 s             yes, all 2"""
    )


def test_another_text_is_called_out():
    other = measured("DDTREE", 2, (TEXTS[0], (5, 1, 2, 9, 4)))
    assert render_table(PLAIN, [other])[-1].endswith("NO, 1 of 2")


def test_it_fits_the_terminal():
    many = Measurement("no speculation", [Answer((1,) * 100_001, 0)] * 20, 1000.0, False)
    lines = render_table(many, [])
    assert max(map(len, (*lines, *NOTE))) <= WIDTH - 4
    assert all(heading in lines[0] for heading in HEADINGS)


def test_the_verdict_names_the_gain():
    assert verdict(PLAIN, DFLASH, DDTREE) == (
        "Same text from all three. DDTREE makes 2.00 tokens a step, 50% more than DFLASH."
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ((5, 1, 2, 9, 4), "prompt 2 differs from token 4 on"),
        ((5, 1, 2), "prompt 2 differs from token 4 on"),
        ((5, 1, 2, 3, 4, 5), "prompt 2 differs from token 6 on"),
    ],
)
@pytest.mark.parametrize("method", ["DFLASH", "DDTREE"])
def test_another_text_fails(method, text, found):
    runs = {"DFLASH": DFLASH, "DDTREE": DDTREE, method: measured(method, 2, (TEXTS[0], text))}
    with pytest.raises(Failure, match=f"^{method}: expected the text .*{found}") as failure:
        verdict(PLAIN, runs["DFLASH"], runs["DDTREE"])
    assert failure.value.exit_code == 1


@pytest.mark.parametrize("steps", [3, 4])
def test_a_tree_that_is_not_ahead_fails(steps):
    with pytest.raises(Failure, match=r"expected more tokens a step than DFLASH's 1\.33, found"):
        verdict(PLAIN, DFLASH, measured("DDTREE", steps))


def test_answers_of_one_token_have_no_steps():
    lone = measured("DFLASH", 0, ((5,), (5,)))
    assert (lone.tokens, lone.steps, lone.tokens_a_step) == (0, 0, 0.0)
