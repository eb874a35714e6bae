# SPDX-License-Identifier: Apache-2.0
"""upstream.toml, its reader for Python 3.10, and the real series on the real files."""

from __future__ import annotations

import patchset_project as made
import pytest
from patchset import minitoml
from patchset.ladder import climb, verify
from patchset.root import open_materialised
from patchset.series import load
from patchset.upstream import Project
from patchset_project import REPOSITORY

REAL = (REPOSITORY / "upstream.toml").read_text(encoding="utf-8")
MADE = made.upstream_toml({"cp310": "0" * 64, "cp311": "1" * 64}, "2" * 40)
QUOTED = '# c\n[a."b.c" . x]\n"k k" = "v # no comment" # comment\n  [d]\nempty = ""\n'.replace(
    " . ", "."
)


@pytest.mark.parametrize("text", [REAL, MADE, QUOTED, "", 'a = "1"\n[b]\n[b.c]\na = "2"'])
def test_both_readers_agree(text):
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    assert minitoml.loads(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a = 'x'",
        'a = "x\\n"',
        'a = ["x"]',
        "[[a]]",
        "[a",
        'a = "x" b = "y"',
        'a = "x"\na = "y"',
        "[a]\n[a]",
        'a = "x"\n[a]',
        "just text",
    ],
)
def test_everything_else_is_an_error(text):
    with pytest.raises(ValueError, match="line"):
        minitoml.loads(text)


def test_the_real_pin():
    release = Project(REPOSITORY).release(None)
    assert sorted(release.wheels) == ["cp310", "cp311", "cp312", "cp313"]
    for tag, wheel in release.wheels.items():
        assert f"-{release.version}-{tag}-{tag}-" in f"-{wheel.file}"
        assert len(bytes.fromhex(wheel.sha256)) == 32


@pytest.mark.parametrize(
    ("old", "new"),
    [("tree", "trees"), ("wheel", "wheels"), ("sha256", "sha1"), ("2" * 40, "2" * 39), ("=", "?")],
)
def test_an_incomplete_upstream_toml(project, old, new):
    toml = project.root / "upstream.toml"
    text = made.upstream_toml({made.TAG: "0" * 64}, "2" * 40)
    assert old in text
    toml.write_text(text.replace(old, new))
    result = project.tool("--status")
    assert result.code == 2 and "upstream.toml" in result.err and result.err.count("\n") == 1


def test_the_real_series_on_the_real_files(tmp_path):
    """Every level has the locked tree, and a bare checkout of the touched files goes up and down.

    Reads the materialised files' private repository only, so edits on disk do not matter.
    """
    project = Project(REPOSITORY)
    release = project.release(None)
    if not project.materialised(release).exists():
        pytest.skip("nothing is materialised: run scripts/bootstrap.sh")
    series = load(project.patches(release))
    if not series.patches:
        pytest.skip("the series is empty")
    checkout = tmp_path / "checkout"
    with open_materialised(project, release) as root:
        ladder = climb(root.git, root.base, series, root.strip)
        verify(ladder, series, root.strip, full=True)
        touched = {path for states in ladder.states for path in states}

        def files(tree: str) -> made.Tree:
            return {
                path: (int(entry.mode[-3:], 8), root.git.run("cat-file", "blob", entry.blob).stdout)
                for path, entry in root.git.entries(tree).items()
                if path in touched
            }

        bottom, top = files(ladder.trees[0]), files(ladder.trees[-1])
    made.write_tree(checkout, bottom)
    tool = made.Project(REPOSITORY).tool
    assert tool("--root", checkout).code == 0
    assert made.read_tree(checkout) == top
    assert tool("--root", checkout, "--reverse").code == 0
    assert made.read_tree(checkout) == bottom
