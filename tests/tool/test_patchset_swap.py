# SPDX-License-Identifier: Apache-2.0
"""A move that fails in the middle: every file is what it was, and the same command then works."""

from __future__ import annotations

import errno
import os

import patchset_project as made
import pytest
from patchset_project import ENGINE, NAMES, SCRIPT, THING, everything, read_tree

LEVELS = made.levels()
TOP = len(NAMES)
PACKAGE = "python/sglang/srt/ddtree"


def _full_at(monkeypatch, call: str, count: int) -> None:
    """Let the `count`-th call of an os function of the mover say that the disk is full."""
    original, left = getattr(os, call), [count]

    def limited(*args):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(*args)

    monkeypatch.setattr(f"patchset.swap.os.{call}", limited)


def _folders(root) -> list:
    return sorted(path for path in root.rglob("*") if path.is_dir())


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize(("start", "verb"), [(0, ()), (TOP, ("--reverse",))])
@pytest.mark.parametrize(
    ("call", "count"), [("fsync", 1), ("fsync", 4), ("replace", 1), ("replace", 2), ("replace", 5)]
)
def test_a_full_disk(project, checkout, monkeypatch, foreign, start, verb, call, count):
    """While the new files are written, or between two replacements: all bytes and times."""
    root = checkout if foreign else project.files
    where = ("--root", checkout) if foreign else ()
    if start:
        assert project.tool(*where).code == 0
    python = root / "python"
    before, folders = everything(python), _folders(python)
    with monkeypatch.context() as patch:
        _full_at(patch, call, count)
        result = project.tool(*where, *verb)
    assert result.code == 2 and result.err.count("\n") == 1
    assert "No space left" in result.err and "nothing was changed" in result.err
    assert (everything(python), _folders(python)) == (before, folders)
    assert project.tool(*where, *verb).code == 0
    found = {path: entry for path, entry in read_tree(root).items() if path.startswith("python/")}
    assert found == LEVELS[0 if start else TOP]


def test_an_interrupt_between_two_replacements(project, monkeypatch):
    """Ctrl-C puts the files back as well."""
    before = everything(project.files / "python")
    original, left = os.replace, [3]

    def interrupted(*args):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr("patchset.swap.os.replace", interrupted)
    assert project.tool().code == 130
    assert everything(project.files / "python") == before


def test_a_file_that_cannot_be_put_back(project, monkeypatch):
    """The message names the file and where its old content is; that file is really there."""
    _full_at(monkeypatch, "replace", 3)
    _full_at(monkeypatch, "rename", 2)
    result = project.tool()
    assert result.code == 2 and result.err.count("\n") == 1
    lost, old = result.err.split(", and ")[1].split(": its old content is in ")
    path = lost.removesuffix(" could not be put back")[len(str(project.files)) + 1 :]
    with open(old.split(": move it there")[0], "rb") as stream:
        assert stream.read() == LEVELS[0][path][1]


def test_no_hard_links(project, monkeypatch):
    """On such a file system the old files are kept as copies."""

    def refused(*args):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    before = everything(project.files / "python")
    monkeypatch.setattr("patchset.swap.os.link", refused)
    with monkeypatch.context() as patch:
        _full_at(patch, "replace", 4)
        assert project.tool().code == 2
    assert everything(project.files / "python") == before
    assert project.tool().code == 0
    assert read_tree(project.files) == LEVELS[TOP]


def test_what_a_killed_run_leaves_is_swept_up(project):
    """It is no edit, and the next run removes it."""
    leftover = (project.files / ENGINE).with_name(".patchset-3~")
    leftover.write_text("half")
    assert "edited" not in project.tool("--status").out
    assert project.tool().code == 0
    assert not leftover.exists()


def test_permissions(project, checkout):
    """Old ones stay; new files and folders look like those beside them; umask 077 or not."""
    files = {path: checkout / path for path in (ENGINE, SCRIPT, THING)}
    files[ENGINE].chmod(0o664)
    files[SCRIPT].chmod(0o640)
    beside = checkout / PACKAGE / "a.py"
    made.write_tree(checkout, {f"{PACKAGE}/a.py": (0o660, b"")})
    new_alone = checkout / "python/sglang/srt/new name.py"
    for sibling in (checkout / "python/sglang/srt").glob("*.py"):
        sibling.chmod(0o664)
    mask = os.umask(0o077)
    try:
        assert project.tool("--root", checkout).code == 0
    finally:
        os.umask(mask)
    modes = {path: file.stat().st_mode & 0o777 for path, file in files.items()}
    assert modes == {ENGINE: 0o664, SCRIPT: 0o750, THING: 0o660}
    assert new_alone.stat().st_mode & 0o777 == 0o664
    assert beside.stat().st_mode & 0o777 == 0o660


def test_permissions_in_a_new_folder(project, checkout):
    """Nothing is beside the file: 0644, in a folder like the one around it."""
    mask = os.umask(0o077)
    try:
        assert project.tool("--root", checkout).code == 0
    finally:
        os.umask(mask)
    assert (checkout / THING).stat().st_mode & 0o777 == 0o644
    folder = checkout / PACKAGE
    assert folder.stat().st_mode == folder.parent.stat().st_mode
    assert project.tool("--root", checkout, "--reverse").code == 0
    assert not folder.exists()
