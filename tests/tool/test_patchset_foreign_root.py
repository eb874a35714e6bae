# SPDX-License-Identifier: Apache-2.0
"""--root: a git checkout of upstream, and with --strip 2 an installed site-packages."""

from __future__ import annotations

import json
import shutil

import patchset_project as made
import pytest
from patchset_project import ENGINE, NAMES, THING, everything, read_tree

LEVELS = made.levels()
TOP = len(NAMES)
EXTRA = ("README.md", "test/t.py")


def _upstream_part(root) -> made.Tree:
    return {p: e for p, e in read_tree(root).items() if p.startswith("python/")}


@pytest.fixture
def site_packages(tmp_path):
    """What pip leaves: the package without its python/ folder, and metadata."""
    root = tmp_path / "site packages"
    files = made.wheel_files(made.TAG)
    made.write_tree(root, {**files, "other/__init__.py": (0o644, b"")})
    return root


def test_checkout_up_and_down(project, checkout):
    """Every level, from every side; the files that are not upstream's do not move."""
    extra = {path: everything(checkout)[path] for path in EXTRA}
    for level in (2, TOP, 1, 3, 0):
        arguments = ["--to", NAMES[level - 1][:4]] if level else ["--reverse"]
        assert project.tool("--root", checkout, *arguments).code == 0
        assert _upstream_part(checkout) == LEVELS[level]
        report = json.loads(project.tool("--root", checkout, "--status", "--json").out)
        assert report["level"] == (NAMES[level - 1][:4] if level else "base")
    assert {path: everything(checkout)[path] for path in EXTRA} == extra


def test_checkout_twice(project, checkout):
    """The second run moves no modification time."""
    assert project.tool("--root", checkout).code == 0
    before = everything(checkout)
    assert project.tool("--root", checkout).code == 0
    assert everything(checkout) == before


@pytest.mark.parametrize("ignored", [False, True])
def test_checkout_that_is_or_is_in_a_repository(project, checkout, monkeypatch, ignored):
    """The bytes change although a repository lies around the files, or ignores them."""
    repository = checkout.parent if ignored else checkout
    made.plain_git(repository, "init", "-q", ".")
    if ignored:
        (repository / ".gitignore").write_text(f"/{checkout.name}/\n")
    else:
        made.plain_git(checkout, "add", "-A")
        made.plain_git(checkout, "commit", "-q", "-m", "upstream")
    git_before = everything(repository / ".git")
    monkeypatch.chdir(checkout / "python" / "sglang")
    assert project.tool("--root", ".", "--strip", "3").code == 0
    assert _upstream_part(checkout) == LEVELS[TOP]
    assert project.tool("--root", checkout, "--status").code == 0
    assert everything(repository / ".git") == git_before


def test_site_packages(project, site_packages):
    before = everything(site_packages)
    assert project.tool("--root", site_packages, "--strip", "2").code == 0
    found = read_tree(site_packages)
    assert {f"python/{p}": e for p, e in found.items() if p != "other/__init__.py"} == LEVELS[TOP]
    assert project.tool("--root", site_packages, "--strip", "2", "--status").code == 0
    assert project.tool("--root", site_packages, "--strip", "2", "--reverse").code == 0
    after = everything(site_packages)
    assert {p: e[1:] for p, e in after.items()} == {p: e[1:] for p, e in before.items()}


def test_hard_linked_files_are_replaced_and_not_written_through(project, site_packages, tmp_path):
    """Some installers link site-packages to a cache, which must keep upstream's bytes."""
    installed = site_packages / ENGINE.removeprefix("python/")
    cached = tmp_path / "cached.py"
    cached.hardlink_to(installed)
    assert project.tool("--root", site_packages, "--strip", "2").code == 0
    assert cached.read_bytes() == LEVELS[0][ENGINE][1]
    assert installed.read_bytes() == LEVELS[TOP][ENGINE][1]


def test_wrong_version_prints_both(project, site_packages):
    """Nothing is written; the expected and the found version are printed."""
    (site_packages / "sglang/_version.py").unlink()
    info = site_packages / f"sglang-{made.VERSION}.dist-info"
    info.rename(site_packages / "sglang-9.8.0.dist-info")
    (site_packages / ENGINE.removeprefix("python/")).write_text("another release\n")
    before = everything(site_packages)
    result = project.tool("--root", site_packages, "--strip", "2")
    assert result.code == 4 and result.err.count("\n") == 1
    assert made.VERSION in result.err and "9.8.0" in result.err
    assert everything(site_packages) == before


def test_files_of_an_unknown_version(project, checkout):
    """No touched file is known and nothing says a version: a wrong base, not local edits."""
    (checkout / "python/sglang/_version.py").unlink()
    for path, (mode, data) in LEVELS[0].items():
        if path != "python/sglang/_version.py":
            made.write_tree(checkout, {path: (mode, data + b"other\n")})
    before = everything(checkout)
    for verb in ((), ("--status",), ("--reverse",)):
        assert project.tool("--root", checkout, *verb).code == 4
    assert everything(checkout) == before


