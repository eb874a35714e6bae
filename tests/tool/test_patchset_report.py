# SPDX-License-Identifier: Apache-2.0
"""--report: every class on a release that was doctored for it, with the whole expected row."""

from __future__ import annotations

import json
import shutil

import newer_release as nr
import patchset_project as made
import pytest
from newer_release import ARGS, NUMBERS, POOL, SRT, TREE, WORKER, newer

EXACT = dict.fromkeys(NUMBERS, "EXACT")
REPORTED = ("class", "blocked_by", "gone", "look")


def _classes(rows: dict[str, dict]) -> dict[str, str]:
    return {number: row["class"] for number, row in rows.items()}


def _others_exact(rows: dict[str, dict], *numbers: str) -> None:
    """The rows of all other patches say EXACT and nothing else."""
    for number in set(NUMBERS) - set(numbers):
        row = rows[number]
        assert [row[key] for key in REPORTED] == ["EXACT", [], [], []], row
        assert all(file["class"] == "EXACT" and not file["hunks"] for file in row["files"])


def _file(row: dict) -> dict:
    (file,) = row["files"]
    return file


def test_exact(series):
    tree = newer() | {f"{SRT}/new.py": (0o644, b"x = 1\n")}
    rows = series.rows(series.release(tree), 0)
    _others_exact(rows)
    assert all(row["safe"] for row in rows.values())


def test_offset(series):
    """Lines that upstream added above move a hunk, and say by how much."""
    tree = newer(worker=("import os\n", "import os\n\nA = 1\nB = 2\n"))
    rows = series.rows(series.release(tree), 0)
    _others_exact(rows, "0020")
    assert rows["0020"]["class"] == "OFFSET"
    file = _file(rows["0020"])
    assert (file["path"], file["class"], file["detail"]) == (WORKER, "OFFSET", "+3 lines")


def test_merged(series):
    """The context changed, so `git apply` refuses; a three-way merge is clean."""
    tree = newer(args=('    "--beta",\n', '    "--beta",\n    "--new",\n'))
    rows = series.rows(series.release(tree), 0)
    _others_exact(rows, "0030", "0040")
    assert _file(rows["0030"])["class"] == "MERGED"
    assert (rows["0030"]["class"], rows["0040"]["class"]) == ("MERGED", "MERGED")


def test_renamed(series):
    """The merge follows a file that upstream has moved, and says where to."""
    path = f"{SRT}/workers/tree_worker.py"
    rows = series.rows(series.release(nr.moved(newer(), WORKER, path)), 0)
    _others_exact(rows, "0020")
    file = _file(rows["0020"])
    assert (file["path"], file["class"], file["new_path"]) == (WORKER, "RENAMED", path)
    assert rows["0020"]["class"] == "RENAMED"


def test_relocated(series):
    """Two look-alike functions were swapped: git puts the hunk into the wrong one and is
    content. That must not count as a success."""
    wheel = series.release(nr.swapped())
    rows = series.rows(wheel, 3)
    _others_exact(rows, "0020")
    row = rows["0020"]
    assert (row["class"], row["safe"]) == ("RELOCATED", False)
    file = _file(row)
    assert file["class"] == "RELOCATED"
    says = " ".join([file["detail"], *(hunk["detail"] for hunk in file["hunks"])])
    assert "`Worker.verify`" in says and "`Worker.draft`" in says or "another place" in says


def test_relocated_into_another_class(series):
    """The same lines, at the same place, in a class of another name."""
    tree = newer(worker=("class Worker:", "class Other:"))
    rows = series.rows(series.release(tree), 3)
    _others_exact(rows, "0020")
    (hunk,) = _file(rows["0020"])["hunks"]
    assert (hunk["hunk"], hunk["class"]) == (1, "RELOCATED")
    assert hunk["detail"] == "was in `Worker.verify`, is now in `Other.verify`"


