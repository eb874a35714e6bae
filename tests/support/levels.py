# SPDX-License-Identifier: Apache-2.0
"""Tests of what only some levels of the series do: the markers `until` and `since`.

A plugin of tests/conftest.py.
"""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARKERS = {
    "until": "until(number): only on a tree that patch `number` is not applied to",
    "since": "since(number): only on a tree that patch `number` is applied to",
}


def pytest_configure(config: pytest.Config) -> None:
    for description in MARKERS.values():
        config.addinivalue_line("markers", description)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the applied part of the series does not do yet, or no longer does."""
    marks = [(item, mark) for item in items for mark in item.iter_markers() if mark.name in MARKERS]
    if not marks:
        return
    applied = applied_patches()
    unknown = {mark.args[0] for _, mark in marks} - applied.keys()
    if unknown:
        raise pytest.UsageError(
            f"markers: expected numbers of the series ({', '.join(applied)}), "
            f"found {', '.join(sorted(unknown))}; correct the marker"
        )
    gone = {item for item, mark in marks if applied[mark.args[0]] == (mark.name == "until")}
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]


def applied_patches() -> dict[str, bool]:
    """Whether each patch of the series, by number, is applied to this Python's sglang."""
    # Not imported: that takes seconds, and a test may want to be the first to do it.
    tree = Path(importlib.util.find_spec("sglang").origin).parents[2]
    status = subprocess.run(
        [ROOT / "scripts" / "apply_patches.sh", "--release", tree.name, "--status", "--json"],
        capture_output=True,
        text=True,
    )
    return {patch["number"]: patch["applied"] for patch in json.loads(status.stdout)["patches"]}
