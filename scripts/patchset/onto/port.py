# SPDX-License-Identifier: Apache-2.0
"""Carry a series to another release by hand where git cannot: stop, let a person edit, go on.

The work is in sglang/port-<version>/, an ordinary git checkout of the other release with a commit
for each patch that was carried. Its own notes are in its .git folder; nothing else is touched.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ..errors import PatchsetError, UsageError
from ..git import ABSENT_BLOB, Change, Entry, Git
from ..merge import BASE, OURS, THEIRS, Merge
from ..patchfile import split_header
from ..refresh import MARKER
from ..root import NOT_SOURCE, PREFIX, differing, locked
from ..series import Patch, Series, load
from ..upstream import PACKAGE, Project, Release
from .judge import Judge
from .rows import Kind, PatchRow
from .store import Store, open_store
from .target import Target, objects_of, resolve

_NOTES = "patchset-port.json"
BRANCH = "refs/heads/port"
OLD_BRANCH = "refs/heads/patches"
# Begins the name of a folder that is not finished yet.
TEMPORARY = ".port-"


@dataclass
class Notes:
    """Where a port is.

    release, series: what is carried. version, source, start: what it is carried to, and its tree.
    trees: the whole tree after each patch that is done. head: the commit of the last of them.
    stopped: the class of the patch that a person is working on, or "". asked: names that are gone,
    and that the person has been asked about and can keep. left: files that upstream does not have,
    and that the merge has put there for a person to see, with their blobs.
    """

    release: str
    series: str
    version: str
    source: str
    start: str
    head: str = ""
    trees: list[str] = field(default_factory=list)
    stopped: str = ""
    asked: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def tree(self) -> str:
        return self.trees[-1] if self.trees else self.start


@dataclass(frozen=True)
class Progress:
    """What a call has done. rows: of the patches that it has carried. stop: the one that needs a
    person, None when all are carried. left_out: the patch of which a person has kept nothing."""

    path: Path
    rows: list[PatchRow]
    stop: PatchRow | None
    left_out: str = ""


def folder(project: Project, version: str) -> Path:
    return project.root / PACKAGE / f"port-{version}"


def open_ports(project: Project) -> list[str]:
    """The versions that a port is under way to."""
    found = (project.root / PACKAGE).glob(f"port-*/.git/{_NOTES}")
    return sorted(path.parents[1].name.removeprefix("port-") for path in found)


def where(project: Project, version: str) -> str:
    """One line: how far the port to `version` is, and what is to be done next."""
    path = folder(project, version)
    try:
        notes = _read(path)
        patches = load(project.root / "patches" / notes.release).patches
    except (OSError, ValueError, TypeError, PatchsetError):
        return f"port to {version}: cannot be read: --abort --onto {version} and begin again"
    done = len(notes.trees)
    if done >= len(patches):
        return f"port to {version}: all {done} patches are carried: write them with --refresh"
    what = f"stopped at {patches[done].title} ({notes.stopped})" if notes.stopped else "interrupted"
    return (
        f"port to {version}: {done} of {len(patches)} patches of {notes.release} are carried, "
        f"{what}: edit {path}, then --continue"
    )


def begin(
    project: Project, release: Release, series: Series, onto: str, checkout: Path | None
) -> Progress:
    """Open a port and carry patches up to the first that needs a person.

    Raises UsageError when there is one to that version already, or `onto` names nothing.
    """
    series.require_locked()
    with open_store(project, objects_of(checkout)) as store:
        target = resolve(onto, checkout, store)
        if target.version is None:
            raise UsageError(f"--onto {onto}: expected files that say their version, found none")
        path = folder(project, target.version)
        if path.exists():
            raise UsageError(
                f"{path} exists: go on with --continue, or give it up with --abort (--onto "
                f"{target.version})"
            )
        written = project.root / "patches" / target.version
        if written.exists():
            raise UsageError(
                f"{written} exists, a port to {target.version} could not be written there: move it "
                "away to carry the series once more"
            )
        notes = Notes(release.key, series.id, target.version, target.source, target.tree)
        clear_interrupted(path.parent)
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=TEMPORARY))
        try:
            notes.head = _create(temporary, store, release, series, target)
            _save(temporary, notes)
            os.rename(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return proceed(project, release, series, target.version, begun=True)


def proceed(
    project: Project, release: Release, series: Series, version: str, begun: bool = False
) -> Progress:
    """Take what a person has made of the patch that it stopped at, and go on to the next stop.

    Raises UsageError, with nothing changed, while conflicts are left.
    """
    with _opened(project, release, series, version) as (path, notes, store):
        work = _Work(path, store, series, release, notes)
        left_out = ""
        if notes.stopped:
            left_out = work.accept()
        elif not begun and len(notes.trees) == len(series.patches):
            raise UsageError(f"all patches are carried in {path}: write the series with --refresh")
        return replace(work.run(), left_out=left_out)


def abort(project: Project, version: str) -> Path:
    """Remove a port with everything that was done in it; returns where it was."""
    path = folder(project, version)
    if not (path / ".git" / _NOTES).is_file():
        raise UsageError(f"no port to {version} is under way: nothing to give up")
    # At once: what is left of an interrupted removal must not look like a port.
    gone = Path(tempfile.mkdtemp(dir=path.parent, prefix=TEMPORARY))
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)
    return path


def clear_interrupted(parent: Path) -> None:
    """Remove what runs that were killed have left in a folder; the store must be held."""
    for path in parent.glob(f"{TEMPORARY}*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def finished(
    project: Project, release: Release, series: Series, version: str
) -> Iterator[tuple[Git, Notes, Store]]:
    """The repository of a port that is done. Raises UsageError when it is not."""
    with _opened(project, release, series, version) as (path, notes, store):
        if notes.stopped or len(notes.trees) < len(series.patches):
            at = series.patches[len(notes.trees)].title
            raise UsageError(
                f"the port to {version} has stopped at {at}: --continue it (or name the patch of "
                f"{release.key} that you mean to --refresh)"
            )
        with _Work(path, store, series, release, notes).git() as git:
            if _on_disk(git, notes.tree) != notes.tree:
                raise UsageError(
                    f"{path} has edits after the last patch, which no patch would hold: undo them; "
                    f"once the series is written, make them in its own tree"
                )
            yield git, notes, store


@contextmanager
def _opened(
    project: Project, release: Release, series: Series, version: str
) -> Iterator[tuple[Path, Notes, Store]]:
    path = folder(project, version)
    try:
        notes = _read(path)
    except OSError:
        raise UsageError(
            f"no port to {version} is under way: begin one with --3way --onto {version}"
        ) from None
    except (ValueError, TypeError) as problem:
        raise UsageError(
            f"{path / '.git' / _NOTES}: not what the port wrote ({problem}): --abort --onto "
            f"{version} and begin again"
        ) from None
    if notes.release != release.key:
        raise UsageError(
            f"the port to {version} carries the series of {notes.release}, not of {release.key}: "
            f"add --release {notes.release}"
        )
    if notes.series != series.id:
        raise UsageError(
            f"the series was changed since the port to {version} began (it was {notes.series}, is "
            f"{series.id}): restore it, or --abort and begin again"
        )
    with (
        locked(path),
        _busy(path / ".git"),
        open_store(project, [path / ".git" / "objects"]) as store,
    ):
        yield path, notes, store


@contextmanager
def _busy(git_dir: Path) -> Iterator[None]:
    """Mark that a run is under way, and clear git's locks if the last one did not end itself."""
    mark = git_dir / "patchset-busy"
    if mark.exists():
        for name in ("index.lock", "HEAD.lock", f"{BRANCH}.lock"):
            (git_dir / name).unlink(missing_ok=True)
    mark.touch()
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def _read(path: Path) -> Notes:
    """Raises OSError where no port is, ValueError or TypeError for notes of another kind."""
    return Notes(**json.loads((path / ".git" / _NOTES).read_text(encoding="utf-8")))


