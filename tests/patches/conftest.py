# SPDX-License-Identifier: Apache-2.0
"""Tests of behaviour that a later patch of the series takes away again."""

import json
import subprocess
from pathlib import Path

import pytest

import sglang

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "until(number): only on a tree that patch `number` is not applied to"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the applied series no longer does."""
    applied = applied_numbers()
    gone = [
        item
        for item in items
        if (mark := item.get_closest_marker("until")) and mark.args[0] in applied
    ]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]


def applied_numbers() -> set[str]:
    """Numbers of the patches that are applied to the imported sglang."""
    tree = Path(sglang.__file__).parents[2]
    status = subprocess.run(
        [ROOT / "scripts" / "apply_patches.sh", "--release", tree.name, "--status", "--json"],
        capture_output=True,
        text=True,
    )
    return {patch["number"] for patch in json.loads(status.stdout)["patches"] if patch["applied"]}
