# SPDX-License-Identifier: Apache-2.0
"""The comparison of the methods: its figures, its table and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from .client import Answer
from .failure import Failure

HEADINGS = ("", "verify steps", "tokens", "tokens a step", "wall time", "same text as without")
NOTE = (
    "A step is one pass of the target model for one prompt; a pass over a batch makes several.",
    "The first token of each answer comes with the prompt and needs no step: it is not counted.",
    "Wall time on a CPU with a model this small is mostly overhead; it says nothing about a GPU.",
)


@dataclass(frozen=True)
class Measurement:
    """What one method made of the prompts; `seconds` is the wall time of all of them."""

    method: str
    answers: Sequence[Answer]
    seconds: float
    speculative: bool

    @property
    def tokens(self) -> int:
        """Generated tokens after the first of each answer."""
        return sum(len(answer.token_ids) - 1 for answer in self.answers)

    @property
    def steps(self) -> int:
        """Target passes, summed over the prompts; one a token without speculation."""
        if not self.speculative:
            return self.tokens
        return sum(answer.verify_steps for answer in self.answers)

    @property
    def tokens_a_step(self) -> float:
        """Mean over all steps; 0 if there was none."""
        return self.tokens / self.steps if self.steps else 0.0


def same_answers(measurement: Measurement, reference: Measurement) -> int:
    """How many answers are token for token those of the reference."""
    pairs = zip(measurement.answers, reference.answers, strict=True)
    return sum(mine.token_ids == other.token_ids for mine, other in pairs)


def render_table(reference: Measurement, others: Sequence[Measurement]) -> list[str]:
    """The lines of the table; `reference` is decoding without speculation."""
    rows = [HEADINGS]
    for each in (reference, *others):
        same = same_answers(each, reference)
        count = len(reference.answers)
        identical = f"yes, all {count}" if same == count else f"NO, {same} of {count}"
        rows.append(
            (
                each.method,
                f"{each.steps:,}",
                f"{each.tokens:,}",
                f"{each.tokens_a_step:.2f}",
                f"{each.seconds:.1f} s",
                "—" if each is reference else identical,
            )
        )
    return align(rows)


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with a rule below its headings; all columns but the first to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("   ".join(cells))
    rule = "   ".join("─" * width for width in widths)
    return [lines[0], rule, *lines[1:]]


def _first_difference(measurement: Measurement, reference: Measurement) -> str:
    pairs = zip(measurement.answers, reference.answers, strict=True)
    number, (mine, other) = next(
        (number, pair)
        for number, pair in enumerate(pairs, 1)
        if pair[0].token_ids != pair[1].token_ids
    )
    tokens = zip_longest(mine.token_ids, other.token_ids)
    position = next(i for i, (a, b) in enumerate(tokens, 1) if a != b)
    return f"prompt {number} differs from token {position} on"


def require_same_text(measurement: Measurement, reference: Measurement) -> None:
    """Check that a method changed no token.

    Raises:
        Failure: it did; says where.
    """
    if same_answers(measurement, reference) < len(reference.answers):
        raise Failure(
            f"{measurement.method}: expected the text that decoding without speculation gives, "
            f"found that {_first_difference(measurement, reference)}; this is a defect, please "
            "report it"
        )


def verdict(reference: Measurement, dflash: Measurement, ddtree: Measurement) -> str:
    """One sentence on what the table shows.

    Raises:
        Failure: a speculative method changed the text, or the tree was not ahead of the chain.
    """
    for each in (dflash, ddtree):
        require_same_text(each, reference)
    if ddtree.tokens_a_step <= dflash.tokens_a_step:
        raise Failure(
            f"DDTREE: expected more tokens a step than DFLASH's {dflash.tokens_a_step:.2f}, found "
            f"{ddtree.tokens_a_step:.2f}; use a drafter that was trained for this target"
        )
    gain = ddtree.tokens_a_step / dflash.tokens_a_step - 1
    return (
        f"Same text from all three. DDTREE makes {ddtree.tokens_a_step:.2f} tokens a step, "
        f"{gain:.0%} more than DFLASH."
    )
