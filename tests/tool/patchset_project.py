# SPDX-License-Identifier: Apache-2.0
"""A small made-up upstream release, its wheel, and a series of four patches for it.

What the files must be at each level, and every tree id, is computed here without the tool: the
contents are written out, and the ids are hashed in Python.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import stat
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = "9.9.1"
TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
OTHER_TAG = "cp39"
NAMES = (
    "0010-first-hook.patch",
    "0020-odd-files.patch",
    "0030-move-and-mode.patch",
    "0040-last-hook.patch",
)
ENGINE = "python/sglang/srt/engine.py"
THING = "python/sglang/srt/ddtree/thing.py"
CRLF = "python/sglang/srt/crlf.py"
ODD = "python/sglang/srt/configs/E=8,N=4096,device name=A B.json"
ACCENTS = "python/sglang/srt/données/größe.py"
SCRIPT = "python/sglang/tool.sh"
UNTOUCHED = "python/sglang/srt/untouched.py"

Tree = dict[str, tuple[int, bytes]]
"""Path to (permission bits 0o644 or 0o755, content)."""


def _engine(first: str, last: str) -> bytes:
    body = "".join(f"def step_{n}():\n    return {n}\n\n\n" for n in range(12))
    return f"import os\n{first}\n{body}{last}\n".encode()


def levels() -> list[Tree]:
    """The files under the root at level 0 (upstream) to 4 (all patches)."""
    base = {
        "python/sglang/__init__.py": (0o644, b""),
        "python/sglang/_version.py": (0o644, f"__version__ = version = '{VERSION}'\n".encode()),
        ENGINE: (0o644, _engine("HOOK = None", "LAST = None")),
        UNTOUCHED: (0o644, b"x = 1\n"),
        CRLF: (0o644, b"a = 1\r\nb = 2\r\nc = 3\r\n"),
        ODD: (0o644, b'{"a": 1}'),
        ACCENTS: (0o644, "größe = 1\n".encode()),
        "python/sglang/srt/old name.py": (0o644, b"moved = 1\nmoved = 2\n"),
        SCRIPT: (0o644, b"#!/bin/sh\n"),
        "python/sglang/gone.py": (0o644, b"gone = 1\n"),
        "python/tools/get.py": (0o755, b"#!/usr/bin/env python3\n"),
    }
    first = dict(base)
    first[ENGINE] = (0o644, _engine("HOOK = 1", "LAST = None"))
    first[THING] = (0o644, b"one = 1\n")
    second = dict(first)
    second[CRLF] = (0o644, b"a = 1\r\nb = 20\r\nc = 3\r\n")
    second[ODD] = (0o644, b'{"a": 2}')
    second[ACCENTS] = (0o644, "größe = 2\n".encode())
    second["python/sglang/srt/ddtree/empty.py"] = (0o644, b"")
    del second["python/sglang/gone.py"]
    third = dict(second)
    third["python/sglang/srt/new name.py"] = third.pop("python/sglang/srt/old name.py")
    third[SCRIPT] = (0o755, third[SCRIPT][1])
    fourth = dict(third)
    fourth[ENGINE] = (0o644, _engine("HOOK = 1", "LAST = 1"))
    fourth[THING] = (0o644, b"one = 1\n++ a line that a patch shows with three pluses\n")
    return [base, first, second, third, fourth]


def tree_id(tree: Tree) -> str:
    """git's id of a tree, hashed here."""

    def digest(kind: str, data: bytes) -> bytes:
        return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).digest()

    def folder(files: dict[tuple[str, ...], tuple[int, bytes]]) -> bytes:
        rows: dict[bytes, bytes] = {}
        children: dict[str, dict] = {}
        for parts, (mode, data) in files.items():
            name = os.fsencode(parts[0])
            if len(parts) > 1:
                children.setdefault(parts[0], {})[parts[1:]] = (mode, data)
            else:
                rows[name] = b"100%o %s\0" % (mode, name) + digest("blob", data)
        for child, inside in children.items():
            name = os.fsencode(child)
            rows[name + b"/"] = b"40000 %s\0" % name + folder(inside)
        return digest("tree", b"".join(rows[key] for key in sorted(rows)))

    return folder({tuple(path.split("/")): entry for path, entry in tree.items()}).hex()


