# SPDX-License-Identifier: Apache-2.0
"""--refresh: edits on disk become patches, and nothing is lost when they cannot."""

from __future__ import annotations

import errno
import os

import patchset_project as made
import pytest
from patchset_project import CRLF, ENGINE, NAMES, THING, UNTOUCHED, everything, read_tree

LEVELS = made.levels()
TOP = len(NAMES)


def _edit(project, path: str, old: bytes, new: bytes) -> None:
    file = project.files / path
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))


def _patches(project) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in project.patches.iterdir()}


def _refused(project, code: int, *arguments: str) -> str:
    before = everything(project.root)
    result = project.tool("--refresh", *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert everything(project.root) == before
    return result.err


def _in_order(project) -> None:
    """Lint is clean but for new templates, and the series gives the files on disk from upstream."""
    expected = read_tree(project.files)
    assert project.tool("--reverse").code == 0
    assert read_tree(project.files) == LEVELS[0]
    assert project.tool().code == 0
    assert read_tree(project.files) == expected
    assert project.tool("--lint").code == 0


@pytest.mark.parametrize("level", range(TOP + 1))
def test_nothing_to_export(project, level):
    """Exit 2; and so the export of every odd file is byte for byte the old patch."""
    if level:
        project.tool("--to", NAMES[level - 1][:4])
    assert "nothing to export" in _refused(project, 2)


def test_an_edit_goes_into_the_topmost_patch(applied):
    """Only that patch and the lock are rewritten; its header stays byte for byte."""
    before = _patches(applied)
    _edit(applied, ENGINE, b"LAST = 1", b"LAST = 100")
    result = applied.tool("--refresh")
    assert result.code == 0, result.err
    after = _patches(applied)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {NAMES[3], "series.lock"}
    assert b"+LAST = 100\n" in after[NAMES[3]]
    assert after[NAMES[3]].split(b"---\n")[0] == before[NAMES[3]].split(b"---\n")[0]
    assert applied.tool("--status").code == 0
    _in_order(applied)


def test_an_edit_of_an_untouched_and_of_a_new_file(applied):
    """New files belong to the patch; caches and editors' leftovers do not."""
    _edit(applied, UNTOUCHED, b"x = 1", b"x = 2")
    made.write_tree(
        applied.files,
        {
            "python/sglang/srt/brand new.py": (0o755, b"new = 1\n"),
            "python/sglang/srt/engine.py.orig": (0o644, b"junk\n"),
            "python/sglang/__pycache__/x.pyc": (0o644, b"junk\n"),
        },
    )
    assert applied.tool("--refresh").code == 0
    text = _patches(applied)[NAMES[3]]
    assert b"new file mode 100755" in text and b"+x = 2\n" in text
    assert b"junk" not in text and b"__pycache__" not in text
    (applied.files / "python/sglang/srt/engine.py.orig").unlink()
    (applied.files / "python/sglang/__pycache__/x.pyc").unlink()
    _in_order(applied)


def test_crlf_survives(applied):
    """An edit in a CRLF file keeps its line ends in the patch."""
    _edit(applied, CRLF, b"c = 3\r\n", b"c = 30\r\n")
    assert applied.tool("--refresh").code == 0
    assert b"+c = 30\r\n" in _patches(applied)[NAMES[3]]
    _in_order(applied)


def test_an_edit_at_a_lower_level(project):
    """Later patches are carried over, and rewritten only where their diff changes."""
    project.tool("--to", "0010")
    before = _patches(project)
    _edit(project, ENGINE, b"HOOK = 1\n", b"HOOK = 1\nHOOK_2 = 2\n")
    assert project.tool("--refresh", "0010").code == 0
    after = _patches(project)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {NAMES[0], NAMES[3], "series.lock"}
    assert project.tool().code == 0
    engine = (project.files / ENGINE).read_bytes()
    assert b"HOOK_2 = 2\n" in engine and engine.endswith(b"LAST = 1\n")
    _in_order(project)


def test_a_conflict_with_a_later_patch(project):
    """Exit 3; patch, file, and hunk are named; no patch file is lost or changed."""
    project.tool("--to", "0010")
    _edit(project, ENGINE, b"LAST = None", b"LAST = 'other'")
    message = _refused(project, 3, "0010")
    assert NAMES[3] in message and f"patch failed: {ENGINE}:" in message


def test_conflict_markers_are_refused(applied):
    """In the middle of somebody's merge."""
    _edit(applied, ENGINE, b"LAST = 1\n", b"<<<<<<< ours\nLAST = 1\n=======\nL = 2\n>>>>>>> b\n")
    assert "conflict markers" in _refused(applied, 2)


def test_a_patch_that_would_become_empty(applied):
    """All that 0040 does, done at 0010 already: no empty patch file is written."""
    applied.tool("--to", "0010")
    for path in (ENGINE, THING):
        made.write_tree(applied.files, {path: (0o644, b"more = 1\n" + LEVELS[TOP][path][1])})
    assert f"{NAMES[3]} would become empty" in _refused(applied, 2, "0010")


def test_a_patch_undone_by_hand(applied):
    """The files are then simply at the level below, and there is nothing to export."""
    for path in (ENGINE, THING):
        made.write_tree(applied.files, {path: LEVELS[3][path]})
    assert "nothing to export" in _refused(applied, 2)
    assert "--to 0040" in _refused(applied, 2, "0040")


def test_a_part_of_a_patch_is_taken_back(applied):
    """Upstream's bytes in one file: an edit, if the number says so, and refused if it does not."""
    made.write_tree(applied.files, {ENGINE: LEVELS[3][ENGINE]})
    assert "--refresh NNNN" in _refused(applied, 2)
    assert applied.tool("--refresh", "0040").code == 0
    assert ENGINE.encode() not in _patches(applied)[NAMES[3]].split(b"\n---\n")[1]
    _in_order(applied)


def test_edits_that_fit_two_levels(project):
    """At 0030, an edit in files that only 0040 touches could be either: ask."""
    project.tool("--to", "0030")
    for path in (ENGINE, THING):
        made.write_tree(project.files, {path: (0o644, LEVELS[3][path][1] + b"more = 1\n")})
    assert "0040" in _refused(project, 2)
    assert project.tool("--refresh", "0030").code in (0, 3)


def test_another_level_than_the_files_are_at(applied):
    """--refresh 0020 on a full tree would put everything later into 0020."""
    assert "--to 0020" in _refused(applied, 2, "0020")


def test_a_new_patch_at_the_end(applied):
    _edit(applied, UNTOUCHED, b"x = 1", b"x = 2")
    assert applied.tool("--refresh", "--new", "0050-one-more").code == 0
    data = (applied.patches / "0050-one-more.patch").read_bytes()
    for expected in (
        b"Subject: [PATCH] one more\n",
        b"\nForwarded:",
        b"\nDepends:",
        b"\n---\ndiff",
    ):
        assert expected in data
    assert (applied.patches / "series").read_text().endswith(f"{NAMES[3]}\n0050-one-more.patch\n")
    assert applied.tool("--status").code == 0
    result = applied.tool("--lint")
    assert result.code == 7 and "does not say why" in result.out


def test_a_new_patch_in_the_middle(project):
    project.tool("--to", "0020")
    before = _patches(project)
    _edit(project, UNTOUCHED, b"x = 1", b"x = 2")
    assert project.tool("--refresh", "--new", "0025-between").code == 0
    after = _patches(project)
    assert {name: after[name] for name in NAMES} == {name: before[name] for name in NAMES}
    rows = (project.patches / "series").read_text().splitlines()
    assert rows == ["# order", *NAMES[:2], "0025-between.patch", *NAMES[2:]]
    assert project.tool().code == 0
    expected = {**LEVELS[TOP], UNTOUCHED: (0o644, b"x = 2\n")}
    assert read_tree(project.files) == expected


def test_the_first_patch_of_an_empty_series(project):
    for name in NAMES:
        (project.patches / name).unlink()
    for name in ("series", "series.lock"):
        (project.patches / name).write_text("# none yet\n")
    _edit(project, UNTOUCHED, b"x = 1", b"x = 2")
    assert "--new" in _refused(project, 2)
    assert project.tool("--refresh", "--new", "0010-first").code == 0
    assert (project.patches / "series").read_text() == "# none yet\n0010-first.patch\n"
    assert project.tool("--status").code == 0


@pytest.mark.parametrize(
    "title", ["0040-again", "0035-too-low", "50-short", "0050-Upper", "0050_x", "0050", "0050-x/y"]
)
def test_a_wrong_name_for_a_new_patch(applied, title):
    _edit(applied, UNTOUCHED, b"x = 1", b"x = 2")
    assert "--new" in _refused(applied, 2, "--new", title)


def test_a_new_patch_of_nothing(applied):
    assert "nothing to export" in _refused(applied, 2, "--new", "0050-empty")


def test_a_new_message_only_changes_the_lock(applied):
    path = applied.patches / NAMES[1]
    data = path.read_bytes().replace(b"Why: ", b"Why, in other words: ")
    path.write_bytes(data)
    assert applied.tool("--lint").code == 7
    assert applied.tool("--refresh").code == 0
    assert path.read_bytes() == data
    _in_order(applied)


def test_a_patch_edited_by_hand(applied):
    """The files are as the tool left them, so the patch file's word counts: export, then apply."""
    path = applied.patches / NAMES[3]
    path.write_bytes(path.read_bytes().replace(b"+LAST = 1", b"+LAST = 7"))
    assert applied.tool().code == 6
    assert applied.tool("--refresh").code == 0
    assert (applied.files / ENGINE).read_bytes() == LEVELS[TOP][ENGINE][1]
    assert applied.tool().code == 0
    assert (applied.files / ENGINE).read_bytes().endswith(b"LAST = 7\n")
    _in_order(applied)


def test_a_patch_with_junk_is_written_in_the_project_form(applied):
    """A diffstat, a signature, and short index lines go; the result is the same patch again."""
    path = applied.patches / NAMES[3]
    clean = path.read_bytes()
    head, diff = clean.split(b"---\n", 1)
    path.write_bytes(head + b"---\n a.py | 2 +-\n\n" + diff + b"-- \n2.39.5\n\n")
    assert applied.tool("--refresh").code == 0
    assert path.read_bytes() == clean


def test_undoing_an_edit_that_was_refreshed(applied):
    """The files are then as an earlier run left them, but not as the last one did."""
    before = _patches(applied)
    _edit(applied, ENGINE, b"LAST = 1", b"LAST = 100")
    assert applied.tool("--refresh").code == 0
    _edit(applied, ENGINE, b"LAST = 100", b"LAST = 1")
    assert applied.tool("--refresh").code == 0
    assert _patches(applied) == before


def test_a_full_disk_while_writing(applied, monkeypatch):
    """Nothing is replaced before every new file is on disk."""
    _edit(applied, ENGINE, b"LAST = 1", b"LAST = 100")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("patchset.series.os.fsync", full)
    assert "No space left" in _refused(applied, 2)
