# SPDX-License-Identifier: Apache-2.0
"""Write the series of a port that is done: its pin, its patches, its lock, and a range-diff."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from ..errors import UsageError
from ..git import Git
from ..index import look_up
from ..ladder import climb
from ..refresh import export_patches
from ..series import RANGE_DIFF, Locked, Patch, Series, format_lock, write_all
from ..upstream import Project, Release, Wheel
from .port import BRANCH, OLD_BRANCH, TEMPORARY, Notes, abort, clear_interrupted, finished
from .store import Store


def export(project: Project, release: Release, series: Series, version: str) -> list[str]:
    """Write patches/<version>/ and, if it is missing, the pin in upstream.toml; remove the port.

    A patch that came out byte for byte the same is not copied: the new series lists the old one's.
    Returns the names of the files. Raises UsageError, with nothing written, when the port is not
    done, the folder exists, or the index has no such release.
    """
    target = project.root / "patches" / version
    if target.exists():
        raise UsageError(
            f"{target} exists: give the port up with --abort, and edit that series with --release "
            f"{version} --refresh; or move the folder away to write it again"
        )
    with finished(project, release, series, version) as (git, notes, store):
        patches = _patches(git, series, notes)
        pinned, pins = _pin(project, release, version, store)
        ported = Series(target, patches, {})
        # The wheel has files that a checkout lacks: its own trees are what the lock must have.
        ladder = climb(git, pinned.tree, ported, 1)
        rows = zip(patches, ladder.trees[1:], strict=True)
        lock = {patch.number: Locked(patch.sha256, tree) for patch, tree in rows}
        text = f"# One patch a line, in the order of their numbers.\n{_lines(patches)}"
        files = {
            **{patch.name: patch.data for patch in patches if not patch.lender},
            "series": text.encode(),
            "series.lock": format_lock(lock),
            RANGE_DIFF: _range_diff(git, release, series, version),
        }
        if pins is not None:
            write_all({project.pins: pins})
        _write_folder(target, files)
    abort(project, version)
    names = [f"patches/{version}/{name}" for name in files]
    return [*([project.pins.name] if pins is not None else []), *names]


def _patches(git: Git, series: Series, notes: Notes) -> list[Patch]:
    """The carried patches, each with its header; those that upstream has are left out."""
    steps = list(zip(series.patches, [notes.start, *notes.trees], notes.trees, strict=False))
    kept = [(patch, new) for patch, old, new in steps if old != new]
    carried = [patch for patch, _ in kept]
    exported = export_patches(git, carried, [notes.start, *(tree for _, tree in kept)])
    return [
        replace(new, lender=(old.lender or series.folder.name) if new.data == old.data else "")
        for old, new in zip(carried, exported, strict=True)
    ]


def _lines(patches: list[Patch]) -> str:
    return "".join(f"{patch.listed}\n" for patch in patches)


def _pin(
    project: Project, release: Release, version: str, store: Store
) -> tuple[Release, bytes | None]:
    """The pinned release, and upstream.toml with its pin added, None if it is there."""
    if pinned := project.pinned(version):
        store.base(pinned)
        return pinned, None
    wheels: dict[str, Wheel] = {}
    for tag in release.wheels:
        try:
            wheels[tag] = look_up(version, tag).wheel
        except UsageError:
            continue  # no wheel for this Python any more
    if not wheels:
        raise UsageError(
            f"pip finds no wheel of {version}, so it cannot be pinned: check the network"
        )
    wheel = next(iter(wheels.values()))
    tree = store.of_wheel(store.wheels.fetch(version, wheel), wheel)
    pinned = Release(version, version, f"v{version}", tree, wheels)
    rows = [f'\n[release."{version}"]', f'version = "{version}"', f'tag = "v{version}"']
    rows.append(f'tree = "{tree}"')
    for tag, wheel in wheels.items():
        rows += [f'\n[release."{version}".wheel.{tag}]']
        rows += [f'file = "{wheel.file}"', f'sha256 = "{wheel.sha256}"']
    return pinned, project.pins.read_bytes().rstrip() + "\n".join(["", *rows, ""]).encode()


def _range_diff(git: Git, release: Release, old: Series, version: str) -> bytes:
    roots = [git.text("rev-list", "--max-parents=0", branch) for branch in (OLD_BRANCH, BRANCH)]
    title = (
        f"patches/{release.key} (series {old.id}) against patches/{version} as it was carried.\n"
        "Later refreshes of either are not in it. How to read it: git help range-diff.\n\n"
    )
    body = git.run(
        "range-diff", "--no-color", "--no-dual-color", f"{roots[0]}..{OLD_BRANCH}",
        f"{roots[1]}..{BRANCH}",
    ).stdout  # fmt: skip
    return title.encode() + b"".join(line.rstrip() + b"\n" for line in body.splitlines())


def _write_folder(target: Path, files: dict[str, bytes]) -> None:
    """The whole folder at once, by one rename."""
    clear_interrupted(target.parent)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=TEMPORARY))
    try:
        write_all({temporary / name: data for name, data in files.items()})
        temporary.chmod(0o755)
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
