# SPDX-License-Identifier: Apache-2.0
"""The lines that an applied series put into upstream's files."""

from __future__ import annotations

from patchset.patchfile import added_lines, parse_diff
from patchset.root import PREFIX, open_materialised
from patchset.series import load
from patchset.upstream import Project, Release


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
        sections = parse_diff(root.git.diff(root.base, after, text=True))
    added = added_lines(sections)
    return {path.removeprefix(f"{PREFIX}/"): added.get(path, set()) for path in paths}
