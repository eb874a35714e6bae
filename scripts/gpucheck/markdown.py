# SPDX-License-Identifier: Apache-2.0
"""The report for people, made from the one for programs."""

from __future__ import annotations

from typing import Any

from .bars import bar_lines
from .series import in_words

_SIGNS = {"passed": "passed", "failed": "**FAILED**", "not run": "not run"}
_DETAILS = 20


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table; a bar or a line break in a cell would end it."""
    clean = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [headings, ["---"] * len(headings), *clean]
    return [f"| {' | '.join(row)} |" for row in lines]


def counts_in_words(summary: dict[str, int]) -> str:
    """All three states, also those that did not occur."""
    return ", ".join(f"{summary[state]} {state}" for state in _SIGNS)


def as_markdown(found: dict[str, Any]) -> str:
    """The text of the report.

    Args:
        found: `Report.as_json`.
    """
    lines = ["# GPU check of sglang-ddtree", "", f"**{counts_in_words(found['summary'])}**", ""]
    if found["interrupted"]:
        lines += ["The run was interrupted.", ""]
    elif not found["complete"]:
        lines += ["The run is not complete: these are the checks that had ended.", ""]
    lines += [*_machine(found), "", *_checks(found["checks"])]
    for name, check in found["checks"].items():
        if check["details"]:
            lines += ["", f"## {name}", "", *_details(check["details"])]
        if check["figures"].get("rows"):
            lines += ["", *_speed(check["figures"]["rows"])]
    return "\n".join(lines) + "\n"


def _machine(found: dict[str, Any]) -> list[str]:
    machine, arguments = found["machine"], found["arguments"]
    packages = machine["packages"]
    rows = [
        ["card", f"{card['name']}, {card['compute_capability']}, {card['bytes'] / 2**30:.0f} GiB"]
        for card in machine["cards"]
    ] or [["card", f"none ({machine['no_cuda']})"]]
    rows += [
        ["engines run on", machine["device"]],
        ["driver", machine["driver"] or "none"],
        ["torch", f"{packages['torch']}, built for CUDA {machine['torch_cuda'] or '(none)'}"],
        ["SGLang", str(packages["sglang"])],
        ["sgl_kernel, triton", f"{packages['sgl_kernel']}, {packages['triton']}"],
        ["FlashInfer", str(packages["flashinfer-python"])],
        ["Python", machine["python"]],
        ["system", f"{machine['system']}, {machine['cpu_cores']} CPU cores"],
        ["series", in_words(found["series"])],
        ["arguments", " ".join(f"{k}={v}" for k, v in arguments.items())],
        ["started", found["started"]],
    ]
    return table(["", ""], rows)


def _checks(checks: dict[str, Any]) -> list[str]:
    rows = [
        [name, c["title"], _SIGNS[c["state"]], c["summary"], f"{c['seconds']:.0f} s"]
        for name, c in checks.items()
    ]
    return table(["check", "compares", "state", "", "time"], rows)


def _details(details: list[str]) -> list[str]:
    shown = [f"- `{line.strip()}`" if line.startswith(" ") else f"- {line}" for line in details]
    more = len(shown) - _DETAILS
    return shown[:_DETAILS] + ([f"- and {more} more, see the JSON"] if more > 0 else [])


def _cell(row: dict[str, Any]) -> str:
    how = "greedy" if row["temperature"] == 0 else f"T {row['temperature']}"
    return f"{row['kind']}, batch {row['batch']}, {how}"


def _speed(rows: list[dict[str, Any]]) -> list[str]:
    """A table of every cell and method, and a picture of the rates."""
    named = dict.fromkeys(map(_cell, rows))
    by_cell = {cell: [row for row in rows if _cell(row) == cell] for cell in named}
    headings = ["", "method", "tokens/s", "quartiles", "rounds", "speed-up", "tokens a step"]
    headings += ["accept length", "repeated 8-grams", "same text as without"]
    body = []
    for cell, group in by_cell.items():
        for i, row in enumerate(group):
            low, high = row["tokens_per_second_quartiles"]
            is_reference = "speedup" not in row
            body.append(
                [
                    "" if i else cell,
                    row["method"],
                    f"{row['tokens_per_second']:.1f}",
                    f"{low:.1f} – {high:.1f}",
                    str(row["rounds"]),
                    "—" if is_reference else f"{row['speedup']:.2f}",
                    f"{row['tokens_per_step']:.2f}",
                    f"{row['accept_length']:.2f}",
                    f"{row['repeated_8_grams']:.0%}",
                    "—"
                    if is_reference or row["temperature"]
                    else f"{row['same_text']} of {row['answers_a_round']}",
                ]
            )
    groups = [
        (cell, [(row["method"], row["tokens_per_second"]) for row in group])
        for cell, group in by_cell.items()
    ]
    return [*table(headings, body), "", "```", *bar_lines(groups, "tokens/s"), "```"]
