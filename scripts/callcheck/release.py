# SPDX-License-Identifier: Apache-2.0
"""All calls of one release's series against SGLang's sources and one wheel's facts."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from patchset.root import PREFIX
from patchset.upstream import PACKAGE, Project, Release

from .calls import Reached, check
from .kernel_facts import FACTS, MODULE
from .kernel_facts import PACKAGE as KERNEL
from .series_lines import series_lines
from .signature import from_text
from .sources import External, Sources


def load_facts(release: str, folder: Path = FACTS) -> list[dict]:
    """The facts of every sglang-kernel that a release is checked against.

    Raises FileNotFoundError when there are none.
    """
    paths = sorted((folder / release).glob(f"{KERNEL}-*.json"))
    if not paths:
        raise FileNotFoundError(
            f"callcheck: expected {folder / release}/{KERNEL}-VERSION.json, found none; run "
            f"python -m callcheck.kernel_facts {release} VERSION"
        )
    return [json.loads(path.read_text()) for path in paths]


def kernel_signatures(facts: dict):
    """For `calls.check`: signatures of sgl_kernel's functions, nothing of other packages."""

    def external(target: External) -> inspect.Signature | None:
        if target.module.split(".")[0] != MODULE:
            return None
        function = facts["functions"].get(target.name)
        if target.module != MODULE or function is None:
            raise LookupError(
                f"expected a name of which the facts of {KERNEL} {facts['version']} know, found "
                "another; add its module to callcheck.kernel_facts and run that"
            )
        return from_text(function["parameters"])

    return external


def check_release(project: Project, release: Release, facts: dict) -> list[Reached]:
    """Every callee that the series' lines reach. Raises UsageError without the unpacked tree."""
    sources = Sources(project.materialised(release) / PREFIX, PACKAGE)
    external = kernel_signatures(facts)
    return [
        reached
        for path, lines in series_lines(project, release).items()
        for reached in check(sources.module_at(path), lines, external)
    ]
