# SPDX-License-Identifier: Apache-2.0
"""Applying and taking back: bytes on disk, exit codes, and that nothing else moves."""

from __future__ import annotations

import json

import patchset_project as made
import pytest
from patchset_project import ACCENTS, CRLF, ENGINE, NAMES, THING, UNTOUCHED, everything, read_tree

LEVELS = made.levels()
TOP = len(NAMES)
NO_CHANGE = f"""\
diff --git a/{UNTOUCHED} b/{UNTOUCHED}
--- a/{UNTOUCHED}
+++ b/{UNTOUCHED}
@@ -1 +1 @@
-x = 1
+x = 1
""".encode()


@pytest.mark.parametrize("level", range(TOP + 1))
def test_every_level_is_byte_exact(project, level):
    """CRLF, odd names, a rename, a mode change, an empty file, a deletion, `+++` content."""
    arguments = ["--to", NAMES[level - 1][:4]] if level else ["--reverse"]
    assert project.tool(*arguments).code == 0
    assert read_tree(project.files) == LEVELS[level]


@pytest.mark.parametrize("start", range(TOP + 1))
def test_from_any_level_to_the_top_and_again(project, start):
    """From level k to n; the second run moves no modification time."""
    if start:
        project.tool("--to", NAMES[start - 1][:4])
    assert project.tool().code == 0
    assert read_tree(project.files) == LEVELS[TOP]
    before = everything(project.root)
    again = project.tool()
    assert (again.code, again.err) == (0, "")
    assert "already so" in again.out
    assert everything(project.root) == before


def test_only_the_touched_files_move(project):
    """A file that is the same at both levels keeps its modification time."""
    before = everything(project.files / "python")
    project.tool()
    after = everything(project.files / "python")
    moved = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    touched = {
        path.removeprefix("python/")
        for path in LEVELS[0].keys() | LEVELS[TOP].keys()
        if LEVELS[0].get(path) != LEVELS[TOP].get(path)
    }
    assert moved == touched


def test_reverse_gives_upstream_back(applied):
    assert applied.tool("--reverse").code == 0
    assert read_tree(applied.files) == LEVELS[0]


def test_reverse_to_a_level(applied):
    assert applied.tool("--reverse", "--to", "0020").code == 0
    assert applied.level() == 2
    refused = applied.tool("--reverse", "--to", "0030")
    assert refused.code == 2 and refused.err.count("\n") == 1
    assert applied.level() == 2


@pytest.mark.parametrize("broken", range(TOP))
def test_a_broken_patch_changes_nothing(project, broken):
    """Break patch k: exit 3, and the tree is what it was, times included."""
    path = project.patches / NAMES[broken]
    data = path.read_bytes()
    removed = next(
        line
        for line in data[data.index(b"\ndiff --git") :].split(b"\n")
        if line.startswith(b"-") and not line.startswith(b"---")
    )
    path.write_bytes(data.replace(b"\n" + removed + b"\n", b"\n-something else\n", 1))
    before = everything(project.root)
    result = project.tool()
    assert result.code == 3 and result.err.count("\n") == 1
    assert NAMES[broken] in result.err
    assert everything(project.root) == before


@pytest.mark.parametrize("verb", [(), ("--check",), ("--reverse",), ("--status",)])
def test_a_foreign_tree_is_refused(applied, verb):
    """Another release's files: exit 4, both versions printed, nothing written."""
    python = applied.files / "python" / "sglang"
    (python / "_version.py").write_text("__version__ = version = '9.8.0'\n")
    (applied.files / ENGINE).write_text("another release\n")
    before = everything(applied.root)
    result = applied.tool(*verb)
    text = result.err + result.out
    assert result.code == 4
    assert made.VERSION in text and "9.8.0" in text
    assert everything(applied.root) == before


def test_check_touches_nothing(project):
    before = everything(project.root)
    assert project.tool("--check").code == 0
    assert everything(project.root) == before


