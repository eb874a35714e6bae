# SPDX-License-Identifier: Apache-2.0
"""git plumbing on an explicit repository and work tree, cut off from all outside configuration."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

MINIMUM_VERSION = (2, 38)  # `git merge-tree --write-tree`
ABSENT_BLOB = "0" * 40
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

# The highest-precedence attributes file, so nothing in the work tree or in the user's home can
# convert line ends, expand keywords, or hide a file from `git diff`.
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding !diff !merge\n*.py diff=python\n"

_CONFIG = """\
[core]
\trepositoryFormatVersion = 0
\tbare = false
\tfileMode = true
\tautoCRLF = false
\tquotePath = false
\tlooseCompression = 1
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
[gc]
\tauto = 0
[apply]
\twhitespace = nowarn
"""


class GitFailed(Exception):
    """git ended with a status that the caller did not allow."""

    def __init__(self, args: tuple[str, ...], status: int, stderr: str):
        self.status = status
        self.stderr = stderr.strip()
        text = "; ".join(self.stderr.splitlines())
        super().__init__(f"git {' '.join(args)} ended with {status}: {text}")

    @property
    def reason(self) -> str:
        """The first line of git's message, without its `error:` or `fatal:` prefix."""
        lines = self.stderr.splitlines() or [f"exit status {self.status}"]
        return re.sub(r"^(error|fatal): ", "", lines[0])


@dataclass(frozen=True)
class Entry:
    """What a path holds: git file mode and blob id. An empty field means: not known."""

    mode: str
    blob: str

    def matches(self, other: Entry) -> bool:
        return _same(self.mode, other.mode) and _same(self.blob, other.blob)


def _same(a: str, b: str) -> bool:
    return not a or not b or a == b


@dataclass(frozen=True)
class Change:
    """One path before and after a patch; None where the path does not exist."""

    path: str
    old: Entry | None
    new: Entry | None