@pytest.mark.parametrize(
    "old, new, says",
    [
        (
            "LIMIT = 8",
            "MAXIMUM = 8",
            f"{TREE} imports `LIMIT` from `sglang.srt.pool`, which has no such name",
        ),
        (
            "self.free_slots = slots",
            "self.slots = slots",
            f"{TREE} uses `.free_slots`, which no file has any more",
        ),
        ("LIMIT = 8\n\n\nclass Pool:", "class Pool:", f"{TREE} imports `LIMIT`"),
    ],
)
def test_symbol_gone(series, old, new, says):
    """git has nothing to say: the patch adds a file of its own."""
    rows = series.rows(series.release(newer(pool=(old, new))), 3)
    _others_exact(rows, "0050")
    row = rows["0050"]
    assert (row["class"], row["safe"]) == ("SYMBOL-GONE", False)
    (gone,) = row["gone"]
    assert gone.startswith(says)


def test_a_name_that_nothing_defines(series):
    """Upstream no longer imports what a hook uses: git cannot know, the first request would."""
    old = "import os\n\n\nclass Worker:\n    name = os.name\n"
    tree = newer(worker=(old, 'class Worker:\n    name = "posix"\n'))
    rows = series.rows(series.release(tree), 3)
    _others_exact(rows, "0020")
    assert rows["0020"]["class"] == "SYMBOL-GONE"
    assert rows["0020"]["gone"] == [f"{WORKER} uses `os`, which nothing defines there"]


def test_a_module_that_is_gone(series):
    rows = series.rows(series.release(nr.moved(newer(), POOL, f"{SRT}/memory.py")), 3)
    _others_exact(rows, "0050")
    assert rows["0050"]["class"] == "SYMBOL-GONE"
    assert len(rows["0050"]["gone"]) == 2  # LIMIT and Pool


def test_other_arguments_are_pointed_out(series):
    """A call that git cannot judge: safe, but worth a look."""
    tree = newer(pool=("def free(self, slots):", "def free(self, slots, wait=True):"))
    rows = series.rows(series.release(tree), 0)
    _others_exact(rows, "0050")
    (look,) = rows["0050"]["look"]
    assert rows["0050"]["class"] == "EXACT" and "`free`" in look and TREE in look


def test_upstreamed(series):
    """Upstream has taken a patch, elsewhere in the file too; the later numbers stay."""
    tree = newer(worker=("import os\n", "import os\n\nA = 1\n"))
    text = tree[WORKER][1].decode()
    head, verify = text.split("    def verify")
    taken = verify.replace("batch.rows", "batch.rows[: len(os.sep)]")
    tree[WORKER] = (0o644, f"{head}    def verify{taken}".encode())
    rows = series.rows(series.release(tree), 0)
    _others_exact(rows, "0020")
    assert rows["0020"]["class"] == "UPSTREAMED"
    assert [file["class"] for file in rows["0020"]["files"]] == ["UPSTREAMED"]


def test_missing(series):
    """A file that is gone, and the patch that stands on what the first one would have added."""
    tree = newer()
    del tree[ARGS]
    rows = series.rows(series.release(tree), 3)
    _others_exact(rows, "0030", "0040")
    assert (rows["0030"]["class"], _file(rows["0030"])["class"]) == ("MISSING", "MISSING")
    assert (rows["0040"]["class"], rows["0040"]["blocked_by"]) == ("BLOCKED", ["0030"])


def test_conflict(series):
    """File, hunk and function of the conflict; who stands on it; all the rest goes on."""
    tree = newer(args=('    "--delta",\n', '    "--other",\n'))
    rows = series.rows(series.release(tree), 3)
    _others_exact(rows, "0030", "0040")
    assert rows["0030"]["class"] == "CONFLICT"
    (hunk,) = _file(rows["0030"])["hunks"]
    lines = (series.patches / nr.NAMES[2]).read_text().split("\n")
    assert lines[hunk["patch_line"] - 1].startswith("@@ ")
    assert (hunk["hunk"], hunk["class"]) == (1, "CONFLICT")
    assert hunk["detail"] == "upstream changed the same lines of the module itself"
    assert (rows["0040"]["class"], rows["0040"]["blocked_by"]) == ("BLOCKED", ["0030"])
    (blocked,) = _file(rows["0040"])["hunks"]
    assert (blocked["class"], blocked["blocked_by"]) == ("BLOCKED", ["0030"])


