# SPDX-License-Identifier: Apache-2.0
"""Documents of several kinds, split by prompt into training and held-out text."""

import random
import zlib

from models.text.chat import chat
from models.text.chooser import Chooser
from models.text.code import code
from models.text.records import record
from models.text.stories import story
from models.text.sums import sums

WRITERS = {"story": story, "sums": sums, "record": record, "code": code, "chat": chat}
WEIGHTS = {"story": 0.28, "sums": 0.14, "record": 0.2, "code": 0.16, "chat": 0.22}
KINDS = tuple(WRITERS)
HELD_OUT_ONE_IN = 16


def is_held_out(prompt: str) -> bool:
    """Whether a prompt belongs to the held-out part; depends on nothing but its text."""
    return zlib.crc32(prompt.encode()) % HELD_OUT_ONE_IN == 0


def document(
    rng: random.Random, kind: str | None = None, held_out: bool = False
) -> tuple[str, str, str]:
    """Draw one document.

    Args:
        rng: source of every choice; the same state gives the same document.
        kind: one of ``KINDS``, or None to draw it by ``WEIGHTS``.
        held_out: draw from the held-out prompts instead of the training ones.

    Returns:
        ``(kind, prompt, completion)``. The prompt never ends in white space, so tokenizing it
        alone gives a prefix of the tokens of ``prompt + completion``.

    Raises:
        ValueError: ``kind`` is unknown.
    """
    if kind is not None and kind not in WRITERS:
        raise ValueError(
            f"expected a kind of {', '.join(KINDS)}, found {kind!r}; pass one of these"
        )
    chooser = Chooser(rng)
    while True:
        drawn = kind or rng.choices(KINDS, [WEIGHTS[k] for k in KINDS])[0]
        prompt, completion = WRITERS[drawn](chooser)
        if is_held_out(prompt) == held_out:
            return drawn, prompt, completion
