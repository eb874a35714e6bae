# SPDX-License-Identifier: Apache-2.0
"""The image's ENTRYPOINT: a DDTREE server from the flags after the image's name.

    docker run -p 30000:30000 --gpus all IMAGE --model-path M --speculative-draft-model-path D

Every flag is SGLang's own. Those that are not given get a value that is safe on the card that is
found, and each is printed with its reason. `docker run IMAGE COMMAND ...` runs another command.

Exit codes: 0 told to end; 2 refused, with one line; else the server's own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path

from cpu_profile.environment import set_environment

from . import gpu, health
from .arguments import given, ranks
from .choices import choose
from .folders import require_loadable, settle_home, temporary
from .models import require_models
from .network import require_free, require_port
from .refusal import EXIT_CODE, Refusal
from .supervise import GRACE_S, Supervisor

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ("cu128", "cpu")
_LOOPBACK = "127.0.0.1,localhost"
_KILLED = 128 + signal.SIGKILL


def say(text: str) -> None:
    print(f"ddtree: {text}", flush=True)


def prepare(
    arguments: Sequence[str],
    environ: MutableMapping[str, str],
    look: Callable[[], gpu.Found] = gpu.look,
    models: Path = ROOT / "models" / "tiny",
) -> list[str]:
    """The flags of the server: the image's choices, then the user's. Completes `environ`.

    Args:
        look: finds the cards; called for the CUDA profile only.
        models: the folder of the tiny pair.

    Raises:
        Refusal: the server could not start.
    """
    profile = environ.get("DDTREE_PROFILE", "")
    if profile not in PROFILES:
        raise Refusal(
            f"DDTREE_PROFILE: expected {' or '.join(PROFILES)}, found '{profile}'; leave it to the "
            "image"
        )
    temporary(environ)
    flags = given(arguments)
    cards: tuple[gpu.Card, ...] = ()
    if profile == "cpu":
        set_environment(environ)
    else:
        cards = gpu.require_cards(look(), ranks(flags))
        for card in cards:
            say(f"card: {card}")
        # This version check asks for the CUDA 13 build; the lock has the one for CUDA 12.8.
        environ.setdefault("SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK", "1")
    choices = choose(flags, cards, models)
    for choice in choices:
        flags[choice.flag] = choice.value
    require_models(flags)
    require_port(flags)
    if moved := settle_home(environ):
        say(moved)
    if cards:
        require_loadable(environ)
    _settle_network(environ)
    for choice in choices:
        say(str(choice))
    health.remember(flags)
    return [word for choice in choices for word in choice.arguments] + list(arguments)


def _settle_network(environ: MutableMapping[str, str]) -> None:
    # SGLang refuses a port whose gRPC port, 10,000 more, is out of range, though gRPC is off.
    environ.setdefault("SGLANG_GRPC_PORT", "50051")
    # It sends its own warm-up request through the proxy of the environment.
    for name in ("NO_PROXY", "no_proxy"):
        environ[name] = ",".join(filter(None, [environ.get(name, ""), _LOOPBACK]))


def grace(environ: MutableMapping[str, str]) -> float:
    """Seconds that a server gets to finish its requests. Raises Refusal."""
    text = environ.get("DDTREE_STOP_SECONDS", str(GRACE_S))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        raise Refusal(f"DDTREE_STOP_SECONDS: expected 0 to 86400, found '{text}'; correct it")
    return seconds


def describe(root: Path = ROOT) -> str:
    """What the image holds, from what was written when it was built."""
    built = json.loads((root / "series.json").read_text())
    return f"SGLang {built['release']} with the series {built['series']}"


def serve(arguments: Sequence[str]) -> int:
    environ = dict(os.environ)
    if "--help" in arguments or "-h" in arguments:
        flags = list(arguments)
    else:
        say(describe())
        flags = prepare(arguments, environ)
        require_free(given(flags))
    supervisor = Supervisor(grace(environ))
    code = supervisor.run([sys.executable, "-m", "container.launch", *flags], environ)
    if code not in (0, EXIT_CODE):
        why = "its log above says why"
        if code == _KILLED:
            why += ", or the kernel ended it for lack of memory (--memory)"
        say(f"the server ended by itself with exit code {code}; {why}")
    return code


def main(arguments: Sequence[str]) -> int:
    if arguments and not arguments[0]:
        print("ddtree: expected flags or a command, found an empty argument", file=sys.stderr)
        return EXIT_CODE
    if arguments and not arguments[0].startswith("-"):
        try:
            os.execvp(arguments[0], list(arguments))
        except OSError as problem:
            print(f"ddtree: {arguments[0]}: {problem.strerror}", file=sys.stderr)
            return 127
    try:
        return serve(arguments)
    except Refusal as refusal:
        print(f"ddtree: {refusal}", file=sys.stderr)
        return EXIT_CODE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
