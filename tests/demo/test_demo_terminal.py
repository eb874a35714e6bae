# SPDX-License-Identifier: Apache-2.0
"""How progress and streamed text look on a terminal and elsewhere."""

import io

import pytest
from demo.terminal import WIDTH, Progress, WrappedStream, use_colour


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_one_line_on_a_terminal():
    out = Terminal()
    Progress("Starting", out).done("ready")
    assert out.getvalue() == "\rStarting … 0 s\x1b[K\rStarting: ready\x1b[K\n"


def test_progress_is_quiet_elsewhere():
    out = io.StringIO()
    progress = Progress("Starting", out)
    for _ in range(100):
        progress.update()
    progress.done("ready")
    assert out.getvalue() == "Starting …\nStarting: ready\n"


@pytest.mark.parametrize(
    ("stream", "no_color", "expected"),
    [(Terminal(), "", True), (Terminal(), "1", False), (io.StringIO(), "", False)],
)
def test_colour(stream, no_color, expected, monkeypatch):
    monkeypatch.setenv("NO_COLOR", no_color)
    assert use_colour(stream) is expected


def test_streamed_text_is_wrapped_between_words():
    out = io.StringIO()
    answer = WrappedStream("model  ", out)
    for piece in ["Once", " upon", " a", " time"] * 10 + ["\n", "The", " end", "."]:
        answer.write(piece)
    answer.end()
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].startswith("model  Once upon a time")
    assert lines[-1] == "       The end."
    assert " ".join(" ".join(lines).split()).count("Once upon a time") == 10