@pytest.mark.parametrize("level", [0, TOP])
def test_an_edited_file_is_refused(project, checkout, level):
    if level:
        project.tool("--root", checkout)
    file = checkout / ENGINE
    file.write_bytes(file.read_bytes() + b"mine = 1\n")
    before = everything(checkout)
    for verb in ((), ("--reverse",), ("--check",)):
        result = project.tool("--root", checkout, *verb)
        assert result.code == 5 and ENGINE in result.err
    assert project.tool("--root", checkout, "--status").code == 1
    assert everything(checkout) == before


def test_a_file_in_the_way_is_refused(project, checkout):
    """A file that git ignores would be overwritten by git without a word."""
    (checkout / ".gitignore").write_text("ddtree/\n")
    made.write_tree(checkout, {THING: (0o644, b"mine = 1\n")})
    before = everything(checkout)
    assert project.tool("--root", checkout).code == 5
    assert everything(checkout) == before


def test_a_wrong_strip_is_explained(project, site_packages):
    result = project.tool("--root", site_packages)
    assert result.code == 4 and "--strip 2" in result.err
    assert project.tool("--root", site_packages, "--strip", "9").code == 2


def test_a_linked_folder_is_refused(project, checkout):
    """git would replace the link by a folder."""
    shutil.move(checkout / "python", checkout / "elsewhere")
    (checkout / "python").symlink_to("elsewhere")
    before = everything(checkout)
    result = project.tool("--root", checkout)
    assert result.code == 4 and "symbolic link" in result.err
    assert (checkout / "python").is_symlink()
    assert everything(checkout) == before


def test_files_of_several_levels_are_refused(project, checkout):
    made.write_tree(checkout, {ENGINE: LEVELS[TOP][ENGINE]})
    before = everything(checkout)
    assert project.tool("--root", checkout).code == 4
    assert everything(checkout) == before


def test_a_patch_that_says_another_result(project, checkout):
    """No tree id to compare with: the patch's own index lines must hold. Exit 6."""
    path = project.patches / NAMES[3]
    path.write_bytes(path.read_bytes().replace(b"+LAST = 1", b"+LAST = 2"))
    before = everything(checkout)
    result = project.tool("--root", checkout)
    assert result.code == 6 and ENGINE in result.err
    assert everything(checkout) == before


@pytest.mark.parametrize("verb", [(), ("--check",), ("--status",), ("--reverse",)])
@pytest.mark.parametrize("level", [0, TOP])
def test_a_cut_patch_that_still_parses(project, checkout, level, verb):
    """All that is left of it holds, but series.lock has the sha256 of the whole."""
    if level:
        assert project.tool("--root", checkout).code == 0
    project.cut_the_last_section()
    before = everything(checkout)
    result = project.tool("--root", checkout, *verb)
    assert result.code == 6 and NAMES[3] in result.err and result.err.count("\n") == 1
    assert "expected sha256" in result.err and "--refresh" in result.err
    assert everything(checkout) == before


def test_a_series_without_a_locked_patch(project, checkout):
    """series.lock still has the number."""
    project.drop_from_series(NAMES[3])
    before = everything(checkout)
    result = project.tool("--root", checkout)
    assert result.code == 6 and "found 0010 0020 0030 0040" in result.err
    assert result.err.count("\n") == 1
    assert everything(checkout) == before


@pytest.mark.parametrize("path", [ENGINE, THING])
def test_a_missing_file_is_called_missing(project, checkout, path):
    """Neither an edit nor an interrupted run: a file was deleted."""
    project.tool("--root", checkout)
    (checkout / path).unlink()
    before = everything(checkout)
    for verb in ((), ("--reverse",)):
        result = project.tool("--root", checkout, *verb)
        assert result.code == 5 and f"{path}: missing" in result.err
    assert everything(checkout) == before


def test_a_folder_in_the_way_is_refused(project, checkout):
    """Where a new file goes: one line, exit 5, nothing moves."""
    (checkout / THING).mkdir(parents=True)
    before = everything(checkout)
    result = project.tool("--root", checkout)
    assert result.code == 5 and f"{THING}: expected a file or nothing, found a folder" in result.err
    assert result.err.count("\n") == 1
    assert everything(checkout) == before


def test_a_patch_without_full_index_lines(project, checkout):
    path = project.patches / NAMES[1]
    lines = [line for line in path.read_bytes().split(b"\n") if not line.startswith(b"index ")]
    path.write_bytes(b"\n".join(lines))
    project.relock()
    result = project.tool("--root", checkout)
    assert result.code == 6 and NAMES[1] in result.err
    assert _upstream_part(checkout) == LEVELS[0]
