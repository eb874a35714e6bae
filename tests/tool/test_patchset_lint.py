# SPDX-License-Identifier: Apache-2.0
"""--lint: what is listed, on disk, locked, and in what form."""

from __future__ import annotations

import pytest
from patchset_project import ENGINE, NAMES, everything

ADDED = (b"HOOK = 1", "größe = 2".encode(), b"moved = 2", b"LAST = 1")


def _edit(project, name: str, old: bytes, new: bytes) -> None:
    path = project.patches / name
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))
    project.relock()


def _findings(project) -> list[str]:
    before = everything(project.root)
    result = project.tool("--lint")
    assert result.code == (7 if result.out.startswith("patches/") else 0)
    assert everything(project.root) == before
    return result.out.splitlines() if result.code else []


def test_the_made_series_is_clean(bare_project):
    assert _findings(bare_project) == []


def test_an_empty_series_is_clean(bare_project):
    for name in NAMES:
        (bare_project.patches / name).unlink()
    (bare_project.patches / "series").write_text("# none yet\n")
    (bare_project.patches / "series.lock").write_text("# none yet\n")
    assert _findings(bare_project) == []


@pytest.mark.parametrize("name", NAMES)
def test_any_changed_byte_is_found(project, name):
    """One byte of any patch: lint sees the sha256, and the content cannot be applied."""
    path = project.patches / name
    data = path.read_bytes()
    at = max(data.rfind(b"\n+" + start) for start in ADDED) + 2
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert any(name in finding and "sha256" in finding for finding in _findings(project))
    assert project.tool("--check").code == 6
    assert project.tool().code == 6
    assert project.level() == 0


def test_a_patch_that_the_series_does_not_list(bare_project):
    """Verified = listed = on disk."""
    (bare_project.patches / "0050-extra.patch").write_bytes(b"")
    assert _findings(bare_project) == [
        "patches/9.9.1/0050-extra.patch: is on disk, but the series does not list it"
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([NAMES[0], *NAMES], "listed twice"),
        ([*NAMES[:2], NAMES[3], NAMES[2]], "0030 comes after 0040"),
        ([*NAMES, "0050-gone.patch"], "no such file"),
        ([*NAMES, "0050-Bad_Name.patch"], "not NNNN-kebab-subject"),
        ([*NAMES, "0040-again.patch"], "0040 is used twice"),
        (NAMES[:3], "the series does not list it"),
    ],
)
def test_a_wrong_list(bare_project, lines, expected):
    """The series file is the only order list, and it is a right one."""
    (bare_project.patches / "series").write_text("".join(f"{line}\n" for line in lines))
    assert any(expected in finding for finding in _findings(bare_project))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"From 0", b"From 1", "format-patch form"),
        (b"[PATCH] ", b"", "format-patch form"),
        (b"Date: Thu, 1 Jan 2026", b"Date: 2026-01-01", "format-patch form"),
        (b"Forwarded: no\n", b"", "'Forwarded:' is missing"),
        (b"Forwarded: no\n", b"Forwarded:\n", "'Forwarded:' is missing"),
        (b"Depends: 0010\n", b"", "'Depends:' is missing"),
        (b"Depends: 0010", b"Depends: 0010, 0030", "'0030' is neither an earlier patch"),
        (b"Test: ", b"Nothing: ", "'Test:' is missing"),
        (b"test_all.py", b"test_none.py", "test_none.py::test does not exist"),
        (b"Remove-When: never\n", b"", "'Remove-When:' is missing"),
        (b"---\ndiff", b"---\n a.py | 2 +-\n\ndiff", "neither header nor diff"),
        (b"b/python/sglang/srt/crlf.py", b"b/test/crlf.py", "different file names"),
        (b"+++ b/python/sglang/srt/crlf.py", b"+++ b/x.py", "different file names"),
        (b'+{"a": 2}', b'+{"a": 2} ', "trailing whitespace"),
        (b'+{"a": 2}', b"+<<<<<<< ours", "conflict marker"),
        ("+größe = 2\n".encode(), "+größe = 2\r\n".encode(), "carriage return"),
    ],
)
def test_the_form_of_a_patch(bare_project, old, new, expected):
    _edit(bare_project, NAMES[1], old, new)
    assert any(expected in finding for finding in _findings(bare_project))


def test_a_patch_outside_python(bare_project):
    path = bare_project.patches / NAMES[0]
    path.write_bytes(path.read_bytes().replace(b"/python/sglang/srt/engine.py", b"/test/engine.py"))
    bare_project.relock()
    assert any("not under python/" in finding for finding in _findings(bare_project))


