# SPDX-License-Identifier: Apache-2.0
"""What the engines are asked: eight prompts of each kind.

The shipped tiny pair knows its own kinds of text only, so it gets its held-out prompts. Any other
model gets the texts below; what is a question goes through its chat template.
"""

from __future__ import annotations

from pathlib import Path

from demo.checkout import MODELS, load_models
from demo.failure import UsageError

KINDS = ("chat", "code", "repetition")
EACH = 8
_REPEATS = 4

_CHAT = (
    "Explain to a curious ten-year-old why the sky is blue, in about three paragraphs.",
    "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    "What are the differences between a virus and a bacterium? Give examples of each.",
    "Plan a four-day hiking trip in the Alps for two beginners, day by day.",
    "Compare the advantages of trains and of aeroplanes for journeys of 500 kilometres.",
    "How does a refrigerator work? Describe the whole cycle step by step.",
    "Tell me about the causes and consequences of the invention of the printing press.",
    "Give me a recipe for vegetable soup, with amounts, times and variations.",
)
_CODE = (
    "Write a Python class for a binary search tree with insert, delete, find and iteration.",
    "Write a C function that reverses a singly linked list, and a test program for it.",
    "Write a Python function that parses ISO 8601 durations, with type hints and unit tests.",
    "Write a TypeScript module that implements a least-recently-used cache with expiry.",
    "Write a SQL schema for a library with members, books and loans, and five useful queries.",
    "Write a Rust program that counts the words of a file and prints the twenty most frequent.",
    "Write a Python implementation of Dijkstra's algorithm with a heap, and explain each part.",
    "Write a Go HTTP server with one JSON endpoint, graceful shutdown and request logging.",
)
_TO_REPEAT = (
    "The ferry leaves the northern pier at seven, ten and fifteen past two every working day.",
    "alpha = load(path); beta = filter(alpha, limit=12); gamma = merge(beta, alpha)",
    "| 2021 | Lisbon | 14 rooms | 82 guests | 3,410.50 |",
    "Mix two cups of flour with one spoon of salt, then add the water slowly while stirring.",
    "ERROR worker-7 lost its connection to queue jobs.high after 3 attempts, retrying in 40 s",
    "Every wheel turns a smaller wheel, and every smaller wheel rings another bell.",
    '{"sensor": "roof-2", "temperature": 18.4, "humidity": 61, "state": "ok"}',
    "Section 4.2: the tenant returns both keys on the last day of the month before noon.",
)


def is_tiny(model: str) -> bool:
    """Whether this is the target that ships here."""
    path = Path(model)
    return path.is_dir() and path.resolve() == (MODELS / "target").resolve()


def texts(model: str) -> dict[str, list[tuple[str, bool]]]:
    """By kind, `EACH` texts and whether each is a question for the chat template.

    Raises:
        UsageError: the tiny pair's prompts are not there.
    """
    if is_tiny(model):
        held_out = load_models(MODELS).prompts
        named = {kind: [p.text for p in held_out if p.kind == kind] for kind in ("chat", "code")}
        # It ends most other kinds of text after a repetition, and goes on with a story.
        lines = [p.text for p in held_out if p.kind == "story"]
        chosen = named | {"repetition": ["\n".join([line] * _REPEATS) for line in lines]}
        if any(len(chosen[kind]) < EACH for kind in KINDS):
            raise UsageError(
                f"models: expected {EACH} held-out prompts of each kind, found fewer; "
                "check the models out again"
            )
        return {kind: [(text, False) for text in chosen[kind][:EACH]] for kind in KINDS}
    order = "Copy this line exactly, thirty times, one copy a line:\n"
    return {
        "chat": [(text, True) for text in _CHAT],
        "code": [(text, True) for text in _CODE],
        "repetition": [(order + text, True) for text in _TO_REPEAT],
    }
