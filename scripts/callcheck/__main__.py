# SPDX-License-Identifier: Apache-2.0
"""Compare the calls of a series with the signatures that they reach.

    PYTHONPATH=scripts python -m callcheck [--release R] [--list] [--installed]

Needs the unpacked, patched release. Prints a line for each call that does not fit; exit code 1 if
there is one, 2 when the comparison cannot be made.
"""

from __future__ import annotations

import argparse
import sys

from patchset.errors import UsageError
from patchset.upstream import REPOSITORY, Project

from . import installed
from .kernel_facts import MODULE
from .release import check_release, load_facts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="callcheck", description=__doc__.splitlines()[0])
    parser.add_argument("--release", metavar="R", help="a release of upstream.toml")
    parser.add_argument("--list", action="store_true", help="print the calls that fit as well")
    parser.add_argument(
        "--installed",
        action="store_true",
        help="compare with what this Python imports too: sgl_kernel with its facts, and every "
        "callee in sglang with its definition in the sources",
    )
    args = parser.parse_args(arguments)
    project = Project(REPOSITORY)
    try:
        release = project.release(args.release)
        problems = []
        for facts in load_facts(release.key):
            reached = check_release(project, release, facts)
            for one in reached:
                if args.list or one.problem:
                    print(one)
            problems += [one for one in reached if one.problem]
            kernel = sum(one.module == MODULE for one in reached)
            print(
                f"callcheck: {release.key} with {facts['package']} {facts['version']}: "
                f"{len(reached) - kernel} calls reach sglang, {kernel} reach {MODULE}, "
                f"{len(problems)} do not fit"
            )
        if args.installed:
            problems += installed.report(load_facts(release.key), reached)
    except (UsageError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
