# SPDX-License-Identifier: Apache-2.0
"""The lines that an applied series put into upstream's files."""

from __future__ import annotations

import re

from patchset.root import PREFIX, open_materialised
from patchset.series import load
from patchset.upstream import Project, Release

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def series_lines(project: Project, release: Release) -> dict[str, set[int]]:
    """Line numbers by path under python/, of every Python file that the series touches.

    Read from the materialised tree, as it is now against what was unpacked. Raises UsageError
    when there is none.
    """
    series = load(project.patches(release))
    touched = {s.new_path for patch in series.patches for s in patch.content.sections}
    paths = sorted(path for path in touched if path.endswith(".py"))
    with open_materialised(project, release) as root:
        after = root.snapshot(paths).tree
        return {
            path.removeprefix(f"{PREFIX}/"): _added(
                root.git.run("diff", "-U0", "--no-renames", root.base, after, "--", path).stdout
            )
            for path in paths
        }


def _added(diff: bytes) -> set[int]:
    lines: set[int] = set()
    for start, count in _HUNK.findall(diff):
        lines.update(range(int(start), int(start) + int(count or 1)))
    return lines
