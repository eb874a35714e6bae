# SPDX-License-Identifier: Apache-2.0
"""--3way, --continue, --abort, --refresh: carry a series to another release by hand."""

from __future__ import annotations

import re
import shutil
import subprocess

import newer_release as nr
import patchset_project as made
import pytest
from newer_release import ARGS, NAMES, NEWER, SRT, WORKER, newer

CONFLICT = {"args": ('    "--delta",\n', '    "--other",\n')}
RESOLVED = '    "--other",\n    "--tree",\n'
RESOLVED_AGAIN = '    "--other",\n    "--tree-budget",\n'


@pytest.fixture
def port(series, local_index):
    """A port to a release that conflicts with 0030, stopped there."""
    series.release(newer(**CONFLICT))
    result = series.tool("--3way", "--onto", NEWER)
    assert result.code == 3, result.err
    assert "0030-flag: stopped here" in result.out and "2 more to carry" in result.out
    return series


def _folder(series):
    return series.root / "sglang" / f"port-{NEWER}"


def _git(series, *arguments: str) -> str:
    """Ordinary git, as a person would use it there."""
    return made.plain_git(_folder(series), *arguments).decode()


def _resolve(series, text: str = RESOLVED) -> None:
    """Keep upstream's flag and have ours beside it."""
    file = _folder(series) / ARGS
    found = file.read_text()
    assert "<<<<<<<" in found
    file.write_text(re.sub(r"<<<<<<<.*>>>>>>> [^\n]*\n", text, found, flags=re.DOTALL))


def _to_the_last_stop(series) -> None:
    """Resolve 0030, go on to 0040, which changes its line, and resolve that."""
    _resolve(series)
    result = series.tool("--continue")
    assert result.code == 3, result.err
    assert "0040-more-of-the-flag: stopped here" in result.out
    _resolve(series, RESOLVED_AGAIN)


def _to_the_end(series) -> None:
    _to_the_last_stop(series)
    result = series.tool("--continue")
    assert result.code == 0, result.out + result.err


def _refused(series, *arguments: str, code: int = 2) -> str:
    before = made.everything(_folder(series)) if _folder(series).exists() else {}
    result = series.tool(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1), result
    if before:
        assert made.everything(_folder(series)) == before
    return result.err


def test_it_stops_in_an_ordinary_checkout(port):
    """The upstream release and a commit a carried patch; the conflict as git shows conflicts."""
    assert _git(port, "log", "--format=%s").split("\n")[:3] == [
        "0020-hook",
        "0010-tree",
        f"sglang {NEWER}",
    ]
    status = _git(port, "status", "--porcelain", "--untracked-files=all")
    assert status == f"UU {ARGS}\n"
    text = (_folder(port) / ARGS).read_text()
    assert f"<<<<<<< sglang {NEWER}\n" in text and ">>>>>>> 0030-flag\n" in text
    assert "||||||| " in text  # the common ancestor is shown
    assert "rows = batch.rows[: len(os.sep)]" in (_folder(port) / WORKER).read_text()


def test_nothing_else_moves(series, local_index):
    """Neither the patches nor the files that the old series is applied to."""
    series.tool("--to", "0020")
    (series.files / WORKER).write_text("edited = 1\n")
    series.release(newer(**CONFLICT))
    before = made.everything(series.root)
    series.tool("--3way", "--onto", NEWER)
    after = made.everything(series.root)
    assert {path: after[path] for path in before} == before
    assert series.tool("--abort").code == 0
    left = {path for path in made.everything(series.root) if path not in before}
    assert all(path.startswith(("sglang/.trees.git/", "sglang/.wheels/")) for path in left)


def test_conflicts_that_are_left_are_refused(port):
    err = _refused(port, "--continue")
    assert "conflict markers" in err and ARGS in err
    err = _refused(port, "--refresh")
    assert "0030" in err and "--continue" in err


