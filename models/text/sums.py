# SPDX-License-Identifier: Apache-2.0
"""Arithmetic lines, number sequences and word problems."""

from models.text.chooser import Chooser
from models.text.words import NAMES, THINGS


def sums(chooser: Chooser) -> tuple[str, str]:
    """``(prompt, completion)`` of one of three forms of arithmetic."""
    form = chooser.pick((_column, _sequence, _word_problem))
    return form(chooser)


def _column(chooser: Chooser) -> tuple[str, str]:
    lines = []
    for _ in range(chooser.number(5, 9)):
        left, right = chooser.number(1, 40), chooser.number(1, 40)
        if left > right and chooser.chance(0.4):
            lines.append(f"{left} - {right} = {left - right}")
        else:
            lines.append(f"{left} + {right} = {left + right}")
    return "\n".join(lines[:2]), "\n" + "\n".join(lines[2:]) + "\n"


def _sequence(chooser: Chooser) -> tuple[str, str]:
    start, step = chooser.number(1, 40), chooser.pick((1, 2, 3, 4, 5, 10))
    numbers = [start + step * i for i in range(chooser.number(8, 14))]
    return f"From {start} in steps of {step}:", " " + " ".join(map(str, numbers)) + "\n"


def _word_problem(chooser: Chooser) -> tuple[str, str]:
    name, friend = chooser.distinct(NAMES, 2)
    thing = chooser.lean(THINGS, name)
    have, more = chooser.number(2, 30), chooser.number(2, 30)
    prompt = f"{name} has {have} {thing}s and {friend} brings {more} more."
    remarks = (f"Well done, {friend}!", f"{name} is happy.", f"That is a lot of {thing}s.")
    answer = f" Since {have} + {more} = {have + more}, {name} has {have + more} {thing}s now. "
    return prompt, answer + chooser.lean(remarks, thing) + "\n"