def _save(path: Path, notes: Notes) -> None:
    new = path / ".git" / f"{_NOTES}.new"
    new.write_text(json.dumps(asdict(notes), indent=1), encoding="utf-8")
    os.replace(new, path / ".git" / _NOTES)


def _create(path: Path, store: Store, release: Release, series: Series, target: Target) -> str:
    """A repository with the other release checked out, and the old series on a branch.

    Returns the commit of the other release.
    """
    base = store.base(release)
    store.git.keep_objects()
    objects = path / ".git" / "objects"
    lenders = store.git.readable
    with tempfile.TemporaryDirectory(prefix="patchset-") as scratch:
        git = Git(path / ".git", path, Path(scratch), lenders)
        git.create()
        (objects / "info").mkdir(exist_ok=True)
        # So that plain git finds them too.
        rows = [f"{os.path.relpath(lender, objects)}\n" for lender in lenders]
        (objects / "info" / "alternates").write_text("".join(rows))
        (path / ".git" / "info" / "exclude").write_text("\n".join([*NOT_SOURCE, ""]))
        old = git.commit(base, message=f"{PACKAGE} {release.version}")
        index = git.new_index(base)
        for patch in series.patches:
            git.apply(index, patch.content.diff, 1)
            old = git.commit(git.write_tree(index), old, message=_message(patch))
        new = git.commit(target.tree, message=target.name)
        git.run("read-tree", target.tree)
        git.run("checkout-index", "-a", "-f", "-q", "-u")
        git.keep_objects()
        git.run("update-ref", OLD_BRANCH, old)
        git.run("update-ref", BRANCH, new)
        git.run("symbolic-ref", "HEAD", BRANCH)
    return new


