# SPDX-License-Identifier: Apache-2.0
"""The two kinds of place that a series is applied to, and how to read what is there.

A materialised root was unpacked by `patchset.materialise` and has a private repository that holds
every upstream file. A foreign root (a git checkout of upstream, an installed site-packages) has
more or fewer files than that, so only the paths that the series touches are looked at, with a
throw-away repository.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import LocalEdits, UsageError, WrongBase
from .git import Git, environment
from .upstream import PACKAGE, Project, Release

GIT_DIR = ".patchset.git"
PREFIX = "python"
_SCRATCH = "patchset-"
_LAST = "refs/patchset/last"

# Never part of a tree: build results, caches, editors' and patch(1)'s leftovers.
NOT_SOURCE = (
    f"/{GIT_DIR}/",
    f"/{PREFIX}/*.dist-info/",
    "*.so",
    "*.pyc",
    "__pycache__/",
    ".*_cache/",
    "*.orig",
    "*.rej",
    "*.swp",
    "*~",
)


@dataclass(frozen=True)
class Snapshot:
    """The files on disk at one moment, as a git index and its tree."""

    index: Path
    tree: str


@dataclass(frozen=True)
class Root:
    path: Path
    strip: int
    git: Git
    base: str | None
    """Tree id of the unpatched files, or None for a foreign root."""

    def snapshot(self, paths: Iterable[str]) -> Snapshot:
        """Record the files at `paths`, and in a materialised root every other file too.

        Raises LocalEdits where a folder, or something else that git cannot record, is in the way.
        """
        wanted = set(paths)
        self._refuse_links(wanted)
        if self.base is None:
            index = self.git.new_index()
        else:
            index = self.git.new_index(seed=self.git.git_dir / "index")
            wanted |= differing(self.git, index)
        self._refuse_folders(wanted)
        self.git.stage(index, sorted(wanted))
        return Snapshot(index, self.git.write_tree(index))

    def _refuse_links(self, paths: Iterable[str]) -> None:
        """git would take a file behind a linked folder for absent, and then replace the link."""
        folders = {folder for path in paths for folder in PurePosixPath(path).parents}
        for folder in sorted(folders):
            if (self.path / folder).is_symlink() and str(folder) != ".":
                raise WrongBase(
                    f"{self.path / folder} is a symbolic link: give --root the real folder"
                )

    def _refuse_folders(self, paths: Iterable[str]) -> None:
        for path in sorted(paths):
            try:
                mode = (self.path / path).lstat().st_mode
            except (FileNotFoundError, NotADirectoryError):
                continue
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                found = "a folder" if stat.S_ISDIR(mode) else "a device, pipe, or socket"
                raise LocalEdits(
                    f"{path}: expected a file or nothing, found {found}: move it away; nothing "
                    "was changed"
                )

    def remember(self, tree: str, index: Path) -> None:
        """Note that the tool left the files as `tree`, and keep `index` for its file times."""
        if self.base is not None:
            self.git.keep(index)
            self.git.run("update-ref", _LAST, tree)

    def remembered(self) -> str | None:
        """The tree that the tool last left here. Proves nothing unless the files still match."""
        if self.base is None:
            return None
        return self.git.text("for-each-ref", "--format=%(objectname)", _LAST) or None

    def found_version(self) -> str | None:
        """The upstream version that the files claim to be, or None. For messages and doubt only."""
        folder = self.path.joinpath(*PurePosixPath(PREFIX, PACKAGE).parts[self.strip - 1 :])
        if found := version_in(folder):
            return found
        if (self.path / ".git").exists():
            command = ["git", "-C", str(self.path), "describe", "--tags", "--match", "v*"]
            done = subprocess.run(command, env=environment(), capture_output=True, text=True)
            return done.stdout.strip().removeprefix("v") or None
        return None


def differing(git: Git, index: Path) -> set[str]:
    """Source files of the work tree that are not as `index` has them, or not in it, or gone."""
    git.run("update-index", "-q", "--refresh", index=index, allow=(0, 1))
    exclude = [flag for pattern in NOT_SOURCE for flag in ("-x", pattern)]
    listings = (
        git.run("diff-files", "--name-only", "-z", index=index),
        git.run("ls-files", "--others", "-z", *exclude, index=index),
    )
    return {os.fsdecode(p) for listing in listings for p in listing.stdout.split(b"\0") if p}


def version_in(folder: Path) -> str | None:
    """The version that the package at `folder` claims to be, or None."""
    try:
        text = (folder / "_version.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    if found := re.search(r"^(?:__version__ = )?version = ['\"]([^'\"]+)", text, re.MULTILINE):
        return found[1]
    for info in sorted(folder.parent.glob(f"{PACKAGE}-*.dist-info")):
        return info.name.removeprefix(f"{PACKAGE}-").removesuffix(".dist-info")
    return None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the only run on `folder`; a second run waits. Leaves no lock file behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def open_materialised(project: Project, release: Release) -> Iterator[Root]:
    """The unpacked upstream files. Raises UsageError when absent, WrongBase for another tree."""
    path = project.materialised(release)
    git_dir = path / GIT_DIR
    if not git_dir.is_dir():
        run = f"scripts/bootstrap.sh --release {release.key}"
        if path.exists():
            raise UsageError(f"{path} was not made by this tool: move it away, then run {run}")
        raise UsageError(f"{path} is not there: run {run}")
    with locked(path), tempfile.TemporaryDirectory(prefix=_SCRATCH) as scratch:
        git = Git(git_dir, path, Path(scratch))
        if not git.has_tree(release.tree):
            raise WrongBase(
                f"{path} was not unpacked from {PACKAGE} {release.version}: expected tree "
                f"{release.tree}: remove the folder and run scripts/bootstrap.sh"
            )
        yield Root(path, 1, git, release.tree)


@contextmanager
def open_foreign(path: Path, strip: int) -> Iterator[Root]:
    """A checkout or a site-packages folder. Raises UsageError when there is no such folder."""
    if not path.is_dir():
        raise UsageError(f"--root {path}: there is no such folder")
    path = path.resolve()
    with locked(path), tempfile.TemporaryDirectory(prefix=_SCRATCH) as scratch:
        git = Git(Path(scratch) / "git", path, Path(scratch))
        git.create()
        yield Root(path, strip, git, None)
