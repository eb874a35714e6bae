# SPDX-License-Identifier: Apache-2.0
"""Say in words or in JSON where a root is."""

from __future__ import annotations

import json
from dataclasses import asdict

from .budget import budgets
from .root import Root
from .series import Series
from .survey import Survey
from .upstream import PACKAGE, Release


def exit_code(found: Survey, series: Series) -> int:
    """0 only when every touched file is exactly as the whole series leaves it."""
    if found.problem is not None and found.problem.exit_code == 4:
        return 4
    return 0 if found.kind == "clean" and found.level == len(series.patches) else 1


def as_json(root: Root, series: Series, release: Release, found: Survey) -> str:
    """One JSON object; `level` is the number of the last applied patch, "base", or null."""
    level = found.level
    costs = budgets(series)
    names = ["base", *(patch.number for patch in series.patches)]
    return json.dumps(
        {
            "release": release.key,
            "series": series.id,
            "root": str(root.path),
            "kind": found.kind,
            "level": None if level is None else names[level],
            "fully_applied": exit_code(found, series) == 0,
            "patches": [
                {
                    "number": patch.number,
                    "name": patch.name,
                    "applied": level is not None and k <= level,
                    "budget": asdict(costs[k - 1]),
                }
                for k, patch in enumerate(series.patches, 1)
            ],
            "budget": asdict(costs[-1]),
            "edited": found.edited,
            "missing": found.missing,
            "edited_elsewhere": found.others,
            "problem": str(found.problem) if found.problem else None,
        },
        indent=2,
    )


def as_text(root: Root, series: Series, release: Release, found: Survey) -> str:
    """A line for each patch with its budget, then the edits, then a summary line."""
    total = len(series.patches)
    lines = []
    if found.level is not None and series.patches:
        *costs, whole = budgets(series)
        width = max(len(patch.title) for patch in series.patches)
        for k, (patch, cost) in enumerate(zip(series.patches, costs, strict=True), 1):
            mark = "applied    " if k <= found.level else "not applied"
            lines.append(f"{mark}  {patch.title:<{width}}  {cost}")
        lines.append(f"budget       {'':<{width}}  {whole}")
    lines += [f"missing      {path}" for path in found.missing]
    lines += [f"edited       {path}" for path in found.edited if path not in found.missing]
    lines += [f"edited       {path} (no patch touches it)" for path in found.others]
    summary = {
        "mixed": "an interrupted run left files of several levels: apply again to complete it",
        "outdated": "the series was changed since it was applied: apply again",
        "refused": str(found.problem),
    }.get(found.kind, f"{found.level} of {total} patches applied")
    if found.kind == "mixed" and found.missing:
        summary = "patched files are missing: apply again to restore them"
    if found.kind == "edited":
        what = "edits in" if set(found.edited) - set(found.missing) else "missing"
        summary += f", with {what} files that the series touches"
    return "\n".join([*lines, f"{PACKAGE} {release.version} in {root.path}: {summary}"])
