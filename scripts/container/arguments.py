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
# What the image reads or chooses; the tests compare it with the choices.
KNOWN = (
    *("attention-backend", "config", "device", "dtype", "enable-deterministic-inference", "host"),
    *("max-running-requests", "max-total-tokens", "model-path", "port", "random-seed"),
    *("sampling-backend", "served-model-name", "sleep-on-idle", "speculative-algorithm"),
    *("speculative-draft-model-path", "ssl-certfile", "tp-size"),
)


def _whole(name: str) -> str:
    """The name that SGLang's parser takes a flag for; it accepts the beginning of one."""
    if name in _ALIASES or name in KNOWN:
        return _ALIASES.get(name, name)
    meant = [known for known in KNOWN if known.startswith(name)]
    return meant[0] if len(meant) == 1 else name


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
        found[_whole(name)] = value
    if found.get("config"):
        found = {**_in_file(found["config"]), **found}
    return found


def ranks(flags: Mapping[str, str | None]) -> int:
    """How many cards a server takes. Raises Refusal."""
    text = flags.get("tp-size", "1") or ""
    if not text.isdecimal() or int(text) < 1:
        raise Refusal(f"--tp-size: expected a number of at least 1, found '{text}'; correct it")
    return int(text)


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
        _whole(name): None if value is True else str(value)
        for name, value in rows
        if value is not False
    }
