# SPDX-License-Identifier: Apache-2.0
"""What scripts/apply_patches.sh does with another release: --report, --3way, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import DoesNotApply, UsageError
from ..series import Series, write_all
from ..upstream import Project, Release
from .export import export
from .port import Progress, abort, begin, open_ports, proceed, where
from .report import as_json, as_markdown, details, report
from .rows import Kind, PatchRow

Say = Callable[[str], None]


def run_report(
    project: Project,
    release: Release,
    series: Series,
    onto: str,
    checkout: Path | None,
    json: bool,
    output: Path | None,
    say: Say,
) -> int:
    """Print a row for each patch, and write that to two files in the folder `output`.

    Returns 0 if all are safe, else the code of "does not apply".
    """
    found = report(project, release, series, onto, checkout)
    texts = {".json": as_json(found), ".md": as_markdown(found)}
    say(texts[".json" if json else ".md"])
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        stem = f"{release.key}-onto-{found.target.version or 'unknown'}"
        write_all({output / f"{stem}{end}": f"{text}\n".encode() for end, text in texts.items()})
    return 0 if found.safe else DoesNotApply.exit_code


def run_3way(
    project: Project,
    release: Release,
    series: Series,
    onto: str,
    checkout: Path | None,
    say: Say,
) -> int:
    return _tell(begin(project, release, series, onto, checkout), series, say)


def run_continue(
    project: Project, release: Release, series: Series, version: str | None, say: Say
) -> int:
    version = _one(project, version)
    return _tell(proceed(project, release, series, version), series, say)


def run_abort(project: Project, version: str | None, say: Say) -> int:
    version = _one(project, version)
    say(f"removed {abort(project, version)}: the port to {version} is given up")
    if project.pinned(version) and not (project.root / "patches" / version).exists():
        say(f'{project.pins.name} keeps its pin: take [release."{version}"] out of it')
    return 0


def run_where(project: Project, version: str | None, say: Say) -> None:
    """Say how far the ports are that are under way, or the one to `version`."""
    ports = open_ports(project)
    if version is not None and version not in ports:
        raise UsageError(
            f"no port to {version} is under way: begin one with --3way --onto {version}"
        )
    for found in [version] if version else ports:
        say(where(project, found))


def run_export(
    project: Project, release: Release, series: Series, version: str | None, say: Say
) -> int:
    version = _one(project, version)
    for name in export(project, release, series, version):
        say(f"wrote {name}")
    say(
        f"the port to {version} is a series of its own now; next: its packages "
        f"(requirements/), then scripts/bootstrap.sh --release {version}"
    )
    return 0


def _one(project: Project, version: str | None) -> str:
    """The port that is meant: the only one, unless it is named."""
    found = open_ports(project)
    if version is not None:
        return version
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError("no port is under way: begin one with --3way --onto RELEASE")
    raise UsageError(f"ports to {', '.join(found)} are under way: name one with --onto")


def _tell(progress: Progress, series: Series, say: Say) -> int:
    """Say what was carried, where it stopped and what to do. Returns 0 when all are carried."""
    for row in progress.rows:
        if row is not progress.stop:
            say(f"{row.kind.value:<11}  {row.title}")
            for text in row.look:
                say(f"             look: {text}")
    if progress.left_out:
        say(f"left out     {progress.left_out}: nothing of it is in the files")
    stop = progress.stop
    if stop is None:
        say(
            f"all patches are carried: each is a commit in {progress.path}; look at them and try "
            "them there, then write the series with --refresh"
        )
        return 0
    say(f"{stop.kind.value:<11}  {stop.title}: stopped here")
    for point in details(stop):
        say(f"  {point}")
    say(_todo(stop, progress.path))
    say(f"then --continue ({_left(stop, series)}); --abort gives the port up")
    return DoesNotApply.exit_code


def _todo(stop: PatchRow, path: Path) -> str:
    if any(file.kind in (Kind.CONFLICT, Kind.MISSING) for file in stop.files):
        gone = "replace each name that is gone, " if stop.gone else ""
        return (
            f"in {path} (an ordinary git checkout: git status, git diff): resolve each conflict, "
            f"{gone}keep the rest"
        )
    return (
        f"in {path}: git was content, a person must look: correct the files, or leave them if "
        "they are right"
    )


def _left(stop: PatchRow, series: Series) -> str:
    numbers = [patch.number for patch in series.patches]
    after = len(numbers) - numbers.index(stop.number) - 1
    return f"{after} more to carry" if after else "the last one"