def _message(patch: Patch) -> str:
    """The patch's name, and what its header says after the subject."""
    header, _ = split_header(patch.data)
    text = header.decode("utf-8", "replace").partition("\n\n")[2].removesuffix("---\n")
    return f"{patch.title}\n\n{text}".strip() + "\n"


def _on_disk(git: Git, tree: str) -> str:
    """The tree of the files on disk, which were those of `tree` at some time."""
    index = git.new_index(tree)
    git.stage(index, sorted(differing(git, index)))
    return git.write_tree(index)


def _can_carry(change: Change) -> bool:
    return change.path.startswith(f"{PREFIX}/") and change.new.mode in ("100644", "100755")


@dataclass(frozen=True)
class _Work:
    path: Path
    store: Store
    series: Series
    release: Release
    notes: Notes

    @cached_property
    def judge(self) -> Judge:
        """Made when it is first asked: most refusals need none."""
        return Judge(self.store.git, self.series, self.store.base(self.release), self.notes.start)

    @contextmanager
    def git(self) -> Iterator[Git]:
        """The port's repository, which also reads what the store's run has made."""
        store = self.store.git
        store.move_objects(self.path / ".git" / "objects")
        with tempfile.TemporaryDirectory(prefix="patchset-") as scratch:
            yield Git(self.path / ".git", self.path, Path(scratch), store.readable)

    def run(self) -> Progress:
        """Carry patches until one needs a person, or all are carried."""
        notes, rows, judge = self.notes, [], self.judge
        for level in range(len(notes.trees) + 1, len(self.series.patches) + 1):
            patch = self.series.patches[level - 1]
            carried = judge.carry(patch, level, judge.cut(notes.tree))
            rows.append(carried.row)
            if not carried.row.kind.safe:
                self._stop(carried.merge, carried.row)
                return Progress(self.path, rows, carried.row)
            tree = judge.whole(carried.merge.tree, notes.tree)
            with self.git() as git:
                git.run("read-tree", "-m", "-u", notes.tree, tree)
                self._commit(git, patch, tree)
        return Progress(self.path, rows, None)

    def accept(self) -> str:
        """Commit the files on disk as the patch that the port has stopped at.

        Returns its title if nothing of it is in the files, else ''.
        """
        patch, notes = self.series.patches[len(self.notes.trees)], self.notes
        with self.git() as git:
            # Files of another commit would be taken for edits, and the patch would undo others.
            since = ("merge-base", "--is-ancestor", notes.head, "HEAD")
            if git.run(*since, allow=(0, 1, 128)).returncode:
                raise UsageError(
                    f"{self.path}: expected commit {notes.head[:12]} or one on top of it, found "
                    f"another: if the files are right (say, after an amend), git reset --soft "
                    f"{notes.head[:12]}, else check that commit out; nothing was changed"
                )
            tree = _on_disk(git, notes.tree)
            changed = [c for c in git.changes(notes.tree, tree) if c.new is not None]
            odd = [c.path for c in changed if not _can_carry(c)]
            changed = [c for c in changed if _can_carry(c)]
            contents = git.blobs(change.new.blob for change in changed)
            marked = [c.path for c in changed if MARKER.search(contents[c.new.blob])]
            if marked:
                raise UsageError(
                    f"{patch.title}: conflict markers are left in {', '.join(marked)} (in "
                    f"{self.path}): resolve them, then --continue; nothing was changed"
                )
            odd += [c.path for c in changed if b"\0" in contents[c.new.blob]]
            if odd:
                raise UsageError(
                    f"{patch.title}: {', '.join(odd)} (in {self.path}): expected text files in "
                    f"{PREFIX}/, which is all that a patch can hold: move what is not part of it "
                    "away, then --continue; nothing was changed"
                )
            as_left = [c.path for c in changed if notes.left.get(c.path) == c.new.blob]
            if as_left:
                raise UsageError(
                    f"{patch.title}: {', '.join(as_left)} is still there as the patch left it, and "
                    f"the release has no such file: bring the change to where upstream has the "
                    "code now, remove the file, then --continue; nothing was changed"
                )
            git.keep_objects()
            gone = self.judge.gone(len(notes.trees) + 1, notes.tree, tree)
            if set(gone) - set(notes.asked):
                notes.asked = list(gone)
                _save(self.path, notes)
                raise UsageError(
                    f"{patch.title}: {'; '.join(gone)} (in {self.path}): correct it, or --continue "
                    "once more to keep it; nothing was changed"
                )
            git.run("read-tree", "--reset", tree)
            git.run("update-index", "-q", "--refresh", allow=(0, 1))
            empty = tree == notes.tree
            self._commit(git, patch, tree)
        return patch.title if empty else ""

    def _commit(self, git: Git, patch: Patch, tree: str) -> None:
        """Record a patch whose files are on disk: on the branch, and in the notes.

        One that leaves nothing to do, because upstream has it, gets no commit.
        """
        notes = self.notes
        if tree != notes.tree:
            notes.head = git.commit(tree, notes.head, message=_message(patch))
            git.keep_objects()
            git.run("update-ref", BRANCH, notes.head)
        notes.trees.append(tree)
        notes.stopped, notes.asked, notes.left = "", [], {}
        _save(self.path, notes)

    def _named(self, merge: Merge) -> str:
        """The merged tree, with conflict markers that say whose lines are whose."""
        git, notes = self.store.git, self.notes
        theirs = self.series.patches[len(notes.trees)].title
        names = (f"{PACKAGE} {notes.version}", theirs)
        files = {p: e for p, e in git.entries(merge.tree).items() if p in merge.conflicts}
        contents = git.blobs(entry.blob for entry in files.values())
        for path, entry in files.items():
            data = contents[entry.blob]
            for side, name in zip(merge.sides, names, strict=True):
                for marker in ("<<<<<<<", ">>>>>>>"):
                    data = data.replace(f"{marker} {side}".encode(), f"{marker} {name}".encode())
            files[path] = Entry(entry.mode, git.write_blob(data))
        return git.with_entries(merge.tree, files)

    def _stop(self, merge: Merge, row: PatchRow) -> None:
        """Leave the merge on disk, its conflicts marked in the files and in the index."""
        notes = self.notes
        shown = self.judge.whole(self._named(merge), notes.tree, frozenset(merge.conflicts))
        with self.git() as git:
            git.run("read-tree", "--reset", "-u", shown)
            rows = []
            for path, stages in merge.conflicts.items():
                rows.append(f"0 {ABSENT_BLOB}\t{path}")
                rows += [f"{e.mode} {e.blob} {stage}\t{path}" for stage, e in stages.items()]
            listing = b"".join(os.fsencode(row) + b"\0" for row in rows)
            git.run("update-index", "-z", "--index-info", stdin=listing)
            git.keep_objects()
        # Changed by the patch, gone upstream: the merge leaves the patch's own file.
        notes.left = {
            path: stages[THEIRS].blob
            for path, stages in merge.conflicts.items()
            if THEIRS in stages and BASE in stages and OURS not in stages
        }
        notes.stopped = row.kind.value
        # Beside a conflict they are easily forgotten: then they are asked about once more.
        notes.asked = list(row.gone) if row.kind is Kind.SYMBOL_GONE else []
        _save(self.path, notes)
