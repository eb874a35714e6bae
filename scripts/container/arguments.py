# SPDX-License-Identifier: Apache-2.0
"""Which of SGLang's flags a user gave, on the command line or in a file that --config names.

SGLang's own parser decides what a flag means. This only looks which ones are there, without the
seconds that importing SGLang takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .refusal import Refusal, one_line

# Two names of one setting; the second is the one that is used here.
_ALIASES = {
    "model": "model-path",
    "speculative-draft-model": "speculative-draft-model-path",
    "tensor-parallel-size": "tp-size",
    "tp": "tp-size",
}


def given(arguments: Sequence[str]) -> dict[str, str | None]:
    """The flags in `arguments`, by name without dashes; None for a flag without a value.

    As in SGLang, the last of several wins, and the command line wins over a file.

    Raises:
        Refusal: a file that --config names cannot be read.
    """
    found: dict[str, str | None] = {}
    for position, argument in enumerate(arguments):
        if not argument.startswith("--") or argument == "--":
            continue
        name, equals, value = argument[2:].partition("=")
        if not equals:
            following = arguments[position + 1 : position + 2]
            value = following[0] if following and not following[0].startswith("--") else None
        found[_ALIASES.get(name, name)] = value
    if found.get("config"):
        found = {**_in_file(found["config"]), **found}
    return found


def ranks(flags: Mapping[str, str | None]) -> int:
    """How many cards a server takes; 1 for what SGLang will refuse itself."""
    text = flags.get("tp-size") or ""
    return max(1, int(text)) if text.isdecimal() else 1


def _in_file(path: str) -> dict[str, str | None]:
    """The settings of a YAML file; a flag that is false there is not given."""
    import yaml  # comes with SGLang

    try:
        with open(path, encoding="utf-8") as file:
            settings = yaml.safe_load(file) or {}
        rows = [(str(name).replace("_", "-"), value) for name, value in settings.items()]
    except (OSError, AttributeError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise Refusal(
            f"--config {path}: expected a YAML file of flags in the container, found: "
            f"{one_line(problem)}; mount it with -v, or correct it"
        ) from None
    return {
        _ALIASES.get(name, name): None if value is True else str(value)
        for name, value in rows
        if value is not False
    }
