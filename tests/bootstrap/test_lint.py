# SPDX-License-Identifier: Apache-2.0
"""scripts/lint.sh finds what it is there to find, in a small tree of its own."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import REPOSITORY

PATCH = """\
Subject: [PATCH] hook

++++ this line is no file name
---
diff --git a/python/sglang/hook.py b/python/sglang/hook.py
--- a/python/sglang/hook.py
+++ b/python/sglang/hook.py
@@ -1 +1,2 @@
 import os
+print(os.sep)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository in which nothing is wrong."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for path in ("pyproject.toml", "scripts/lint.sh"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / path, tmp_path / path)
    (tmp_path / "Dockerfile").write_text("FROM debian:12.1\n")
    (tmp_path / "scripts/apply_patches.sh").write_text("#!/bin/bash\nexit 0\n")
    (tmp_path / "scripts/apply_patches.sh").chmod(0o755)
    (tmp_path / "patches/9.9.9").mkdir(parents=True)
    (tmp_path / "patches/9.9.9/series").write_text("# order\n0010-hook.patch\n")
    (tmp_path / "patches/9.9.9/0010-hook.patch").write_text(PATCH)
    write(tmp_path, "sglang/9.9.9/python/sglang/hook.py", "import os\nprint(os.sep)\n")
    write(tmp_path, "sglang/9.9.9/python/sglang/upstream.py", "print(not_ours_to_mend)\n")
    return tmp_path


def write(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def lint(tree: Path) -> subprocess.CompletedProcess:
    return subprocess.run([tree / "scripts/lint.sh"], capture_output=True, text=True)


def test_a_clean_tree_passes(tree):
    result = lint(tree)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "undefined names in the patched files of 9.9.9" in result.stdout


def test_a_finding_in_dockerfile_is_found(tree):
    (tree / "Dockerfile").write_text("FROM debian:12.1\nRUN cd /srv\n")
    result = lint(tree)
    assert result.returncode == 1
    assert "DL3003" in result.stdout


@pytest.mark.parametrize("line", ["print(gone)", "print(gone)  # noqa", "def f(x: Gone): ..."])
def test_an_undefined_name_in_a_patched_file_is_found(tree, line):
    write(tree, "sglang/9.9.9/python/sglang/hook.py", f"import os\n{line}\n")
    result = lint(tree)
    assert result.returncode == 1
    assert "hook.py:2:" in result.stdout
    assert "F821" in result.stdout


def test_a_patched_file_that_is_not_there_is_found(tree):
    (tree / "sglang/9.9.9/python/sglang/hook.py").unlink()
    result = lint(tree)
    assert result.returncode == 1
    assert "lint: expected sglang/9.9.9/python/sglang/hook.py" in result.stderr


def test_a_release_that_is_not_unpacked_is_unpacked(tree):
    """Lint needs the tree of every release; only the default one's is sure to be there."""
    shutil.rmtree(tree / "sglang")
    (tree / "patchset").mkdir()
    (tree / "patchset/materialise.py").write_text(
        "import shutil, sys\n"
        "assert sys.argv[1:] == ['--release', '9.9.9']\n"
        "shutil.copytree('unpacked', 'sglang/9.9.9/python')\n"
    )
    write(tree, "unpacked/sglang/hook.py", "import os\n")
    apply = "[[ $* == '--release 9.9.9' ]] || exit 0; echo 'print(gone)' >>sglang/9.9.9/*/*/hook.py"
    (tree / "scripts/apply_patches.sh").write_text(f"#!/bin/bash\n{apply}\n")
    result = lint(tree)
    assert result.returncode == 1
    assert "sglang/9.9.9/python/sglang/hook.py:2:" in result.stdout


@pytest.mark.parametrize("patch", ["no patch at all\n", PATCH.replace("+1,2", "+1,9")])
def test_a_patch_that_cannot_be_read_is_found(tree, patch):
    (tree / "patches/9.9.9/0020-broken.patch").write_text(patch)
    write(tree, "patches/9.9.9/series", "0010-hook.patch\n0020-broken.patch\n")
    assert lint(tree).returncode == 1


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("tests/test_x.py", "import os\n", "F401"),
        ("scripts/x.py", "x = { }\n", "would be reformatted"),
        ("scripts/deep/x.sh", "#!/bin/bash\nrm $1\n", "SC2086"),
        (".ci/run", "#!/bin/bash\nrm $1\n", "SC2086"),
    ],
)
def test_findings_in_our_own_files(tree, name, text, finding):
    write(tree, name, text)
    result = lint(tree)
    assert result.returncode == 1
    assert finding in result.stdout + result.stderr


def test_findings_of_the_patch_tool(tree):
    (tree / "scripts/apply_patches.sh").write_text("#!/bin/bash\nexit 7\n")
    assert lint(tree).returncode == 1


def test_missing_tools_are_one_line(tree):
    (tree / ".venv").unlink()
    result = lint(tree)
    assert result.returncode == 2
    assert result.stderr.startswith("lint: expected .venv/bin/ruff, found none; run 'make lint'")
    assert result.stderr.count("\n") == 1