def test_continued_to_the_end_and_written(port):
    """Resolve, continue to the next stop, resolve, write: the new series is in order."""
    _to_the_end(port)
    assert _git(port, "log", "--format=%s").split("\n")[:5] == [
        name.removesuffix(".patch") for name in reversed(NAMES)
    ]
    assert _git(port, "status", "--porcelain") == ""
    result = port.tool("--refresh")
    assert result.code == 0, result.err
    assert not _folder(port).exists()
    folder = port.root / "patches" / NEWER
    shared = [NAMES[0], NAMES[1], NAMES[4]]
    lines = (folder / "series").read_text().splitlines()
    assert lines[1:] == [f"../{made.VERSION}/{name}" if name in shared else name for name in NAMES]
    assert sorted(path.name for path in folder.iterdir()) == [
        NAMES[2],
        NAMES[3],
        "range-diff.txt",
        "series",
        "series.lock",
    ]
    text = (folder / "range-diff.txt").read_text()
    assert re.search(r"^1: .* = 1: .* 0010-tree$", text, re.MULTILINE)
    assert re.search(r"^3: .* ! 3: .* 0030-flag$", text, re.MULTILINE)
    assert port.tool("--release", NEWER, "--lint").code == 0
    result = port.materialise("--release", NEWER)
    assert result.code == 0, result.err
    assert port.tool("--release", NEWER).code == 0
    found = made.read_tree(port.root / "sglang" / NEWER)
    expected = dict(nr.levels()[-1]) | {
        path: entry for path, entry in newer().items() if path.endswith("_version.py")
    }
    text = newer(**CONFLICT)[ARGS][1].replace(b'    "--other",\n', RESOLVED_AGAIN.encode())
    assert found == expected | {ARGS: (0o644, text)}
    # The header of a patch that was carried by hand is the old one.
    old, new = ((port.root / "patches" / v / NAMES[2]).read_bytes() for v in (made.VERSION, NEWER))
    assert old.split(b"\ndiff --git")[0] == new.split(b"\ndiff --git")[0]


def test_the_default_release_is_still_in_order(port):
    _to_the_end(port)
    assert port.tool("--refresh").code == 0
    assert port.tool("--lint").code == 0
    assert port.tool().code == 0
    assert made.read_tree(port.files) == nr.levels()[-1]


