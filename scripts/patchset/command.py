# SPDX-License-Identifier: Apache-2.0
"""What every entry point does alike: one-line errors, and the promised exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from .errors import PatchsetError, UsageError
from .git import GitFailed

_INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str):
        raise UsageError(f"{message}: see --help")


def run(name: str, body: Callable[[], int]) -> int:
    """Call `body`; turn what goes wrong into one line on stderr and an exit code."""
    sys.stdout.reconfigure(errors="backslashreplace")  # file names that are not UTF-8
    try:
        return body()
    except PatchsetError as problem:
        code, text = problem.exit_code, str(problem)
    except (GitFailed, OSError) as problem:
        code, text = UsageError.exit_code, str(problem)
    except KeyboardInterrupt:
        code, text = _INTERRUPTED, "interrupted: run it again to complete it"
    print(f"{name}: {text}", file=sys.stderr)
    return code
