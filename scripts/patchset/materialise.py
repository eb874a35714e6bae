# SPDX-License-Identifier: Apache-2.0
"""Unpack a pinned upstream wheel under sglang/<release>/, verified, or leave nothing behind.

    PYTHONPATH=scripts python -m patchset.materialise [--release R] [--wheel FILE]

The wheel for the running Python is fetched with pip by name and sha256, or taken from --wheel.
Wheel files go under python/, so that paths equal those of the upstream repository. The wheels of
one release differ only in compiled extensions and metadata; these are unpacked as well, so that
the folder can be imported from, but they are no part of the tree whose id upstream.toml records.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from . import command
from .errors import UsageError, WrongBase
from .git import Git, require_git
from .index import WHEELS, Cache, fetch, python_tag, sha256
from .root import GIT_DIR, PREFIX, locked, open_materialised
from .upstream import PACKAGE, REPOSITORY, Project, Release, Wheel
from .wheel import is_source, unpack


def materialise(project: Project, release: Release, wheel: Path | None) -> str:
    """Make sglang/<release>/ unless it is there; returns what was done, in words.

    Raises UsageError when the wheel cannot be had or is damaged, WrongBase when its files are not
    the recorded ones. The target appears by one rename, complete, or not at all.
    """
    target = project.materialised(release)
    target.parent.mkdir(exist_ok=True)
    with locked(target.parent):
        if target.exists():
            return _already(project, release)
        for leftover in target.parent.glob(f".{release.key}-*"):
            shutil.rmtree(leftover)
        work = Path(tempfile.mkdtemp(prefix=f".{release.key}-", dir=target.parent))
        try:
            return _make(release, wheel, work, target)
        finally:
            shutil.rmtree(work)


def _already(project: Project, release: Release) -> str:
    with open_materialised(project, release) as root:
        version = root.found_version()
        if version != release.version:
            raise WrongBase(
                f"{root.path}: expected {PACKAGE} {release.version}, found "
                f"{version or 'no version'}: remove the folder and run again"
            )
        changed = len(root.git.changes(root.base, root.snapshot([]).tree))
        done = f"{PACKAGE} {release.version} is already in {root.path}: nothing to do"
        return f"{done} (files that differ from upstream's, patched or edited: {changed})"


def _make(release: Release, given: Path | None, work: Path, target: Path) -> str:
    wanted = release.wheels if given else {python_tag(): _wheel_for_this_python(release)}
    path = given or _wheel_file(release, work, target.parent / WHEELS)
    _verify_wheel(path, wanted)
    tree = work / "tree"
    print(f"unpacking {path.name}", flush=True)
    names = unpack(path, tree / PREFIX)
    git = Git(tree / GIT_DIR, tree, work)
    git.create()
    index = git.new_index()
    git.stage(index, [f"{PREFIX}/{name}" for name in names if is_source(name)])
    found = git.write_tree(index)
    if found != release.tree:
        raise WrongBase(
            f"{path.name}: expected tree {release.tree} (upstream.toml), found {found}: is this "
            "file system without executable bits, or upstream.toml wrong?"
        )
    git.keep(index)
    os.rename(tree, target)
    return f"{PACKAGE} {release.version}: {len(names)} files in {target}, tree {found[:12]}"


def _wheel_for_this_python(release: Release) -> Wheel:
    tag = python_tag()
    if tag not in release.wheels:
        raise UsageError(
            f"upstream.toml has no wheel of {PACKAGE} {release.version} for this Python ({tag}), "
            f"only for {', '.join(release.wheels)}: run with one of these"
        )
    return release.wheels[tag]


def _wheel_file(release: Release, work: Path, kept: Path) -> Path:
    """The wheel for this Python: one that a report has fetched already, or from the index."""
    wheel = _wheel_for_this_python(release)
    if path := Cache(kept).get(wheel):
        return path
    print(f"fetching {wheel.file} with pip", flush=True)
    return fetch(release.version, wheel, work / "download")


def _verify_wheel(path: Path, expected: dict[str, Wheel]) -> None:
    """The file must be one of the `expected` wheels, byte for byte."""
    digest = sha256(path)
    known = {wheel.sha256 for wheel in expected.values()}
    if digest not in known:
        raise UsageError(
            f"{path}: sha256 is {digest}, expected {' or '.join(sorted(known))}: the "
            "file is damaged or of another release: fetch it again"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    return command.run("materialise", lambda: _run(arguments))


def _run(arguments: list[str] | None) -> int:
    parser = command.Parser(
        prog="patchset.materialise", description=__doc__.split("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--release", metavar="R", help="a release of upstream.toml")
    parser.add_argument("--wheel", metavar="FILE", type=Path, help="use this file, do not fetch")
    options = parser.parse_args(arguments)
    require_git()
    project = Project(REPOSITORY)
    print(materialise(project, project.release(options.release), options.wheel))
    return 0


if __name__ == "__main__":
    sys.exit(main())