def test_status_is_honest(project):
    """Before, between, and after, by exit code and by JSON."""
    seen = []
    for arguments in ((), ("--to", "0020"), ()):
        if seen:
            project.tool(*arguments)
        result = project.tool("--status", "--json")
        report = json.loads(result.out)
        seen.append((result.code, report["level"], [p["applied"] for p in report["patches"]]))
    assert seen == [
        (1, "base", [False] * 4),
        (1, "0020", [True, True, False, False]),
        (0, "0040", [True] * 4),
    ]


def test_edits_in_other_files_survive(project):
    """A file that no patch touches, and a touched one that does not move."""
    project.tool("--to", "0020")
    (project.files / UNTOUCHED).write_text("mine = 1\n")
    (project.files / CRLF).write_bytes(b"mine\r\n")
    (project.files / "python/sglang/srt/new_mine.py").write_text("mine = 2\n")
    assert project.tool().code == 0
    found = read_tree(project.files)
    assert found.pop("python/sglang/srt/new_mine.py") == (0o644, b"mine = 2\n")
    assert found.pop(UNTOUCHED) == (0o644, b"mine = 1\n")
    assert found.pop(CRLF) == (0o644, b"mine\r\n")
    assert found == {p: e for p, e in LEVELS[TOP].items() if p not in (UNTOUCHED, CRLF)}


def test_an_edited_touched_file_is_not_reported_as_applied(applied):
    """The other files say level 0040; the edited one cannot vouch for it."""
    (applied.files / ENGINE).write_bytes((applied.files / ENGINE).read_bytes() + b"mine = 1\n")
    result = applied.tool("--status", "--json")
    assert result.code == 1
    assert json.loads(result.out)["edited"] == [ENGINE]


@pytest.mark.parametrize("path", [ENGINE, THING, ACCENTS])
def test_an_edit_in_the_way_is_refused(project, path):
    """An edited file (or, for THING, one that is new to upstream) must move: exit 5."""
    file = project.files / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine = 1\n")
    before = everything(project.root)
    for arguments in ((), ("--check",)):
        result = project.tool(*arguments)
        assert result.code == 5 and path in result.err and result.err.count("\n") == 1
        assert everything(project.root) == before


def test_an_interrupted_move_is_completed(project):
    """Files of two levels are recognised by content, and the next run finishes."""
    for path, (mode, data) in LEVELS[TOP].items():
        if path in (ENGINE, ACCENTS):
            (project.files / path).write_bytes(data)
            (project.files / path).chmod(mode)
    assert project.tool("--status").code == 1
    assert project.tool().code == 0
    assert read_tree(project.files) == LEVELS[TOP]


def test_a_series_that_changed_after_it_was_applied(applied):
    """A pull that brings another series: the files are known, so the next run moves them."""
    (applied.patches / NAMES[3]).unlink()
    for name in ("series", "series.lock"):
        text = (applied.patches / name).read_text()
        kept = [line for line in text.splitlines() if not line.startswith("0040")]
        (applied.patches / name).write_text("\n".join(kept) + "\n")
    status = applied.tool("--status")
    assert status.code == 1 and "edited" not in status.out
    result = applied.tool()
    assert result.code == 0 and "keeps your edits" not in result.out
    assert applied.level() == 3


def test_a_series_without_a_locked_patch(applied):
    """A line is gone from the series, and series.lock still has its row: exit 6."""
    applied.drop_from_series(NAMES[3])
    before = everything(applied.root)
    for verb in ((), ("--check",), ("--status",), ("--reverse",)):
        result = applied.tool(*verb)
        assert result.code == 6 and result.err.count("\n") == 1
        assert "expected the patches of the series (0010 0020 0030)" in result.err
    assert everything(applied.root) == before
    assert applied.tool("--refresh").code == 0
    assert applied.tool().code == 0
    assert applied.level() == 3


@pytest.mark.parametrize("change", ["message", "cut"])
def test_a_patch_that_is_not_the_locked_one(project, change):
    """Not even where the result is the same: exit 6 until --refresh records it."""
    path = project.patches / NAMES[3]
    if change == "message":
        path.write_bytes(path.read_bytes().replace(b"Why: ", b"Why, in other words: "))
    else:
        project.cut_the_last_section()
    before = everything(project.root)
    result = project.tool()
    assert result.code == 6 and NAMES[3] in result.err and result.err.count("\n") == 1
    assert everything(project.root) == before
    assert project.tool("--refresh").code == 0
    assert project.tool().code == 0


