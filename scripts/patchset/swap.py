# SPDX-License-Identifier: Apache-2.0
"""Replace, add, and remove files under a folder: all of them, or none."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError
from .git import Change

# The `~` keeps what a killed run leaves out of every tree (root.NOT_SOURCE).
_TEMPORARY = ".patchset-{}~"
_PLAIN = {"100644", "100755"}
_DEFAULT_MODE = 0o644


@dataclass(frozen=True)
class _Step:
    target: Path
    new: Path | None
    """Complete new file beside the target; None: the target goes."""
    old: Path | None
    """The old file, kept beside the target; None: there was none."""


def swap(root: Path, changes: list[Change], read: Callable[[str], bytes]) -> None:
    """Bring every path of `changes` from its old to its new state.

    read: gives the content of a blob id. The old states must be on disk. A replaced file keeps its
    permissions, but for an intended change of the executable bit; a new one gets those of a file
    beside it, or 0644, whatever the umask. Raises UsageError when it cannot be done; the files are
    then what they were.
    """
    for change in changes:
        for entry in (change.old, change.new):
            if entry is not None and entry.mode not in _PLAIN:
                raise UsageError(
                    f"{change.path}: expected a plain file, the series has git mode {entry.mode}: "
                    "take it out of the series; nothing was changed"
                )
    _Swap(root).run(changes, read)


class _Swap:
    def __init__(self, root: Path):
        self._root = root
        self._temporary: list[Path] = []
        self._folders: list[Path] = []
        self._begun: list[_Step] = []

    def run(self, changes: list[Change], read: Callable[[str], bytes]) -> None:
        for folder in {(self._root / change.path).parent for change in changes}:
            for leftover in folder.glob(_TEMPORARY.format("*")):
                leftover.unlink()
        path = ""
        try:
            steps = []
            for change in changes:
                path = change.path
                steps.append(self._prepare(change, read))
            for step in steps:
                path = step.target.relative_to(self._root).as_posix()
                self._begun.append(step)
                if step.new is None:
                    step.target.unlink()
                else:
                    os.replace(step.new, step.target)
        except BaseException as problem:
            lost = self._undo()
            reason = getattr(problem, "strerror", None) or str(problem) or "interrupted"
            if lost:
                raise UsageError(
                    f"{path}: {reason}, and {lost[0].target} could not be put back: its old "
                    f"content is in {lost[0].old}: move it there (files like this: {len(lost)})"
                ) from problem
            if isinstance(problem, OSError):
                raise UsageError(
                    f"{path}: cannot be replaced: {reason}: mend that and run again; nothing was "
                    "changed"
                ) from problem
            raise
        self._clean_up()
        for step in steps:
            if step.new is None:
                self._remove_empty(step.target.parent)

    def _prepare(self, change: Change, read: Callable[[str], bytes]) -> _Step:
        target, new, old = self._root / change.path, None, None
        if change.old is not None:
            old = self._beside(target)
            try:
                os.link(target, old)
            except OSError:  # a file system without hard links, or a file of another user
                shutil.copy2(target, old)
        if change.new is not None:
            self._make_folder(target.parent)
            new = self._beside(target)
            with open(new, "xb") as stream:
                stream.write(read(change.new.blob))
                stream.flush()
                os.fsync(stream.fileno())
            new.chmod(_permissions(target, change.new.mode == "100755"))
        return _Step(target, new, old)

    def _beside(self, target: Path) -> Path:
        path = target.with_name(_TEMPORARY.format(len(self._temporary)))
        self._temporary.append(path)
        return path

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make_folder(folder.parent)
            folder.mkdir()
            self._folders.append(folder)
            folder.chmod(stat.S_IMODE(folder.parent.stat().st_mode))

    def _undo(self) -> list[_Step]:
        """Put the old files back. Returns the steps that could not be undone."""
        lost = []
        for step in reversed(self._begun):
            try:
                if step.old is None:
                    step.target.unlink(missing_ok=True)
                else:
                    os.rename(step.old, step.target)
            except OSError:
                lost.append(step)
        kept = {step.old for step in lost}
        self._temporary = [path for path in self._temporary if path not in kept]
        self._clean_up()
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        return lost

    def _clean_up(self) -> None:
        for path in self._temporary:
            with contextlib.suppress(OSError):
                path.unlink()

    def _remove_empty(self, folder: Path) -> None:
        with contextlib.suppress(OSError):
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent


def _permissions(target: Path, executable: bool) -> int:
    """Permission bits for what is to stand at `target`."""
    if target.exists():
        bits = stat.S_IMODE(target.stat().st_mode)
        if bool(bits & stat.S_IXUSR) == executable:
            return bits
    else:
        bits = _mode_beside(target)
    # Whoever may read an executable file may run it.
    return bits | (bits & 0o444) >> 2 if executable else bits & ~0o111


def _mode_beside(target: Path) -> int:
    """Permission bits of the first plain file in the folder of `target`, or the default."""
    temporary = _TEMPORARY.format("*")
    for file in sorted(target.parent.iterdir()):
        if file.is_file() and not file.is_symlink() and not file.match(temporary):
            return stat.S_IMODE(file.stat().st_mode) & 0o666
    return _DEFAULT_MODE