def test_a_port_outlives_its_process(port, monkeypatch):
    """All that it knows is on disk: another process goes on, and the index is not needed."""
    _to_the_last_stop(port)
    monkeypatch.delenv("PIP_FIND_LINKS")
    command = [
        "python3", "-c",
        "import sys; from pathlib import Path; from patchset import cli;"
        "cli.REPOSITORY = Path(sys.argv.pop(1)); sys.exit(cli.main(sys.argv[1:]))",
        str(port.root), "--continue",
    ]  # fmt: skip
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(made.REPOSITORY / "scripts")}
    done = subprocess.run(
        [shutil.which("python3"), *command[1:]], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "all patches are carried" in done.stdout


@pytest.mark.parametrize("call", ["commit", "read-tree", "update-ref"])
def test_interrupted_and_continued(port, monkeypatch, call):
    """git dies in the middle of --continue; the next --continue ends where it would have."""
    from patchset.git import Git, GitFailed

    _to_the_last_stop(port)
    run, calls = Git.run, []

    def dies(self, *arguments, **keywords):
        if call in arguments[0] and self.work_tree == _folder(port):
            calls.append(arguments)
            if len(calls) == 2:
                raise GitFailed(arguments, 137, "killed")
        return run(self, *arguments, **keywords)

    monkeypatch.setattr(Git, "run", dies)
    assert port.tool("--continue").code == 2
    assert len(calls) == 2
    monkeypatch.setattr(Git, "run", run)
    result = port.tool("--continue")
    assert result.code == 0, result.err
    assert _git(port, "log", "--format=%s").split("\n")[:5] == [
        name.removesuffix(".patch") for name in reversed(NAMES)
    ]
    assert _git(port, "status", "--porcelain") == ""
    text = (_folder(port) / ARGS).read_text()
    assert RESOLVED_AGAIN in text


def test_a_person_may_commit_there(port):
    """git add and git commit are a person's habit: the result is the same."""
    _to_the_last_stop(port)
    _git(port, "add", "-A")
    _git(port, "commit", "-q", "-m", "resolved")
    assert port.tool("--continue").code == 0
    assert "resolved" not in _git(port, "log", "--format=%s")
    assert _git(port, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "arguments", [("checkout", "-q", "-f", "patches"), ("checkout", "-q", "-f", "HEAD~1")]
)
def test_files_of_another_commit_are_refused(port, arguments):
    """They would be taken for edits, and the new series would undo others."""
    _git(port, *arguments)
    assert "expected commit" in _refused(port, "--continue")
    _git(port, "checkout", "-q", "-f", "port")


def test_what_a_patch_cannot_hold_is_refused(port):
    """Before it is in a commit, where it could not be taken out again."""
    _resolve(port)
    (_folder(port) / SRT / "table.bin").write_bytes(b"\0\1")
    assert "table.bin" in _refused(port, "--continue")
    (_folder(port) / SRT / "table.bin").unlink()
    (_folder(port) / "notes.md").write_text("mine\n")
    assert "notes.md" in _refused(port, "--continue")


def test_a_patch_of_which_nothing_is_kept(port):
    """Resolving to upstream's side leaves the patch out: that is said, and not done in silence."""
    _git(port, "checkout", "--ours", "--", ARGS)
    result = port.tool("--continue")
    assert "left out     0030-flag" in result.out


def test_a_lock_that_a_killed_run_has_left(port):
    _resolve(port)
    git_dir = _folder(port) / ".git"
    for name in ("index.lock", "patchset-busy"):
        (git_dir / name).touch()
    assert port.tool("--continue").code == 3
    assert not (git_dir / "patchset-busy").exists()


def test_another_series_than_the_ports(port):
    """The remedy is to name the release, and not to give the port up."""
    notes = _folder(port) / ".git" / "patchset-port.json"
    notes.write_text(notes.read_text().replace('"release": "9.9.1"', '"release": "9.9.0"'))
    assert "--release 9.9.0" in _refused(port, "--continue")


def test_a_relocated_hunk_stops_it(series, local_index):
    """Git was content: nothing is marked, and still a person must look."""
    series.release(nr.swapped())
    result = series.tool("--3way", "--onto", NEWER)
    assert result.code == 3 and "RELOCATED" in result.out and "0020-hook: stopped" in result.out
    file = _folder(series) / WORKER
    text = file.read_text()
    assert "<<<<<<<" not in text
    head, draft = text.split("    def draft")
    file.write_text(
        head.replace("batch.rows\n", "batch.rows[: len(os.sep)]\n")
        + "    def draft"
        + draft.replace("batch.rows[: len(os.sep)]", "batch.rows")
    )
    assert series.tool("--continue").code == 0
    assert series.tool("--refresh").code == 0
    assert series.materialise("--release", NEWER).code == 0
    assert series.tool("--release", NEWER).code == 0
    text = (series.root / "sglang" / NEWER / WORKER).read_text()
    assert "batch.rows[: len(os.sep)]" in text.split("def draft")[0]
    assert "batch.rows[: len(os.sep)]" not in text.split("def draft")[1]


def test_a_gone_name_beside_a_conflict_is_asked_about(series, local_index):
    """Resolving the conflict is not an answer to it; keeping it twice is."""
    series.release(newer(**CONFLICT, pool=("self.free_slots = slots", "self.slots = slots")))
    assert series.tool("--3way", "--onto", NEWER).code == 3
    _resolve(series, '    "--other",\n    "--tree".free_slots,\n')
    asked = series.tool("--continue")
    assert (asked.code, asked.out) == (2, "")
    assert f"0030-flag: {ARGS} uses `.free_slots`, which no file has any more" in asked.err
    assert _git(series, "status", "--porcelain") != ""
    kept = series.tool("--continue")
    assert (kept.code, "stopped here" in kept.out) == (3, True), kept.err


def test_a_gone_name_that_was_corrected_is_not_asked_about(series, local_index):
    series.release(newer(**CONFLICT, pool=("self.free_slots = slots", "self.slots = slots")))
    assert series.tool("--3way", "--onto", NEWER).code == 3
    _resolve(series, '    "--other",\n    "--tree".free_slots,\n')
    assert series.tool("--continue").code == 2
    file = _folder(series) / ARGS
    file.write_text(file.read_text().replace(".free_slots", ""))
    result = series.tool("--continue")
    assert result.code == 3 and "0040-more-of-the-flag: stopped here" in result.out


def test_status_says_how_far_it_is(port):
    """At a stop, after the last patch, and when it is gone."""

    def said() -> str:
        result = port.tool("--status", "--onto", NEWER)
        assert result.code == 0, result.err
        return result.out

    assert said() == (
        f"port to {NEWER}: 2 of 5 patches of {made.VERSION} are carried, stopped at 0030-flag "
        f"(CONFLICT): edit {_folder(port)}, then --continue\n"
    )
    assert said() in port.tool("--status").out
    _to_the_end(port)
    assert "all 5 patches are carried: write them with --refresh" in said()
    assert port.tool("--abort").code == 0
    assert "no port to" in _refused(port, "--status", "--onto", NEWER)


def test_what_killed_runs_have_left_is_cleared(port):
    """Folders that were being made: the next run that makes one removes them."""
    left = [port.root / folder / ".port-abc" / "python" for folder in ("sglang", "patches")]
    for path in left:
        path.mkdir(parents=True)
    assert port.tool("--abort").code == 0
    assert port.tool("--3way", "--onto", NEWER).code == 3
    assert not left[0].exists()
    _to_the_end(port)
    assert port.tool("--refresh").code == 0
    assert not left[1].exists()


def test_a_missing_file_must_be_dealt_with(series, local_index):
    """The patch's own file is left to look at; it must not slip into the new series."""
    path = f"{SRT}/flags.py"
    tree = newer()
    del tree[ARGS]
    series.release(tree | {path: (0o644, b'OTHER = ["x"]\n')})
    assert series.tool("--3way", "--onto", NEWER).code == 3
    assert "no such file" in _refused(series, "--continue")
    (_folder(series) / ARGS).unlink()
    (_folder(series) / path).write_text('OTHER = ["x", "--tree"]\n')
    result = series.tool("--continue")
    assert result.code == 3 and "0040" in result.out
    (_folder(series) / ARGS).unlink(missing_ok=True)
    (_folder(series) / path).write_text('OTHER = ["x", "--tree-budget"]\n')
    assert series.tool("--continue").code == 0
    assert series.tool("--refresh").code == 0
    assert path in (series.root / "patches" / NEWER / NAMES[3]).read_text()


def test_an_upstreamed_patch_is_left_out(series, local_index):
    """The later numbers stay."""
    tree = newer()
    tree[WORKER] = nr.levels()[2][WORKER]
    series.release(tree)
    assert series.tool("--3way", "--onto", NEWER).code == 0
    assert series.tool("--refresh").code == 0
    lines = (series.root / "patches" / NEWER / "series").read_text().splitlines()[1:]
    assert [line[-len("0010-tree.patch") :][:4] for line in lines] != []
    numbers = [re.search(r"(\d{4})-", line)[1] for line in lines]
    assert numbers == ["0010", "0030", "0040", "0050"]


def test_edits_after_the_last_patch_are_not_lost(port):
    _to_the_end(port)
    (_folder(port) / WORKER).write_text("more = 1\n")
    assert "edits after the last patch" in _refused(port, "--refresh")


def test_a_series_that_changed_meanwhile(port):
    _resolve(port)
    port.tool("--to", "0010")
    (port.files / WORKER).write_text(
        (port.files / WORKER).read_text().replace("import os\n", "import os\nimport sys\n")
    )
    assert port.tool("--refresh", "0010").code == 0
    assert "was changed since" in _refused(port, "--continue")


def test_one_port_at_a_time_to_a_version(port):
    assert "--abort" in _refused(port, "--3way", "--onto", NEWER)


def test_a_line_that_exists_is_not_overwritten(port):
    _to_the_end(port)
    (port.root / "patches" / NEWER).mkdir()
    assert "exists" in _refused(port, "--refresh")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--continue",),
        ("--abort",),
        ("--abort", "--onto", "9.9.2"),
        ("--refresh", "--onto", "9.9.2"),
        ("--3way",),
        ("--3way", "--onto", "nowhere"),
        ("--continue", "--root", "."),
        ("--refresh", "0010", "--onto", "9.9.2"),
        ("--continue", "--abort"),
    ],
)
def test_wrong_usage(series, no_index, arguments):
    before = made.everything(series.root / "patches")
    result = series.tool(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert made.everything(series.root / "patches") == before
    assert not list((series.root / "sglang").glob("port-*"))