def test_a_signature_is_found(bare_project):
    path = bare_project.patches / NAMES[2]
    path.write_bytes(path.read_bytes() + b"-- \n2.39.5\n\n")
    bare_project.relock()
    assert any("neither header nor diff" in finding for finding in _findings(bare_project))


def test_a_run_of_junk_is_one_finding(bare_project):
    """Hundreds of lines that git skips: one line, with the range."""
    path = bare_project.patches / NAMES[2]
    head, diff = path.read_bytes().split(b"---\n", 1)
    junk = b"\n".join([b"a word", b""] * 200)
    path.write_bytes(head + b"---\n" + junk + diff)
    bare_project.relock()
    first = head.count(b"\n") + 2
    assert _findings(bare_project) == [
        f"patches/9.9.1/{NAMES[2]}: line {first} to {first + 398}: neither header nor diff"
    ]


@pytest.mark.parametrize("version", [b"2.39.5", b"2.39.5 (Apple Git-154)", b"2.50.1.windows.1"])
def test_a_signature_of_git_is_no_damage(project, version):
    """Git format-patch writes one; lint finds it, and the patch applies."""
    path = project.patches / NAMES[3]
    path.write_bytes(path.read_bytes() + b"-- \n" + version + b"\n\n")
    project.relock()
    assert len(_findings(project)) == 1
    assert project.tool("--check").code == 0


@pytest.mark.parametrize("text", [b"text\n", b"2.39.5\ntext\n", b"2.39.5\n\ndiff --git a/x b/x\n"])
def test_text_after_the_signature(project, text):
    """Git would skip it, a whole diff too: lint 7, apply 3."""
    path = project.patches / NAMES[3]
    path.write_bytes(path.read_bytes() + b"-- \n" + text)
    project.relock()
    assert any("after the signature" in finding for finding in _findings(project))
    result = project.tool()
    assert result.code == 3 and result.err.count("\n") == 1
    assert project.level() == 0


def test_a_patch_that_does_not_start_where_the_last_one_ended(bare_project):
    """0040 expects another engine.py than 0010 leaves."""
    data = (bare_project.patches / NAMES[3]).read_bytes()
    blob = data[data.index(b"index ", data.index(ENGINE.encode())) :][6:46]
    _edit(bare_project, NAMES[3], blob, b"1" * 40)
    assert any("the patches before it leave" in finding for finding in _findings(bare_project))


@pytest.mark.parametrize(
    "damage", ["crlf", "last newline", "short hunk", "long hunk", "line kind", "cut"]
)
def test_damaged_patch_files(project, damage):
    """CRLF checkout, lost last newline, wrong counts, cut in half: lint 7, apply 3."""
    path = project.patches / NAMES[0]
    data = path.read_bytes()
    path.write_bytes(
        {
            "crlf": data.replace(b"\n", b"\r\n"),
            "last newline": data[:-1],
            "short hunk": data.replace(b"@@ -0,0 +1 @@", b"@@ -0,0 +1,2 @@"),
            "long hunk": data.replace(b"-1,5 +1,5 @@", b"-1,4 +1,4 @@"),
            "line kind": data.replace(b"+one = 1", b" one = 1"),
            "cut": data[: data.rindex(b"\n+") + 1],
        }[damage]
    )
    assert path.read_bytes() != data
    project.relock()
    assert any(NAMES[0] in finding for finding in _findings(project))
    result = project.tool()
    assert result.code == 3 and NAMES[0] in result.err and result.err.count("\n") == 1
    assert project.level() == 0


def test_added_lines_that_look_like_headers(project):
    """Content that a patch shows as `+++ ...` is content."""
    data = (project.patches / NAMES[3]).read_bytes()
    assert b"\n+++ a line that a patch shows with three pluses\n" in data
    assert _findings(project) == []
    assert project.tool().code == 0
    assert project.level() == 4


def test_a_damaged_lock(bare_project):
    lock = bare_project.patches / "series.lock"
    lock.write_text(lock.read_text().replace("0020 ", "0020 x"))
    assert any("series.lock" in finding for finding in _findings(bare_project))


def test_a_lock_without_a_patch(bare_project):
    lock = bare_project.patches / "series.lock"
    rows = [row for row in lock.read_text().splitlines() if not row.startswith("0030")]
    lock.write_text("\n".join(rows) + "\n")
    assert any("has 0010 0020 0040" in finding for finding in _findings(bare_project))
