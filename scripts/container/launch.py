# SPDX-License-Identifier: Apache-2.0
"""Start SGLang's server as `python -m sglang.launch_server` does, with one-line refusals.

The series and SGLang check the flags; what they raise becomes a line instead of a traceback.
DDTREE_TRACEBACK=1 shows the traceback as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings

from .refusal import EXIT_CODE, Refusal, one_line


def _raise(parser: argparse.ArgumentParser, message: str):
    raise Refusal(f"{message}; `docker run IMAGE --help` lists the flags")


def server_args(arguments: list[str]):
    """SGLang's ServerArgs for a command line.

    Raises:
        Refusal: a flag that does not exist, or that this server cannot serve.
    """
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
        if os.environ.get("DDTREE_TRACEBACK"):
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
