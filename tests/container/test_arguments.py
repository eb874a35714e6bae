# SPDX-License-Identifier: Apache-2.0
"""Which flags count as given by the user."""

import pytest
from container.arguments import given
from container.refusal import Refusal


def test_both_forms_and_flags_without_a_value():
    found = given(["--port", "8000", "--host=::", "--sleep-on-idle", "--dtype", "half"])
    assert found == {"port": "8000", "host": "::", "sleep-on-idle": None, "dtype": "half"}


def test_a_negative_number_is_a_value():
    assert given(["--random-seed", "-1"]) == {"random-seed": "-1"}


def test_the_other_names_of_the_models():
    found = given(["--model", "/m", "--speculative-draft-model=/d"])
    assert found == {"model-path": "/m", "speculative-draft-model-path": "/d"}


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