def test_a_missing_new_file_is_restored(applied):
    """It is called missing, not an interrupted run, and the next run brings it back."""
    (applied.files / THING).unlink()
    status = applied.tool("--status")
    assert status.code == 1 and f"missing      {THING}" in status.out
    assert "interrupted" not in status.out
    assert json.loads(applied.tool("--status", "--json").out)["missing"] == [THING]
    refused = applied.tool("--refresh")
    assert refused.code == 2 and f"{THING}: missing" in refused.err
    assert applied.tool().code == 0
    assert applied.level() == TOP


def test_a_missing_upstream_file_is_called_missing(applied):
    """The tool does not call it edited, and does not report the series as applied."""
    (applied.files / ENGINE).unlink()
    status = applied.tool("--status")
    assert status.code == 1 and f"missing      {ENGINE}" in status.out
    assert "edit" not in status.out
    assert f"leaves it missing: {ENGINE}" in applied.tool().out
    refused = applied.tool("--reverse")
    assert refused.code == 5 and f"{ENGINE}: missing here" in refused.err


def test_a_folder_in_the_way_is_refused(project):
    """Where a new file goes: one line, exit 5, nothing moves."""
    (project.files / THING).mkdir(parents=True)
    before = everything(project.root)
    result = project.tool()
    assert result.code == 5 and f"{THING}: expected a file or nothing, found a folder" in result.err
    assert result.err.count("\n") == 1
    assert everything(project.root) == before


def test_a_result_that_is_not_the_locked_one(project):
    """A patch that applies, but adds something else than recorded: exit 6, nothing written."""
    path = project.patches / NAMES[3]
    path.write_bytes(path.read_bytes().replace(b"+LAST = 1", b"+LAST = 2"))
    before = everything(project.root)
    result = project.tool()
    assert result.code == 6 and NAMES[3] in result.err
    assert everything(project.root) == before


def test_a_lock_with_another_tree(project):
    lock = project.patches / "series.lock"
    lock.write_text(lock.read_text().replace(made.tree_id(LEVELS[2]), made.tree_id(LEVELS[1])))
    result = project.tool()
    assert result.code == 6 and made.tree_id(LEVELS[2]) in result.err
    assert project.level() == 0


def test_inside_another_repository_that_ignores_it(project, monkeypatch):
    """`git apply` there would do nothing and say 0: the bytes must change."""
    made.plain_git(project.root, "init", "-q", ".")
    (project.root / ".gitignore").write_text("sglang/\n")
    made.plain_git(project.root, "add", ".gitignore")
    monkeypatch.chdir(project.files / "python")
    outer = everything(project.root / ".git")
    assert project.tool("--status").code == 1
    assert project.tool().code == 0
    assert read_tree(project.files) == LEVELS[TOP]
    assert project.tool("--status").code == 0
    assert everything(project.root / ".git") == outer


HOSTILE = """\
[core]
\tautocrlf = true
\teol = crlf
\tfileMode = false
\thooksPath = {hooks}
\tattributesFile = {attributes}
\texcludesFile = {excludes}
[apply]
\twhitespace = fix
\tignoreWhitespace = change
[commit]
\tgpgsign = true
[diff]
\tnoprefix = true
\tmnemonicPrefix = true
\trenames = copies
\tcontext = 0
\texternal = /bin/false
[user]
\tuseConfigOnly = true
[index]
\tversion = 4
"""