def environment() -> dict[str, str]:
    """The caller's environment without anything that could steer git, and with a fixed identity."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k == "GIT_EXEC_PATH"}
    env.update(
        LC_ALL="C",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_NOSYSTEM="1",
        GIT_ATTR_NOSYSTEM="1",
        GIT_TERMINAL_PROMPT="0",
        GIT_DEFAULT_REF_FORMAT="files",
    )
    for role in ("AUTHOR", "COMMITTER"):
        env[f"GIT_{role}_NAME"] = "patchset"
        env[f"GIT_{role}_EMAIL"] = "patchset@localhost"
        env[f"GIT_{role}_DATE"] = "@0 +0000"
    return env


def require_git() -> None:
    """Raise UsageError unless a new enough git is on PATH."""
    try:
        text = subprocess.run(
            ["git", "version"], env=environment(), capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        raise UsageError("git is not on PATH: install git 2.38 or newer") from None
    found = re.search(r"(\d+)\.(\d+)", text)
    if not found or (int(found[1]), int(found[2])) < MINIMUM_VERSION:
        raise UsageError(
            f"git 2.38 or newer is needed, found '{text.strip()}': install a newer git"
        )


def _quoted(folder: Path) -> str:
    """`folder` for a list of folders: a plain one would be split at ':'."""
    text = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


class Git:
    """A repository at `git_dir` with its files at `work_tree`.

    Indexes and new objects are made in the folder `scratch`. Only `keep` brings them to `git_dir`,
    so a run that fails, or only looks, leaves nothing there.
    """

    def __init__(
        self, git_dir: Path, work_tree: Path, scratch: Path, borrowed: Iterable[Path] = ()
    ):
        """borrowed: objects folders of other repositories, to be read as well."""
        self.git_dir = git_dir
        self.work_tree = work_tree
        self.scratch = scratch
        self._env = environment()
        self._env.update(GIT_DIR=str(git_dir), GIT_WORK_TREE=str(work_tree))
        self._objects = scratch / "objects"
        self._objects.mkdir()
        self._env["GIT_OBJECT_DIRECTORY"] = str(self._objects)
        self.readable = (git_dir / "objects", *borrowed)
        """Objects folders beside the one of this run."""
        self._env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, self.readable))

    def create(self) -> None:
        """Make an empty repository at `git_dir`."""
        self.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", work=False)
        (self.git_dir / "objects").mkdir(exist_ok=True)
        (self.git_dir / "config").write_text(_CONFIG)
        (self.git_dir / "info").mkdir()
        (self.git_dir / "info" / "attributes").write_text(_ATTRIBUTES)

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        index: Path | None = None,
        allow: tuple[int, ...] = (0,),
        work: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git; raise GitFailed when its status is not in `allow`."""
        env = dict(self._env)
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        if not work:
            del env["GIT_WORK_TREE"]
        # The work tree as the current directory: paths on stdin are then relative to it.
        cwd = self.work_tree if work else None
        done = subprocess.run(["git", *args], input=stdin, env=env, cwd=cwd, capture_output=True)
        if done.returncode not in allow:
            raise GitFailed(args, done.returncode, done.stderr.decode("utf-8", "replace"))
        return done

    def text(self, *args: str, **kwargs) -> str:
        """The output of `run`, stripped."""
        return self.run(*args, **kwargs).stdout.decode().strip()

    def new_index(self, tree: str | None = None, seed: Path | None = None) -> Path:
        """A fresh temporary index: of `tree`, or a copy of the index file `seed`, or empty."""
        path = Path(tempfile.mkdtemp(dir=self.scratch)) / "index"
        if seed is not None and seed.exists():
            # With its times: git distrusts entries that are as young as the index itself.
            shutil.copy2(seed, path)
        if tree is not None:
            self.run("read-tree", tree, index=path)
        return path

    def keep(self, index: Path) -> None:
        """Make the objects of this run and `index` those of the repository."""
        self.keep_objects()
        new = self.git_dir / "index.new"
        shutil.copy2(index, new)
        os.replace(new, self.git_dir / "index")

    def keep_objects(self) -> None:
        """Make the objects of this run those of the repository."""
        self.move_objects(self.git_dir / "objects")

    def move_objects(self, store: Path) -> None:
        """Move the objects of this run into another objects folder."""
        for file in self._objects.glob("??/*"):
            folder = store / file.parent.name
            folder.mkdir(exist_ok=True)
            # Whole or not at all: the run's folder can be on another disk, and git takes half an
            # object for the object for ever.
            handle, new = tempfile.mkstemp(dir=folder, prefix="tmp_obj_")
            os.close(handle)
            try:
                shutil.move(file, new)
                os.replace(new, folder / file.name)
            finally:
                Path(new).unlink(missing_ok=True)

    def write_tree(self, index: Path) -> str:
        return self.text("write-tree", index=index)

    def stage(self, index: Path, paths: Iterable[str]) -> None:
        """Record in `index` what the work tree holds at `paths`; absent files are removed."""
        listing = b"".join(os.fsencode(path) + b"\0" for path in paths)
        if listing:
            self.run(
                "update-index", "--add", "--remove", "-z", "--stdin", stdin=listing, index=index
            )

    def changes(self, old: str, new: str) -> list[Change]:
        """Paths that differ between two trees, without rename detection, in git's path order."""
        raw = self.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
        *fields, _ = raw.stdout.split(b"\0")
        found = []
        for meta, path in zip(fields[0::2], fields[1::2], strict=True):
            old_mode, new_mode, old_blob, new_blob, _ = meta.decode().lstrip(":").split(" ")
            found.append(
                Change(
                    os.fsdecode(path),
                    None if old_blob == ABSENT_BLOB else Entry(old_mode, old_blob),
                    None if new_blob == ABSENT_BLOB else Entry(new_mode, new_blob),
                )
            )
        return found

    def entries(self, tree: str) -> dict[str, Entry]:
        """Every file of `tree`."""
        found = {}
        for row in self.run("ls-tree", "-r", "-z", tree).stdout.split(b"\0"):
            if row:
                meta, path = row.split(b"\t", 1)
                mode, _, blob = meta.decode().split(" ")
                found[os.fsdecode(path)] = Entry(mode, blob)
        return found

    def blobs(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The content of each of these blobs."""
        wanted = sorted(set(ids))
        listing = "".join(f"{blob}\n" for blob in wanted).encode()
        out = self.run("cat-file", "--batch", stdin=listing, work=False).stdout
        found, at = {}, 0
        for blob in wanted:
            end = out.index(b"\n", at)
            size = int(out[at:end].split(b" ")[2])
            found[blob] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def write_blob(self, data: bytes) -> str:
        return self.text("hash-object", "-w", "--stdin", stdin=data, work=False)

    def with_entries(self, tree: str, entries: Mapping[str, Entry | None]) -> str:
        """`tree` with these paths set, or removed where the entry is None."""
        index = self.new_index(tree)
        rows = []
        for path, entry in entries.items():
            meta = f"{entry.mode} {entry.blob}" if entry else f"0 {ABSENT_BLOB}"
            rows.append(meta.encode() + b"\t" + os.fsencode(path) + b"\0")
        self.run("update-index", "-z", "--index-info", stdin=b"".join(rows), index=index)
        return self.write_tree(index)

    def has_tree(self, tree: str) -> bool:
        return self.run("cat-file", "-e", f"{tree}^{{tree}}", allow=(0, 1, 128)).returncode == 0

    def apply(self, index: Path, diff: bytes, strip: int, reverse: bool = False) -> None:
        """Apply `diff` to `index` alone: no fuzz, no file touched."""
        direction = ["--reverse"] if reverse else []
        self.run(
            "apply", "--cached", "--whitespace=nowarn", f"-p{strip}", *direction, "-",
            stdin=diff, index=index,
        )  # fmt: skip

    def diff(self, old: str, new: str, text: bool = False) -> bytes:
        """The difference of two trees in the form that patch files have.

        text: show the lines of files that git takes for binary, too.
        """
        return self.run(
            "diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-color", "--no-ext-diff",
            "--no-textconv", "--unified=3", "--diff-algorithm=histogram", "--src-prefix=a/",
            "--dst-prefix=b/", *(["--text"] if text else []), old, new,
        ).stdout  # fmt: skip

    def commit(self, tree: str, *parents: str, message: str = "patchset") -> str:
        flags = [flag for parent in parents for flag in ("-p", parent)]
        return self.text("commit-tree", *flags, tree, stdin=message.encode())
