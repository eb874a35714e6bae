# SPDX-License-Identifier: Apache-2.0
"""How a command ends when it cannot do what it was asked for: one line and an exit code."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn


class Failure(Exception):
    """A run that failed.

    Args:
        message: one line: what was expected, what was found, what to do.
        details: further lines to show below it, such as the end of a log.
    """

    exit_code = 1

    def __init__(self, message: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.details = details


class UsageError(Failure):
    """A wrong argument, or something missing on this machine; nothing was started."""

    exit_code = 2


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that a command wrote to standard error, else its exit code in words."""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are `UsageError`, without the usage text."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see --help")


def exit_with(name: str, main: Callable[[], int]) -> NoReturn:
    """Run a command's `main` and exit with its code, or with a failure's line and code."""
    try:
        code = main()
        sys.stdout.flush()
    except Failure as failure:
        sys.stdout.flush()
        print(f"{name}: {failure}", *failure.details, sep="\n    ", file=sys.stderr)
        code = failure.exit_code
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted; everything it started is stopped", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        print(f"{name}: expected to write to standard output, found it closed", file=sys.stderr)
        sys.stdout = None  # the interpreter would try to flush it once more
        code = 1
    sys.exit(code)
