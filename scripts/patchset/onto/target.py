# SPDX-License-Identifier: Apache-2.0
"""What `--onto` names: a release, a wheel, a folder, or a git ref of a checkout."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..git import Git, environment
from ..index import look_up, sha256, version_of
from ..root import PREFIX, differing, version_in
from ..upstream import PACKAGE, Wheel
from .store import Store

LATEST = "latest"


@dataclass(frozen=True)
class Target:
    """version: None when the files do not say. source: in words, without this machine's paths."""

    version: str | None
    source: str
    tree: str

    @property
    def name(self) -> str:
        return f"{PACKAGE} {self.version or 'of an unknown version'}"


def objects_of(checkout: Path | None) -> list[Path]:
    """The objects folder of the git checkout that a ref is looked up in."""
    if checkout is None:
        return []
    folder = _ask(checkout, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    return [Path(folder)]


def resolve(onto: str, checkout: Path | None, store: Store) -> Target:
    """Find the files that `--onto` names. Raises UsageError when there are none.

    checkout: where to look up a git ref; None when `onto` is none.
    """
    if checkout is not None:
        return _of_ref(onto, checkout, store)
    path = Path(onto)
    if path.is_dir():
        return _of_folder(path, store)
    if onto.endswith(".whl"):
        wheel = Wheel(path.name, sha256(path))
        return _of_wheel(version_of(path.name), wheel, path, store)
    return _of_release(onto, store)


def _of_release(onto: str, store: Store) -> Target:
    if onto == LATEST:
        listed = look_up(None)
        version, wheel = listed.version, listed.wheel
    elif pinned := store.project.pinned(onto):
        version, wheel = pinned.version, next(iter(pinned.wheels.values()))
        if store.git.has_tree(pinned.tree):
            return Target(version, _described(wheel), pinned.tree)
    elif cached := store.wheels.of_version(onto):
        version, wheel = onto, cached
    else:
        # In the index's own words: `v1.0` and `1.*` find a release too.
        listed = look_up(onto)
        version, wheel = listed.version, listed.wheel
    return _of_wheel(version, wheel, store.wheels.fetch(version, wheel), store)


def _of_wheel(version: str | None, wheel: Wheel, path: Path, store: Store) -> Target:
    return Target(version, _described(wheel), store.of_wheel(path, wheel))


def _described(wheel: Wheel) -> str:
    return f"wheel {wheel.file}, sha256 {wheel.sha256}"


def _of_folder(path: Path, store: Store) -> Target:
    """The package's files on disk, of a checkout, an unpacked wheel, or a site-packages."""
    places = (path / PREFIX / PACKAGE, path / PACKAGE, path)
    folder = next((place for place in places if (place / "srt").is_dir()), None)
    if folder is None:
        raise UsageError(
            f"--onto {path}: expected {PREFIX}/{PACKAGE} or {PACKAGE} in the folder, found neither"
        )
    with tempfile.TemporaryDirectory(prefix="patchset-") as scratch:
        git = Git(store.git.git_dir, folder.resolve(), Path(scratch))
        index = git.new_index()
        # A repository inside is listed as a folder, and is no part of the package.
        git.stage(index, sorted(n for n in differing(git, index) if not n.endswith("/")))
        inner = git.write_tree(index)
        git.keep_objects()
    version = version_in(folder)
    return Target(version, "a folder", _wrapped(inner, store))


def _of_ref(ref: str, checkout: Path, store: Store) -> Target:
    where = f"{ref}:{PREFIX}/{PACKAGE}"
    inner = _ask(checkout, "rev-parse", "--verify", "--quiet", where)
    if not store.git.has_tree(inner):
        raise UsageError(f"--onto {ref}: {checkout} has its name but not its files: fetch it")
    commit = _ask(checkout, "rev-parse", "--verify", f"{ref}^{{commit}}")
    tag = _ask(checkout, "describe", "--tags", "--match", "v*", commit, fails=True)
    return Target(tag.removeprefix("v") or None, f"commit {commit}", _wrapped(inner, store))


def _wrapped(inner: str, store: Store) -> str:
    """The package's tree at its place in upstream's repository."""
    tree = inner
    for name in (PACKAGE, PREFIX):
        row = f"040000 tree {tree}\t{name}\n".encode()
        tree = store.git.text("mktree", stdin=row, work=False)
    return tree


def _ask(checkout: Path, *arguments: str, fails: bool = False) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    if done.returncode and not fails:
        raise UsageError(
            f"--onto: expected a ref of the git checkout {checkout} with {PREFIX}/{PACKAGE}, found "
            f"none ({' '.join(arguments)} fails): fetch it, or name another"
        )
    return done.stdout.strip() if not done.returncode else ""
