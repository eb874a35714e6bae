# SPDX-License-Identifier: Apache-2.0
"""Start SGLang's server as `python -m sglang.launch_server` does, with one-line refusals.

The series and SGLang check the flags; what they raise becomes a line instead of a traceback.
DDTREE_TRACEBACK=1 shows the traceback as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from .refusal import EXIT_CODE, Refusal, one_line

_TRACEBACK = "DDTREE_TRACEBACK"


def _raise(parser: argparse.ArgumentParser, message: str):
    raise Refusal(f"{message}; `docker run IMAGE --help` lists the flags")


@contextmanager
def _log_held_back() -> Iterator[None]:
    """Show what is written to stderr meanwhile at the end, and not at all before a refusal.

    The file descriptor is replaced: a logger that is set up meanwhile keeps its sys.stderr.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    shown = True
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Refusal:
            shown = bool(os.environ.get(_TRACEBACK))
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            if shown:
                held.seek(0)
                sys.stderr.write(held.read().decode("utf-8", "replace"))
                sys.stderr.flush()


def server_args(arguments: list[str]):
    """SGLang's ServerArgs for a command line.

    Raises:
        Refusal: a flag that does not exist, or that this server cannot serve.
    """
    with _log_held_back():
        return _server_args(arguments)


def _server_args(arguments: list[str]):
    # Its own parser prints several hundred lines of usage before it says what is wrong.
    argparse.ArgumentParser.error = _raise
    try:
        # Importing SGLang warns of parts that are missing on this platform and not used.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from sglang.srt.plugins import load_plugins
            from sglang.srt.server_args import prepare_server_args

            load_plugins()
            return prepare_server_args(arguments)
    except Refusal:
        raise
    except Exception as problem:
        if os.environ.get(_TRACEBACK):
            traceback.print_exc()
        text = one_line(problem)
        if not isinstance(problem, ValueError):
            text = f"{type(problem).__name__}: {text}"
        raise Refusal(text) from problem


def main() -> int:
    try:
        arguments = server_args(sys.argv[1:])
    except Refusal as refusal:
        print(f"ddtree: {refusal}", file=sys.stderr)
        return EXIT_CODE
    from sglang.launch_server import run_server
    from sglang.srt.utils import kill_process_tree

    try:
        run_server(arguments)
    finally:
        kill_process_tree(os.getpid(), include_parent=False)
    return 0


# SGLang's own processes import this module again.
if __name__ == "__main__":
    sys.exit(main())
