# SPDX-License-Identifier: Apache-2.0
"""Print the id of a release's series, as the image's label has it.

    PYTHONPATH=scripts python3 -m container.series_id [RELEASE]

Exit codes: 0, or 2 with one line for a release or a series that cannot be read.
"""

from __future__ import annotations

import sys

from patchset import command
from patchset.series import load
from patchset.upstream import REPOSITORY, Project


def _run(release: str | None) -> int:
    project = Project(REPOSITORY)
    print(load(project.patches(project.release(release))).id)
    return 0


if __name__ == "__main__":
    sys.exit(command.run("series_id", lambda: _run(*sys.argv[1:2] or [None])))
