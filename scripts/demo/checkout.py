# SPDX-License-Identifier: Apache-2.0
"""What the commands need from this checkout, and where they keep their files."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

from .failure import UsageError

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models" / "tiny"
_MARKER = "<|user|>", "<|assistant|>"


@dataclass(frozen=True)
class Prompt:
    """A held-out prompt; `kind` is one of the kinds of text that the models were trained on."""

    kind: str
    text: str

    @property
    def question(self) -> str | None:
        """The user's words where the text is one turn of the chat template, else None."""
        user, assistant = _MARKER
        if self.text.startswith(user) and self.text.endswith(assistant):
            return self.text[len(user) : -len(assistant)]
        return None


@dataclass(frozen=True)
class Models:
    """A target model, its drafter and the prompts that neither has seen."""

    target: Path
    draft: Path
    prompts: tuple[Prompt, ...]

    def of_each_kind(self, count: int) -> list[Prompt]:
        """The first `count` prompts of each kind, kind by kind."""
        kinds = dict.fromkeys(prompt.kind for prompt in self.prompts)
        return [p for kind in kinds for p in [q for q in self.prompts if q.kind == kind][:count]]

    def question(self) -> str:
        """The question of the chat: the first that asks for a story, since those are long."""
        questions = [p.question for p in self.prompts if p.question]
        return next((q for q in questions if "story" in q), questions[0])


def require_sglang() -> None:
    """Check, without importing it, that this Python has the patched SGLang.

    Raises:
        UsageError: it has none, or an unpatched one.
    """
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        spec = None
    package = Path(spec.origin).parent if spec and spec.origin else None
    arguments = package / "srt" / "server_args.py" if package else None
    if arguments is None or not arguments.is_file():
        found = "none"
    elif "speculative_ddtree_budget" not in arguments.read_text(encoding="utf-8"):
        found = f"an unpatched one in {package}"
    else:
        return
    raise UsageError(
        f"SGLang: expected the patched one that scripts/bootstrap.sh makes, found {found}; "
        "run scripts/bootstrap.sh, then use the Python of the environment that it makes"
    )


def load_models(folder: Path) -> Models:
    """Find the model pair in a folder.

    Raises:
        UsageError: a file is missing, or the prompts are not what they should be.
    """
    needed = [
        *(folder / model / file for model in ("target", "draft") for file in _MODEL_FILES),
        folder / "target" / "tokenizer.json",
        folder / "held_out_prompts.json",
    ]
    missing = next((path for path in needed if not path.is_file()), None)
    if missing is not None:
        raise UsageError(
            f"models: expected {missing}, found no such file; check the models out again, "
            "or make them with `python -m models.train`"
        )
    try:
        prompts = tuple(Prompt(p["kind"], p["prompt"]) for p in json.loads(needed[-1].read_text()))
    except (ValueError, KeyError, TypeError):
        prompts = ()
    if not any(prompt.question for prompt in prompts):
        raise UsageError(
            f"models: expected {needed[-1]} to be a JSON list of objects with kind and prompt, "
            "some of them chat turns, found something else; check the models out again"
        )
    return Models(folder / "target", folder / "draft", prompts)


_MODEL_FILES = ("config.json", "model.safetensors")


def logs() -> Path:
    """The folder of the logs; each release of SGLang, as this Python has it, has its own."""
    return ROOT / "build" / "demo" / importlib.metadata.version("sglang")


def log_path(name: str) -> Path:
    """Where the log of a server goes; the folder is made.

    Raises:
        UsageError: the folder cannot be made or written.
    """
    path = logs() / f"{name}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("wb").close()
    except OSError as error:
        raise UsageError(
            f"logs: expected to be able to write {path}, found: {error.strerror}; "
            "check the owner and the free space of the checkout"
        ) from None
    return path
