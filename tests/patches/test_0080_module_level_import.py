# SPDX-License-Identifier: Apache-2.0
"""A name that the worker uses is there when it is imported, not when a request comes."""

import ast
import subprocess
import sys
from pathlib import Path

from sglang.srt.speculative import ddtree_utils, dflash_worker

WORKER = Path(dflash_worker.__file__)


def undefined_names(path: Path) -> list[str]:
    """What `make lint` runs over every file that the series touches."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821"]
    command += ["--target-version=py310", "--output-format=concise", "--ignore-noqa", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.stderr, done.stderr  # no ruff in this Python would look like no finding
    return done.stdout.splitlines()[:-1]


def test_the_import_is_at_module_level():
    assert dflash_worker.compile_ddtree_retrieve is ddtree_utils.compile_ddtree_retrieve
    inside = [
        name.name
        for function in ast.walk(ast.parse(WORKER.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and "ddtree" in (node.module or "")
        for name in node.names
    ]
    assert inside == []


def test_without_the_import_the_check_fails_before_a_server_starts(tmp_path):
    """The mutant: the name is used, and imported nowhere. Python itself does not mind."""
    source = WORKER.read_text()
    line = "    compile_ddtree_retrieve,\n"
    assert source.count(line) == 1
    mutant = tmp_path / "dflash_worker.py"
    mutant.write_text(source.replace(line, ""))
    compile(mutant.read_text(), str(mutant), "exec")
    assert undefined_names(WORKER) == []
    (found,) = undefined_names(mutant)
    assert "F821" in found and "compile_ddtree_retrieve" in found
