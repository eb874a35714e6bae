# SPDX-License-Identifier: Apache-2.0
"""How every patch of a series fares on another release, as Markdown or as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ..series import Series
from ..upstream import Project, Release
from .judge import Judge
from .rows import FileRow, Kind, PatchRow
from .store import open_store
from .target import Target, objects_of, resolve


@dataclass(frozen=True)
class Report:
    release: Release
    series: Series
    target: Target
    rows: list[PatchRow]

    @property
    def safe(self) -> bool:
        return all(row.kind.safe for row in self.rows)

    @property
    def summary(self) -> str:
        count = Counter(row.kind for row in self.rows)
        kinds = ", ".join(f"{count[kind]} {kind.value}" for kind in Kind if count[kind])
        unsafe = sum(not row.kind.safe for row in self.rows)
        end = f"{unsafe} need a person" if unsafe else "all safe"
        return (
            f"{len(self.rows)} patches of {self.release.key} on {self.target.name}: {kinds}; {end}"
        )


def report(
    project: Project, release: Release, series: Series, onto: str, checkout: Path | None
) -> Report:
    """Judge every patch, past the first conflict. Changes nothing but the store of trees.

    Raises UsageError when `onto` names nothing, DoesNotApply or LockMismatch when the series is
    not in order on its own release.
    """
    series.require_locked()
    with open_store(project, objects_of(checkout)) as store:
        target = resolve(onto, checkout, store)
        judge = Judge(store.git, series, store.base(release), target.tree)
        tree, rows = judge.start, []
        for level, patch in enumerate(series.patches, 1):
            carried = judge.carry(patch, level, tree)
            rows.append(carried.row)
            tree = carried.tree
    return Report(release, series, target, rows)


def as_json(found: Report) -> str:
    """One object; `class` is one of rows.Kind, `blocked_by` a list of patch numbers."""
    return json.dumps(
        {
            "release": found.release.key,
            "series": found.series.id,
            "onto": {
                "version": found.target.version,
                "source": found.target.source,
                "tree": found.target.tree,
            },
            "safe": found.safe,
            "summary": found.summary,
            "patches": [
                {
                    "number": row.number,
                    "name": row.title,
                    "class": row.kind.value,
                    "safe": row.kind.safe,
                    "blocked_by": row.blockers,
                    "files": [_file(file) for file in row.files],
                    "gone": list(row.gone),
                    "look": list(row.look),
                }
                for row in found.rows
            ],
        },
        indent=2,
    )


def _file(file: FileRow) -> dict:
    return {
        "path": file.path,
        "class": file.kind.value,
        "detail": file.detail,
        "new_path": file.new_path,
        "hunks": [
            {
                "hunk": hunk.number,
                "patch_line": hunk.line,
                "class": hunk.kind.value,
                "detail": hunk.detail,
                "blocked_by": list(hunk.blockers),
            }
            for hunk in file.hunks
        ],
    }


def as_markdown(found: Report) -> str:
    """A row for each patch, then what a person must look at, and a summary line."""
    lines = [
        f"# Patches of {found.release.key} on {found.target.name}",
        "",
        f"Series {found.series.id}; {found.target.source}; tree {found.target.tree}.",
        "",
        "| Patch | Class | Its files |",
        "|---|---|---|",
    ]
    for row in found.rows:
        count = Counter(file.kind for file in row.files)
        files = ", ".join(f"{count[kind]} {kind.value}" for kind in Kind if count[kind])
        lines.append(f"| {row.title} | {_class(row)} | {files} |")
    points = {row: details(row) for row in found.rows}
    if any(points.values()):
        lines += ["", "## To look at"]
    for row, texts in points.items():
        if texts:
            lines += ["", f"### {row.title}: {_class(row)}", ""]
            lines += [f"- {text}" for text in texts]
    lines += ["", f"**{found.summary}**"]
    return "\n".join(lines)


def _class(row: PatchRow) -> str:
    return row.kind.value + (f" by {', '.join(row.blockers)}" if row.kind is Kind.BLOCKED else "")


_QUIET = (Kind.EXACT, Kind.OFFSET, Kind.MERGED)


def details(row: PatchRow) -> list[str]:
    """What a person should look at, as Markdown."""
    points = []
    for file in row.files:
        name = f"`{file.path}`" + (f" (now `{file.new_path}`)" if file.new_path else "")
        if file.kind not in _QUIET and (file.detail or not file.hunks):
            points.append(f"{file.kind.value} `{file.path}`: {file.detail or 'upstream has it'}")
        points += [
            f"{hunk.kind.value} {name}, hunk {hunk.number} (line {hunk.line} of the patch): "
            f"{hunk.detail}"
            for hunk in file.hunks
        ]
    points += [f"{Kind.SYMBOL_GONE.value}: {text}" for text in row.gone]
    return points + [f"look: {text}" for text in row.look]