def test_two_conflicts(series):
    """The first does not hide the second, and the summary counts them."""
    tree = newer(
        args=('    "--delta",\n', '    "--other",\n'),
        worker=("        rows = batch.rows\n        count = len(rows)\n", "        count = 1\n"),
    )
    text = tree[WORKER][1].decode().replace("rows = batch.rows\n", "rows = list(batch)\n")
    tree[WORKER] = (0o644, text.encode())
    wheel = series.release(tree)
    rows = series.rows(wheel, 3)
    assert _classes(rows) == EXACT | {"0020": "CONFLICT", "0030": "CONFLICT", "0040": "BLOCKED"}
    text = series.tool("--report", "--onto", wheel).out
    assert (
        "5 patches of 9.9.1 on sglang 9.9.2: 2 EXACT, 1 BLOCKED, 2 CONFLICT; 3 need a person"
        in text
    )
    assert [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| 00")] == [
        f"| {name.removesuffix('.patch')}" for name in nr.NAMES
    ]


def test_a_file_of_the_same_name(series):
    """Upstream has a file where the series adds one: a conflict, and not a silent choice."""
    rows = series.rows(series.release(newer() | {TREE: (0o644, b"theirs = 1\n")}), 3)
    assert _classes(rows) == EXACT | {"0010": "CONFLICT", "0050": "BLOCKED"}
    assert rows["0050"]["blocked_by"] == ["0010"]


def test_a_folder_of_the_same_name(series):
    """Upstream has a folder where the series adds a file: it must not be replaced."""
    inside = f"{TREE}/inside.py"
    rows = series.rows(series.release(newer() | {inside: (0o644, b"x = 1\n")}), 3)
    assert _classes(rows) == EXACT | {"0010": "CONFLICT", "0050": "BLOCKED"}
    assert _file(rows["0010"])["detail"] == "upstream has a folder of this name"


def test_upstreamed_by_coincidence(series):
    """Upstream has the same change in the look-alike function, and not in ours."""
    taken = "rows = batch.rows[: len(os.sep)]"
    tree = newer(worker=("rows = batch.rows", taken))
    head, verify = tree[WORKER][1].decode().split("    def verify")
    close = verify[verify.index("    def close") :]
    tree[WORKER] = (0o644, f"{head}{close}".encode())
    rows = series.rows(series.release(tree), 3)
    _others_exact(rows, "0020")
    assert rows["0020"]["class"] in ("RELOCATED", "CONFLICT")


def test_a_name_for_type_checkers_only(series):
    """It is there for a reader, and not when a server imports it."""
    old = "LIMIT = 8\n"
    new = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    LIMIT = 8\n"
    rows = series.rows(series.release(newer(pool=(old, new))), 3)
    _others_exact(rows, "0050")
    assert "imports `LIMIT`" in rows["0050"]["gone"][0]


def test_nothing_is_touched(series):
    """Also with edits on disk, and with patches applied: the store of trees is all that grows."""
    series.tool("--to", "0020")
    (series.files / WORKER).write_text("edited = 1\n")
    (series.files / "notes.txt").write_text("mine\n")
    wheel = series.release(newer())
    before = made.everything(series.root)
    series.rows(wheel, 0)
    after = made.everything(series.root)
    new = {path for path in after if path not in before}
    assert all(path.startswith("sglang/.trees.git/") for path in new)
    assert {path: after[path] for path in before} == before


def test_the_report_as_files(series, tmp_path):
    """What a scheduled job keeps: exactly what the terminal shows, also when a patch is unsafe."""
    wheel = series.release(newer(args=('    "--delta",\n', '    "--other",\n')))
    folder = tmp_path / "new" / "folder"
    shown = series.tool("--report", "--onto", wheel, "--output", folder)
    assert shown.code == 3
    names = ["9.9.1-onto-9.9.2.json", "9.9.1-onto-9.9.2.md"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / names[1]).read_text() == shown.out
    assert (folder / names[0]).read_text() == series.tool("--report", "--json", "--onto", wheel).out


def test_a_folder_is_as_good_as_its_wheel(series, tmp_path):
    """A checkout, an unpacked wheel, and the package itself."""
    tree = newer(args=('    "--delta",\n', '    "--other",\n'))
    expected = series.rows(series.release(tree), 3)
    root = tmp_path / "a chéckout"
    made.write_tree(root, tree)
    made.write_tree(root, {"README.md": (0o644, b"x\n"), "python/sglang/a.so": (0o644, b"x")})
    before = made.everything(root)
    for folder in (root, root / "python", root / "python" / "sglang"):
        assert series.rows(folder, 3) == expected
    assert made.everything(root) == before


