# SPDX-License-Identifier: Apache-2.0
"""The two files of a report say the same, and a reader can take them apart again."""

import json
from pathlib import Path

import pytest
from gpucheck.bars import bar, bar_lines
from gpucheck.engine import Reply
from gpucheck.markdown import as_markdown, table
from gpucheck.report import JSON, MARKDOWN, SCHEMA, Report
from gpucheck.series import in_words, status_command
from gpucheck.speed_figures import Measured
from gpucheck.states import Outcome, State
from made_up_engines import SERIES, machine


def measured(rates: list[float], tokens: int = 40, steps: int = 10) -> Measured:
    made = Measured()
    for rate in rates:
        made.add([Reply(tuple(range(tokens)), steps)], tokens / rate)
    return made


def rows() -> list[dict]:
    """Two cells, two methods."""
    made = []
    for batch in (1, 8):
        reference, fast = measured([100.0, 110.0, 120.0], steps=0), measured([220.0], steps=10)
        cell = {"kind": "code", "batch": batch, "temperature": 0.0}
        made.append({"method": "no speculation", **cell, **reference.as_json(None)})
        made.append({"method": "DDTREE", **cell, **fast.as_json(reference)})
    return made


@pytest.fixture
def written(tmp_path) -> Path:
    outcomes = {
        "identity": Outcome(State.PASSED, "11 of 11 answers equal", seconds=12.34),
        "graphs": Outcome(State.FAILED, "a | b\nc", [f"line {i}" for i in range(30)]),
        "tp": Outcome(State.NOT_RUN, "one GPU, 2 ranks"),
        "speed": Outcome(State.PASSED, "faster", ["a note"], {"rows": rows()}, 600.0),
    }
    titles = {name: f"what {name} compares" for name in outcomes}
    arguments = {"budget": 31, "model_path": "owner/name"}
    report = Report(tmp_path / "new", "2026", machine(2).as_json(), SERIES, arguments, titles)
    report.outcomes = outcomes
    report.write()
    return tmp_path / "new"


def parsed_tables(text: str) -> list[list[list[str]]]:
    """Every Markdown table as rows of cells, with its heading and without its rule."""
    tables, current = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = line.replace("\\|", "\0").strip("|").split("|")
            current.append([cell.strip().replace("\0", "|") for cell in cells])
        elif current:
            assert set(current[1]) == {"---"}
            assert len({len(row) for row in current}) == 1, "every row has every column"
            tables.append([current[0], *current[2:]])
            current = []
    return tables


def test_json_has_everything(written):
    found = json.loads((written / JSON).read_text())
    assert found["schema"] == SCHEMA
    assert found["summary"] == {"passed": 2, "failed": 1, "not run": 1, "exit_code": 1}
    assert found["series"]["id"] == SERIES["id"]
    assert found["arguments"]["budget"] == 31
    cards = found["machine"]["cards"]
    assert [c["compute_capability"] for c in cards] == ["9.0", "9.0"]
    assert found["machine"]["packages"]["torch"] == "2.9.1+cu128"
    for check in found["checks"].values():
        assert set(check) == {"title", "state", "summary", "seconds", "details", "figures"}
    assert found["checks"]["identity"]["seconds"] == 12.3


def test_markdown_has_a_row_a_check_and_all_three_counts(written):
    text = (written / MARKDOWN).read_text()
    assert "**2 passed, 1 failed, 1 not run**" in text
    _, checks, speed = parsed_tables(text)
    assert [(row[0], row[2]) for row in checks[1:]] == [
        ("identity", "passed"),
        ("graphs", "**FAILED**"),
        ("tp", "not run"),
        ("speed", "passed"),
    ]
    assert checks[2][3] == "a | b c", "a bar or a line break does not end a cell"
    assert checks[3][3] == "one GPU, 2 ranks"
    assert len(speed) == 1 + 4


def test_markdown_names_the_machine(written):
    machine_table = parsed_tables((written / MARKDOWN).read_text())[0]
    flat = " ".join(" ".join(row) for row in machine_table)
    for part in ("Made-up 100", "9.0", "80 GiB", "570.00", "2.9.1+cu128", "12.8", SERIES["id"]):
        assert part in flat


def test_long_lists_of_details_end(written):
    text = (written / MARKDOWN).read_text()
    assert "- line 19" in text and "- line 20" not in text
    assert "and 10 more, see the JSON" in text


def test_the_speed_table_has_the_figures(written):
    speed = parsed_tables((written / MARKDOWN).read_text())[2]
    by_name = dict(zip(speed[0], speed[2], strict=True))
    assert by_name["method"] == "DDTREE"
    # 220 against a median of 110; 39 tokens after the first in 10 steps, 40 with it.
    assert by_name["tokens/s"] == "220.0" and by_name["speed-up"] == "2.00"
    assert by_name["tokens a step"] == "3.90" and by_name["accept length"] == "4.00"
    assert by_name["same text as without"] == "1 of 1"
    assert dict(zip(speed[0], speed[1], strict=True))["quartiles"] == "105.0 – 115.0"


def test_the_picture_is_to_scale(written):
    lines = (written / MARKDOWN).read_text().split("```")[1].splitlines()
    lengths = {line.split("█")[0].strip(): line.count("█") for line in lines if "█" in line}
    assert lengths["DDTREE"] == 2 * lengths["no speculation"] == 40


def test_bars():
    assert bar(1, 1) == "█" * 40 and bar(0, 1) == "" and bar(0, 0) == ""
    # 41 eighths are five columns and an eighth of one.
    assert bar(41, 320) == "█" * 5 + "▏"
    assert bar_lines([("t", [("a", 3.0), ("bb", 0.0)])], "x")[1].startswith("  a   █")
    assert bar_lines([], "x") == []


def test_an_unfinished_report_says_so(written):
    found = json.loads((written / JSON).read_text())
    assert "not complete" not in as_markdown(found)
    assert "not complete" in as_markdown(found | {"complete": False})
    assert "was interrupted" in as_markdown(found | {"complete": False, "interrupted": True})


def test_an_empty_table_is_still_one():
    assert table(["a", "b"], []) == ["| a | b |", "| --- | --- |"]


def test_the_series_in_words():
    assert in_words(SERIES) == "0123456789ab for 0.5.11, 2 of 2 patches applied"
    edited = in_words(SERIES | {"applied": ["0010"], "edited": ["a.py"]})
    assert "1 of 2" in edited and "a.py" in edited
    assert in_words({"id": None, "problem": "no SGLang"}) == "unknown: no SGLang"


def test_a_foreign_site_packages_is_asked_about_as_one():
    command = status_command(Path("/opt/venv/site-packages/sglang"), "0.5.11")
    assert command[-4:] == ["--root", "/opt/venv/site-packages", "--strip", "2"]