def write_tree(root: Path, tree: Tree) -> None:
    for path, (mode, data) in tree.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)


def read_tree(root: Path) -> Tree:
    """Every file under `root` that is upstream's or a patch's."""
    found = {}
    for path, file in _files(root):
        if ".patchset.git" not in path and ".dist-info" not in path and not path.endswith(".so"):
            executable = file.stat().st_mode & stat.S_IXUSR
            found[path] = (0o755 if executable else 0o644, file.read_bytes())
    return found


def everything(root: Path) -> dict[str, tuple]:
    """Content, mode, and modification time of all files under `root`, to prove what moved.

    git renews the time of an object that it would have to write again; that is no change.
    """
    return {
        path: (
            None if "/objects/" in path else file.stat().st_mtime_ns,
            file.stat().st_mode,
            file.read_bytes(),
        )
        for path, file in _files(root)
    }


def _files(root: Path):
    for file in sorted(root.rglob("*")):
        if file.is_file():
            yield file.relative_to(root).as_posix(), file


def plain_git(folder: Path, *args: str) -> bytes:
    """git without anybody's configuration."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    config = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false")
    return subprocess.run(
        ["git", *config, *args], cwd=folder, env=env, check=True, capture_output=True
    ).stdout


def header(name: str, depends: str = "none") -> bytes:
    return (
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
        "From: Tester Größe <t@t>\n"
        "Date: Thu, 1 Jan 2026 00:00:00 +0000\n"
        f"Subject: [PATCH] {name[5:-6]}\n\n"
        "Why: a body with diff-like lines must not be read as a diff.\n"
        "+++ b/python/sglang/srt/engine.py\n@@ -1 +1 @@\n\n"
        f"Forwarded: no\nDepends: {depends}\nTest: tests/patches/test_all.py::test\n"
        "Remove-When: never\n---\n"
    ).encode()


def make_patches(
    scratch: Path, trees: list[Tree] | None = None, names: tuple[str, ...] = NAMES
) -> dict[str, bytes]:
    """The patch files of the steps between `trees`, made with plain git."""
    trees = trees or levels()
    plain_git(scratch, "init", "-q", ".")
    # The functions in hunk headers are Python's.
    (scratch / ".git" / "info" / "attributes").write_text("*.py diff=python\n")
    commits = []
    for tree in trees:
        for path in [scratch / path for path in read_tree(scratch) if not path.startswith(".git/")]:
            path.unlink()
        write_tree(scratch, tree)
        plain_git(scratch, "add", "-A", "-f")
        plain_git(scratch, "commit", "-q", "-m", "level")
        commits.append(plain_git(scratch, "rev-parse", "HEAD").decode().strip())
    flags = ("-c", "core.quotePath=false", "diff", "--full-index", "--no-renames", "--histogram")
    return {
        name: header(name, "none" if k == 0 else names[0][:4])
        + plain_git(scratch, *flags, commits[k], commits[k + 1])
        for k, name in enumerate(names)
    }


def wheel_files(
    tag: str, tree: Tree | None = None, version: str = VERSION
) -> dict[str, tuple[int, bytes]]:
    """The wheel's files: upstream's, plus what differs between Python versions."""
    tree = levels()[0] if tree is None else tree
    files = {path.removeprefix("python/"): entry for path, entry in tree.items()}
    files[f"sglang/_core.{tag}.so"] = (0o755, f"compiled for {tag}".encode())
    info = f"sglang-{version}.dist-info"
    files[f"{info}/METADATA"] = (0o644, f"Name: sglang\nVersion: {version}\n".encode())
    files[f"{info}/WHEEL"] = (
        0o644,
        f"Wheel-Version: 1.0\nTag: {tag}-{tag}-manylinux_2_34_x86_64\n".encode(),
    )
    return files


def wheel_name(tag: str, version: str = VERSION) -> str:
    return f"sglang-{version}-{tag}-{tag}-manylinux_2_34_x86_64.whl"


def write_wheel(
    path: Path, files: dict[str, tuple[int, bytes]], record: bytes | None = None
) -> str:
    """Write a wheel; returns its sha256. `record` replaces the right RECORD."""
    rows = []
    for name, (_, data) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        quoted = f'"{name}"' if "," in name else name
        rows.append(f"{quoted},sha256={digest},{len(data)}\n")
    info = next(name.split("/")[0] for name in files if ".dist-info/" in name)
    own = f"{info}/RECORD"
    record = "".join([*rows, f"{own},,\n"]).encode() if record is None else record
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (mode, data) in {**files, own: (0o644, record)}.items():
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(info, data)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def upstream_toml(sha256: dict[str, str], tree: str) -> str:
    rows = [f'default = "{VERSION}"\n\n[release."{VERSION}"]\n']
    rows.append(f'version = "{VERSION}"\ntag = "v{VERSION}"\ntree = "{tree}"\n')
    for tag, digest in sha256.items():
        rows.append(f'\n[release."{VERSION}".wheel.{tag}]\n')
        rows.append(f'file = "{wheel_name(tag)}"\nsha256 = "{digest}"\n')
    return "".join(rows)


def lock_text(patches: dict[str, bytes], trees: list[Tree]) -> str:
    rows = ["# number, sha256 of the patch, tree id after it; written by --refresh\n"]
    for (name, data), tree in zip(patches.items(), trees[1:], strict=True):
        rows.append(f"{name[:4]} {hashlib.sha256(data).hexdigest()} {tree_id(tree)}\n")
    return "".join(rows)


@dataclass
class Result:
    code: int
    out: str
    err: str


@dataclass
class Project:
    """A repository like this one, around the made-up release."""

    root: Path

    @property
    def patches(self) -> Path:
        return self.root / "patches" / VERSION

    @property
    def files(self) -> Path:
        """The materialised root."""
        return self.root / "sglang" / VERSION

    @property
    def wheel(self) -> Path:
        return self.root / "wheels" / wheel_name(TAG)

    def tool(self, *args: str | Path) -> Result:
        """Run apply_patches.sh's command line in this process."""
        from patchset import cli

        return _call(cli, self.root, args)

    def materialise(self, *args: str | Path) -> Result:
        from patchset import materialise

        return _call(materialise, self.root, args)

    def relock(self) -> None:
        """Make series.lock agree with the patches on disk, as if they had been recorded so."""
        files = {name: (self.patches / name).read_bytes() for name in NAMES}
        (self.patches / "series.lock").write_text(lock_text(files, levels()))

    def cut_the_last_section(self) -> str:
        """Take the last file out of the topmost patch, which stays well-formed; returns its path.

        The index lines of what is left still hold.
        """
        path = self.patches / NAMES[-1]
        data = path.read_bytes()
        at = data.rindex(b"diff --git ")
        path.write_bytes(data[:at])
        return data[at:].split(b"\n", 1)[0].decode().split(" b/", 1)[1]

    def drop_from_series(self, name: str) -> None:
        """Remove a line from the series file alone."""
        series = self.patches / "series"
        series.write_text(series.read_text().replace(f"{name}\n", ""))

    def level(self) -> int:
        """Which of `levels()` the files are, by content."""
        return levels().index(read_tree(self.files))


def _call(module, root: Path, args: tuple[str | Path, ...]) -> Result:
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    original, module.REPOSITORY = module.REPOSITORY, root
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = module.main([str(arg) for arg in args])
    finally:
        module.REPOSITORY = original
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Result(code, *texts)