def test_a_git_ref(series, tmp_path):
    """--root names the checkout, --onto the ref; the checkout itself is not read."""
    root = tmp_path / "upstream"
    tree = newer(args=('    "--delta",\n', '    "--other",\n'))
    made.write_tree(root, tree)
    made.plain_git(root, "init", "-q", ".")
    made.plain_git(root, "add", "-A")
    made.plain_git(root, "commit", "-q", "-m", "release")
    made.plain_git(root, "tag", "v9.9.2")
    shutil.rmtree(root / "python")
    result = series.tool("--report", "--json", "--root", root, "--onto", "v9.9.2")
    assert result.code == 3, result.err
    found = json.loads(result.out)
    assert found["onto"]["version"] == "9.9.2"
    assert found["patches"] == list(series.rows(series.release(tree), 3).values())
    refused = series.tool("--report", "--root", root, "--onto", "v1.0")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_latest_comes_from_the_index(series, local_index):
    series.release(newer())
    result = series.tool("--report", "--json", "--onto", "latest")
    assert result.code == 0, result.err
    assert json.loads(result.out)["onto"]["version"] == nr.NEWER
    assert "fetching" in result.err and "fetching" not in result.out


def test_no_network_and_a_cached_wheel(series, local_index, monkeypatch):
    """The second time nothing is fetched; a damaged cache is not used."""
    series.release(newer())
    expected = series.rows(nr.NEWER, 0)
    monkeypatch.delenv("PIP_FIND_LINKS")
    assert series.rows(nr.NEWER, 0) == expected
    shutil.rmtree(series.root / "sglang" / ".trees.git")
    assert series.rows(nr.NEWER, 0) == expected
    (wheel,) = (series.root / "sglang" / ".wheels").glob("*.whl")
    wheel.write_bytes(wheel.read_bytes()[:-1])
    result = series.tool("--report", "--onto", nr.NEWER)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_the_old_release_need_not_be_unpacked(series, local_index):
    """Two wheels are enough."""
    wheel = series.release(newer())
    expected = series.rows(wheel, 0)
    shutil.rmtree(series.files)
    shutil.rmtree(series.root / "sglang" / ".trees.git")
    assert series.rows(wheel, 0) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("--report",),
        ("--report", "--onto", "nowhere"),
        ("--report", "--onto", "nothing.whl"),
        ("--report", "--onto", "."),
        ("--onto", "9.9.2"),
        ("--report", "--onto", "9.9.2", "--to", "0010"),
        ("--report", "--onto", "9.9.2", "--check"),
        ("--json", "--onto", "9.9.2"),
        ("--output", "build"),
        ("--report", "--onto", "main", "--root", "nowhere"),
    ],
)
def test_wrong_usage(series, no_index, arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = series.tool(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result.err


def test_a_changed_series_is_refused(series):
    """A report on patches that the lock does not know would be about nothing."""
    patch = series.patches / nr.NAMES[0]
    patch.write_bytes(patch.read_bytes().replace(b"return rows", b"return None"))
    result = series.tool("--report", "--onto", series.release(newer()))
    assert (result.code, result.out, result.err.count("\n")) == (6, "", 1)


def test_the_budget(series):
    """--status counts the lines in upstream's files and in the series' own, patch by patch."""
    costs = [(0, 0, 2), (2, 1, 0), (1, 1, 0), (2, 1, 0), (0, 0, 9), (5, 2, 11)]
    found = json.loads(series.tool("--status", "--json").out)
    rows = [*(patch["budget"] for patch in found["patches"]), found["budget"]]
    assert [tuple(row.values()) for row in rows] == costs
    lines = series.tool("--status").out.splitlines()
    assert lines[1].split() == (
        "not applied 0020-hook 2 lines in 1 upstream file, 0 in new files".split()
    )
    assert lines[5].split() == "budget 5 lines in 2 upstream files, 11 in new files".split()
