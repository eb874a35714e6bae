# SPDX-License-Identifier: Apache-2.0
"""The flags that the image adds to the user's, and why; never one that the user gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .gpu import Card

HOST, PORT = "0.0.0.0", 30000


@dataclass(frozen=True)
class Choice:
    """A flag without dashes; value: None for one that takes none."""

    flag: str
    value: str | None
    why: str

    @property
    def arguments(self) -> list[str]:
        return [f"--{self.flag}", *([] if self.value is None else [self.value])]

    def __str__(self) -> str:
        return f"{' '.join(self.arguments)}: {self.why}"


def _always() -> Iterable[Choice]:
    yield Choice("host", HOST, "a published port leads to it")
    yield Choice("port", str(PORT), "the port that the image exposes")
    yield Choice("speculative-algorithm", "DDTREE", "what this image is for")


def _on_cards(cards: Sequence[Card]) -> Iterable[Choice]:
    yield Choice("attention-backend", "triton", "it reads tree masks on every card of this image")
    if any(card.is_sm120 for card in cards):
        why = "FlashInfer's kernels do not compile for SM120 with CUDA 12.8"
    else:
        why = "it needs no kernel to be compiled while a request waits"
    yield Choice("sampling-backend", "pytorch", why)


def _on_cpu() -> Iterable[Choice]:
    yield Choice("device", "cpu", "this is the CPU image")
    yield Choice("attention-backend", "torch_native", "it reads tree masks on a CPU")
    yield Choice("dtype", "float32", "sums do not depend on the batch, so neither do tokens")
    yield Choice("enable-deterministic-inference", None, "a request may name a seed")
    yield Choice("sleep-on-idle", None, "an idle server leaves the CPU alone")


def _tiny_models(models: Path) -> Iterable[Choice]:
    why = "no model was named: the tiny ones of the image"
    yield Choice("model-path", str(models / "target"), why)
    yield Choice("speculative-draft-model-path", str(models / "draft"), why)
    yield Choice("served-model-name", "tiny", why)
    yield Choice("max-total-tokens", "8192", "enough for the tiny models")
    yield Choice("max-running-requests", "8", "enough for the tiny models")
    yield Choice("random-seed", "0", "two servers answer alike")


def choose(given: Mapping[str, str | None], cards: Sequence[Card], models: Path) -> list[Choice]:
    """What to add to the flags that were `given`.

    Args:
        given: as `arguments.given` returns them.
        cards: the cards to serve on; none for the CPU profile.
        models: the folder of the tiny pair, which only the CPU profile serves by default.
    """
    choices = [*_always(), *(_on_cards(cards) if cards else _on_cpu())]
    if not cards and "model-path" not in given:
        choices += _tiny_models(models)
    return [choice for choice in choices if choice.flag not in given]
