# SPDX-License-Identifier: Apache-2.0
"""The ways a run can fail. Each class carries the exit code that the command line promises."""


class PatchsetError(Exception):
    """Base class: one line for the user, and the exit code."""

    exit_code = 2


class UsageError(PatchsetError):
    """A wrong argument, a missing file, or a missing or too old tool."""

    exit_code = 2


class DoesNotApply(PatchsetError):
    """A patch file is malformed, or its context is not in the tree."""

    exit_code = 3


class WrongBase(PatchsetError):
    """The files under the root are not the release that the series was written for."""

    exit_code = 4


class LocalEdits(PatchsetError):
    """A file that would have to change has edits that no patch accounts for."""

    exit_code = 5


class LockMismatch(PatchsetError):
    """A patch, or the result of applying it, is not what series.lock records."""

    exit_code = 6


class LintFailed(PatchsetError):
    """The series is not in the form that the project asks for."""

    exit_code = 7
