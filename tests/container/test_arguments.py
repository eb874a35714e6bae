# SPDX-License-Identifier: Apache-2.0
"""Which flags count as given by the user."""

from pathlib import Path

import pytest
from container.arguments import KNOWN, given, ranks
from container.choices import choose
from container.gpu import Card
from container.refusal import Refusal


def test_both_forms_and_flags_without_a_value():
    found = given(["--port", "8000", "--host=::", "--sleep-on-idle", "--dtype", "half"])
    assert found == {"port": "8000", "host": "::", "sleep-on-idle": None, "dtype": "half"}


def test_a_negative_number_is_a_value():
    assert given(["--random-seed", "-1"]) == {"random-seed": "-1"}


def test_the_other_names_of_the_models():
    found = given(["--model", "/m", "--speculative-draft-model=/d"])
    assert found == {"model-path": "/m", "speculative-draft-model-path": "/d"}


def test_the_beginning_of_a_name_is_that_flag_as_in_sglangs_parser():
    found = given(["--model-pat", "/m", "--speculative-draft-model-p=/d", "--tensor-p", "2"])
    assert found == {"model-path": "/m", "speculative-draft-model-path": "/d", "tensor-p": "2"}
    assert given(["--max-r", "1", "--m", "2"]) == {"max-running-requests": "1", "m": "2"}


def test_every_flag_that_the_image_chooses_is_known():
    cards = [Card("card", (12, 0), 2**30)]
    chosen = [*choose({}, (), Path("models")), *choose({}, cards, Path("models"))]
    assert {choice.flag for choice in chosen} < set(KNOWN)


@pytest.mark.parametrize("text", ["0", "-2", "two", ""])
def test_no_number_of_cards(text):
    with pytest.raises(
        Refusal, match=f"^--tp-size: expected a number of at least 1, found '{text}"
    ):
        ranks(given([f"--tp={text}"]))
    assert ranks({}) == 1


def test_the_last_of_several_wins():
    assert given(["--port", "1", "--port=2"]) == {"port": "2"}


def test_a_file_gives_flags_and_the_command_line_wins(tmp_path):
    file = tmp_path / "flags.yaml"
    file.write_text("model: /m\nport: 8000\nsleep_on_idle: true\nenable-lora: false\n")
    found = given(["--config", str(file), "--port", "9000"])
    assert found == {
        "config": str(file),
        "model-path": "/m",
        "port": "9000",
        "sleep-on-idle": None,
    }


@pytest.mark.parametrize("text", [None, "- a list\n", "a: [\n"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, text):
    file = tmp_path / "flags.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Refusal, match=r"^--config .*flags\.yaml: expected .*, found: .*; mount"):
        given(["--config", str(file)])
