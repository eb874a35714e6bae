# SPDX-License-Identifier: Apache-2.0
"""Writing for a person: one line that is kept up to date, wrapped streams, colour."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TextIO

WIDTH = 100
_PLAIN_INTERVAL = 10.0


def use_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal and the user has not set NO_COLOR (see no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, code: str, colour: bool) -> str:
    """A text in an ANSI style such as "1" (bold) or "2" (faint), if colour is wanted."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


class Progress:
    """One line with the time since it began: rewritten on a terminal, repeated elsewhere."""

    def __init__(self, text: str, stream: TextIO = sys.stdout) -> None:
        self._text = text
        self._stream = stream
        self._begin = time.monotonic()
        self._shown = float("-inf")
        self.update()

    @property
    def seconds(self) -> float:
        """Since the line began."""
        return time.monotonic() - self._begin

    def update(self) -> None:
        """Show the time; cheap enough to be called often."""
        if self._stream.isatty():
            self._write(f"\r{self._text} … {self.seconds:.0f} s\x1b[K")
        elif self.seconds - self._shown >= _PLAIN_INTERVAL:
            self._shown = self.seconds
            waited = f" {self._shown:.0f} s" if self._shown >= 1 else ""
            self._write(f"{self._text} …{waited}\n")

    def done(self, result: str) -> None:
        """Replace the time by the result, and end the line."""
        start = "\r" if self._stream.isatty() else ""
        clear = "\x1b[K" if self._stream.isatty() else ""
        self._write(f"{start}{self._text}: {result}{clear}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class WrappedStream:
    """Text that arrives in pieces, written at once and wrapped between words."""

    def __init__(self, first: str, stream: TextIO = sys.stdout) -> None:
        """Begin with `first`; the lines after it are indented by as much."""
        self._indent = " " * len(first)
        self._stream = stream
        self._column = len(first)
        self._space = ""  # white space that is written when a word follows it
        self._stream.write(first)

    def write(self, piece: str) -> None:
        """Write a piece; a word that came in two pieces may be broken between them."""
        for part in re.findall(r"\n|[^\S\n]+|\S+", piece):
            if part == "\n":
                self._break()
            elif part.isspace():
                self._space += part
            else:
                if self._column + len(self._space) + len(part) > WIDTH:
                    self._break()
                self._stream.write(self._space + part)
                self._column += len(self._space) + len(part)
                self._space = ""
        self._stream.flush()

    def _break(self) -> None:
        self._stream.write("\n" + self._indent)
        self._column = len(self._indent)
        self._space = ""

    def end(self) -> None:
        """End the last line."""
        self._stream.write("\n")
        self._stream.flush()
