# SPDX-License-Identifier: Apache-2.0
"""What SGLang and the series refuse reaches a user of the image as one line."""

import argparse
import logging
import os
from pathlib import Path

import pytest
from container.choices import choose
from container.launch import server_args
from container.refusal import Refusal

TINY = Path(__file__).resolve().parents[2] / "models" / "tiny"


@pytest.fixture(autouse=True)
def argparse_as_it_was(monkeypatch):
    """`server_args` replaces this for the rest of its process."""
    monkeypatch.setattr(argparse.ArgumentParser, "error", argparse.ArgumentParser.error)


def start(*own):
    """SGLang's arguments of the CPU image with these flags of the user."""
    from container.arguments import given

    choices = choose(given(own), (), TINY)
    return server_args([word for choice in choices for word in choice.arguments] + list(own))


def test_the_image_without_flags_is_a_ddtree_server():
    found = start()
    assert found.speculative_algorithm == "DDTREE"
    assert found.speculative_ddtree_budget == 31
    assert (found.host, found.port) == ("0.0.0.0", 30000)
    assert found.device == "cpu"


@pytest.mark.parametrize(
    ("own", "line"),
    [
        # The series' own words, from its own checks.
        (
            ("--attention-backend", "fa3"),
            "DDTREE needs an attention backend that takes a tree mask",
        ),
        (("--page-size", "16"), "DDTREE does not support --page-size 16: expected 1"),
        (("--speculative-ddtree-budget", "0"), "DDTREE requires --speculative-ddtree-budget"),
        (
            ("--speculative-draft-model-path", str(TINY / "target")),
            f"The drafter {TINY}/target does not fit the target",
        ),
        # SGLang's.
        (("--no-such-flag",), "unrecognized arguments: --no-such-flag; "),
        (("--port", "http"), "argument --port: invalid int value: 'http'; "),
    ],
)
def test_a_flag_that_cannot_work_is_one_line(own, line, capsys):
    with pytest.raises(Refusal) as info:
        start(*own)
    assert str(info.value).startswith(line)
    assert "\n" not in str(info.value)
    assert "usage:" not in capsys.readouterr().err


def test_another_exception_is_named(monkeypatch):
    import sglang.srt.server_args

    def refuse(arguments):
        raise OSError("a/b is not a local folder\nand much more")

    monkeypatch.setattr(sglang.srt.server_args, "prepare_server_args", refuse)
    with pytest.raises(Refusal, match="^OSError: a/b is not a local folder$"):
        server_args([])


@pytest.mark.parametrize("problem", [None, ValueError("not this flag"), SystemExit(0)])
@pytest.mark.parametrize("traceback", [False, True])
def test_what_is_logged_is_shown_unless_a_line_says_it_better(
    monkeypatch, capfd, problem, traceback
):
    import sglang.srt.server_args

    def prepare(arguments):
        logging.getLogger("a logger").warning("a warning")
        os.write(2, b"a library's words\n")
        if problem is not None:
            raise problem
        return "arguments"

    monkeypatch.setattr(sglang.srt.server_args, "prepare_server_args", prepare)
    if traceback:
        monkeypatch.setenv("DDTREE_TRACEBACK", "1")
    refused = isinstance(problem, ValueError)
    try:
        assert server_args([]) == "arguments" and problem is None
    except (Refusal, SystemExit):
        assert problem is not None
    found = capfd.readouterr().err
    assert ("a library's words" in found) == (traceback or not refused)
    assert ("ValueError: not this flag" in found) == (traceback and refused)
    os.write(2, b"afterwards\n")
    assert capfd.readouterr().err == "afterwards\n"
