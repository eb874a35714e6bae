# SPDX-License-Identifier: Apache-2.0
"""The reports in docs/reports are of the series as it is now, and docs/porting.md reads each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from patchset.series import load
from patchset.upstream import Project
from patchset_project import REPOSITORY

REPORTS = sorted((REPOSITORY / "docs" / "reports").glob("*.json"))
ONTO = ["0.5.12.post1", "0.5.13.post1", "0.5.14", "0.5.23"]


def test_which_there_are():
    assert [path.stem for path in REPORTS] == [f"0.5.11-onto-{version}" for version in ONTO]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_is_current(path: Path):
    """Write it again with: ci/report_release.sh VERSION docs/reports"""
    found = json.loads(path.read_text())
    project = Project(REPOSITORY)
    series = load(project.patches(project.release(found["release"])))
    assert found["series"] == series.id
    assert [patch["number"] for patch in found["patches"]] == [p.number for p in series.patches]
    assert path.stem == f"{found['release']}-onto-{found['onto']['version']}"
    text = path.with_suffix(".md").read_text()
    assert f"Series {series.id};" in text and text.endswith(f"**{found['summary']}**\n")


@pytest.mark.parametrize("version", ONTO)
def test_the_page_reads_it(version):
    page = (REPOSITORY / "docs" / "porting.md").read_text()
    assert f"reports/0.5.11-onto-{version}.md" in page