def _hostile(monkeypatch, home, project) -> None:
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    (home / "attributes").write_text("* text=auto eol=crlf ident\n*.py binary\n")
    (home / "excludes").write_text("*.py\n")
    text = HOSTILE.format(hooks=hooks, attributes=home / "attributes", excludes=home / "excludes")
    (home / ".gitconfig").write_text(text)
    xdg = home / "xdg" / "git"
    xdg.mkdir(parents=True)
    (xdg / "config").write_text(text)
    (xdg / "attributes").write_text("* text=auto eol=crlf\n")
    other = home / "other repository"
    other.mkdir()
    made.plain_git(other, "init", "-q", ".")
    settings = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / "xdg",
        "GIT_CONFIG_GLOBAL": home / ".gitconfig",
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / "index",
        "GIT_OBJECT_DIRECTORY": other / "objects",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_EXTERNAL_DIFF": "/bin/false",
        "GIT_DIFF_OPTS": "--unified=0",
        "GIT_LITERAL_PATHSPECS": "0",
        "LC_ALL": "C",
    }
    for key, value in settings.items():
        monkeypatch.setenv(key, str(value))


@pytest.mark.parametrize("home", ["hostile", "empty", "absent"])
def test_configuration_and_environment_do_not_matter(project, tmp_path, monkeypatch, home):
    """Same bytes with hostile settings, with no identity, and with no home at all."""
    folder = tmp_path / "home"
    if home == "hostile":
        _hostile(monkeypatch, folder, project)
    elif home == "empty":
        folder.mkdir()
        monkeypatch.setenv("HOME", str(folder))
    else:
        monkeypatch.delenv("HOME", raising=False)
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    before = everything(folder) if folder.exists() else {}
    assert project.tool().code == 0
    assert read_tree(project.files) == LEVELS[TOP]
    patches = everything(project.patches)
    (project.files / ENGINE).write_bytes(LEVELS[1][ENGINE][1])
    assert project.tool("--refresh", "0040").code == 0
    (project.files / ENGINE).write_bytes(LEVELS[TOP][ENGINE][1])
    assert project.tool("--refresh", "0040").code == 0
    after = everything(project.patches)
    assert {p: e[2] for p, e in after.items()} == {p: e[2] for p, e in patches.items()}
    assert (everything(folder) if folder.exists() else {}) == before


def test_attributes_in_the_tree_do_not_matter(project):
    """Upstream's own .gitattributes asks for line-end conversion, and is not heard."""
    (project.files / ".gitattributes").write_text("* text eol=crlf\n*.py filter=x ident\n")
    (project.files / ".gitignore").write_text("*.py\n")
    assert project.tool().code == 0
    found = read_tree(project.files)
    assert {p: found[p] for p in LEVELS[TOP]} == LEVELS[TOP]


def test_build_results_are_not_edits(applied):
    """Importing the tree writes caches; they are neither edits nor in the way."""
    cache = applied.files / "python/sglang/srt/__pycache__"
    cache.mkdir()
    (cache / "engine.cpython-311.pyc").write_bytes(b"\0")
    report = json.loads(applied.tool("--status", "--json").out)
    assert (report["edited"], report["edited_elsewhere"]) == ([], [])
    assert applied.tool("--reverse").code == 0
    assert (cache / "engine.cpython-311.pyc").exists()


def test_an_ignored_file_in_the_way_is_refused(project):
    """git takes ignored files for expendable, and would overwrite this one without a word."""
    (project.files / ".gitignore").write_text("ddtree/\n")
    made.write_tree(project.files, {THING: (0o644, b"mine = 1\n")})
    before = everything(project.root)
    result = project.tool()
    assert result.code == 5 and THING in result.err
    assert everything(project.root) == before


def test_a_replacement_that_does_nothing(project, monkeypatch):
    """The files are read back: success is what is on disk, and not the lack of an error."""
    monkeypatch.setattr("patchset.swap.os.replace", lambda new, target: None)
    result = project.tool()
    assert result.code == 5 and result.err.count("\n") == 1
    monkeypatch.undo()
    assert project.tool("--status").code == 1


def test_a_patch_that_changes_nothing(project):
    """Git applies `-x +x` and says 0; a level must differ from the one below."""
    path = project.patches / NAMES[0]
    path.write_bytes(made.header(NAMES[0]) + NO_CHANGE)
    project.relock()
    result = project.tool()
    assert result.code == 3 and "changes nothing" in result.err
    assert project.level() == 0
