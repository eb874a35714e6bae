# SPDX-License-Identifier: Apache-2.0
"""The unpacked files of releases, as trees in one repository that a report reads from."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..git import Git
from ..index import WHEELS, Cache
from ..root import GIT_DIR, PREFIX, locked
from ..upstream import PACKAGE, Project, Release, Wheel
from ..wheel import is_source, unpack

_REPOSITORY = ".trees.git"


class Store:
    """Trees by the sha256 of the wheel that they come from. Made when first asked for.

    git: the repository, which also reads the private ones of the materialised releases.
    """

    def __init__(self, project: Project, git: Git):
        self.git = git
        self.project = project
        self.wheels = Cache(project.root / PACKAGE / WHEELS)

    def base(self, release: Release) -> str:
        """The tree of a pinned release."""
        if not self.git.has_tree(release.tree):
            wheel = next(iter(release.wheels.values()))
            self.of_wheel(self.wheels.fetch(release.version, wheel), wheel)
        return release.tree

    def of_wheel(self, path: Path, wheel: Wheel) -> str:
        """The tree of a wheel file whose sha256 was checked."""
        ref = f"refs/wheel/{wheel.sha256}"
        known = self.git.text("for-each-ref", "--format=%(objectname)", ref, work=False)
        if known and self.git.has_tree(known):
            return known
        home = self.project.root / PACKAGE
        with (
            locked(home),
            tempfile.TemporaryDirectory(dir=home, prefix=".unpack-") as files,
            tempfile.TemporaryDirectory(prefix="patchset-") as scratch,
        ):
            git = Git(self.git.git_dir, Path(files), Path(scratch))
            names = unpack(path, Path(files, PREFIX))
            index = git.new_index()
            git.stage(index, [f"{PREFIX}/{name}" for name in names if is_source(name)])
            tree = git.write_tree(index)
            git.keep(index)
            git.run("update-ref", ref, tree, work=False)
        return tree


@contextmanager
def open_store(project: Project, borrowed: list[Path]) -> Iterator[Store]:
    """borrowed: objects folders of other repositories that hold trees to look at."""
    home = project.root / PACKAGE
    home.mkdir(exist_ok=True)
    own = [folder / "objects" for folder in home.glob(f"*/{GIT_DIR}")]
    with tempfile.TemporaryDirectory(prefix="patchset-") as scratch:
        git = Git(home / _REPOSITORY, home, Path(scratch), [*sorted(own), *borrowed])
        with locked(home):
            if not (home / _REPOSITORY / "info" / "attributes").is_file():
                shutil.rmtree(home / _REPOSITORY, ignore_errors=True)
                git.create()
        yield Store(project, git)
