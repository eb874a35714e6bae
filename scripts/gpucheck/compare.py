# SPDX-License-Identifier: Apache-2.0
"""Two engines, the same requests: the frame of every check that compares answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from demo.failure import Failure

from .answers import NEAR_TIE, Difference, differences, greedy_gap, with_gaps
from .engine import Ask, Bench, Reply
from .graph_log import GraphLog
from .noise import seeded_gap
from .served import EngineSpec, without_speculation
from .states import Outcome, State


@dataclass(frozen=True)
class Answered:
    """What one engine made of the batches; the replies by label."""

    replies: dict[str, Reply]
    graphs: GraphLog

    @property
    def tokens(self) -> dict[str, tuple[int, ...]]:
        return {label: reply.token_ids for label, reply in self.replies.items()}

    @property
    def tokens_a_step(self) -> float | None:
        """Tokens after the first of each answer by verify step; None without speculation."""
        steps = sum(reply.verify_steps for reply in self.replies.values())
        tokens = sum(len(reply.token_ids) - 1 for reply in self.replies.values())
        return tokens / steps if steps else None


def ask_all(bench: Bench, spec: EngineSpec, batches: Sequence[Sequence[Ask]]) -> Answered:
    """Start an engine and ask it one batch after another."""
    with bench.engine(spec) as engine:
        replies = {}
        for batch in batches:
            answers = engine.answer(batch)
            replies |= {ask.label: reply for ask, reply in zip(batch, answers, strict=True)}
        return Answered(replies, engine.graphs())


def measure_gaps(
    bench: Bench,
    spec: EngineSpec,
    asks: Iterable[Ask],
    answers: Mapping[str, Sequence[int]],
    found: Sequence[Difference],
) -> dict[str, float | None]:
    """How far from a tie each difference is, in an engine without speculation of that dtype.

    An answer that has ended where the other goes on has no gap.

    Args:
        answers: of one side, whose tokens before the difference are also the other side's.
    """
    by_label = {ask.label: ask for ask in asks}
    gaps: dict[str, float | None] = {each.request: None for each in found}
    scored = [each for each in found if None not in (each.left, each.right)]
    if not scored:
        return gaps
    prefixes = [
        (*by_label[each.request].input_ids, *answers[each.request][: each.position])
        for each in scored
    ]
    with bench.engine(without_speculation(spec)) as engine:
        measured = engine.next_log_probs(prefixes, [(e.left, e.right) for e in scored])
    for each, prefix, (best, (left, right)) in zip(scored, prefixes, measured, strict=True):
        ask = by_label[each.request]
        if ask.seed is None:
            gaps[each.request] = greedy_gap(best, left, right)
        else:
            tokens, last = (each.left, each.right), len(prefix) - 1
            gaps[each.request] = seeded_gap((left, right), tokens, ask.temperature, ask.seed, last)
    return gaps


@dataclass(frozen=True)
class Part:
    """One comparison: the engines of both sides, what they answered, where they differ."""

    title: str
    dtype: str
    left: Answered
    right: Answered
    found: list[Difference]

    def as_json(self) -> dict[str, Any]:
        near = sum(each.is_near_tie(self.dtype) for each in self.found)
        return {
            "dtype": self.dtype,
            "requests": len(self.left.replies),
            "tokens": sum(map(len, self.left.tokens.values())),
            "equal": len(self.left.replies) - len(self.found),
            "near_ties": near,
            "different": len(self.found) - near,
            "near_tie_limit_nats": NEAR_TIE[self.dtype],
            "tokens_a_step": {"left": self.left.tokens_a_step, "right": self.right.tokens_a_step},
            "graph_steps": {
                "left": self.left.graphs.as_json(),
                "right": self.right.graphs.as_json(),
            },
            "differences": [asdict(each) for each in self.found],
        }


def compare(
    bench: Bench,
    title: str,
    sides: tuple[EngineSpec, EngineSpec],
    batches: Sequence[Sequence[Ask]],
) -> Part:
    """Ask both engines, one after the other, and measure how near a tie each difference is."""
    left, right = (ask_all(bench, spec, batches) for spec in sides)
    return compare_answered(bench, title, sides[0], batches, left, right)


def compare_answered(
    bench: Bench,
    title: str,
    spec: EngineSpec,
    batches: Sequence[Sequence[Ask]],
    left: Answered,
    right: Answered,
) -> Part:
    """The same for answers that are there already; `spec` is that of the left side."""
    dtype = spec.dtype if bench.machine.on_gpu else "float32"
    found = differences(left.tokens, right.tokens)
    if found:
        asks = [ask for batch in batches for ask in batch]
        found = with_gaps(found, measure_gaps(bench, spec, asks, left.tokens, found))
    return Part(title, dtype, left, right, found)


def judge(parts: Sequence[Part], names: tuple[str, str], problems: Sequence[str] = ()) -> Outcome:
    """Passed if every difference is a near tie, and nothing else was found to be wrong.

    Args:
        names: what the sides are called.
        problems: what else failed, one line each.
    """
    details, bad, near, requests, tokens = list(problems), 0, 0, 0, 0
    for part in parts:
        requests += len(part.left.replies)
        tokens += sum(map(len, part.left.tokens.values()))
        for each in part.found:
            if each.is_near_tie(part.dtype):
                near += 1
            else:
                bad += 1
            details.append(f"{part.title}: {each.describe(names, part.dtype)}")
    summary = f"{requests - near - bad} of {requests} answers equal ({tokens:,} tokens)"
    summary += f", {near} part at a near tie" if near else ""
    summary += f", {bad} DIFFERENT" if bad else ""
    if problems:
        summary = f"{problems[0]}; {summary}"
    state = State.FAILED if bad or problems else State.PASSED
    return Outcome(state, summary, details, {part.title: part.as_json() for part in parts})


def judge_runs(
    runs: Mapping[str, Callable[[], Part]], names: tuple[str, str], problems: Sequence[str] = ()
) -> Outcome:
    """Make and judge several comparisons; one whose engine fails leaves the others.

    Args:
        runs: makes each part, by its title.
        problems: may grow while the parts are made.
    """
    parts, failed, lines = [], [], []
    for title, run in runs.items():
        try:
            parts.append(run())
        except Failure as failure:
            failed.append(f"{title}: {failure}")
            lines += [f"    {line}" for line in failure.details]
    outcome = judge(parts, names, [*problems, *failed])
    outcome.details += lines
    return outcome
