# SPDX-License-Identifier: Apache-2.0
"""Why a container does not start: one line, and the exit code 2."""

from __future__ import annotations

EXIT_CODE = 2


class Refusal(Exception):
    """What was expected, what was found and what to do, in one line."""


def one_line(problem: BaseException) -> str:
    """The first line that an exception has to say, or its name when it says nothing."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__
