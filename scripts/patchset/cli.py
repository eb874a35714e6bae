# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/apply_patches.sh."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import command, status
from .command import Parser
from .errors import LintFailed, UsageError
from .git import require_git
from .lint import lint
from .move import move
from .onto import commands
from .onto.port import open_ports
from .refresh import refresh
from .root import Root, open_foreign, open_materialised
from .series import Series, borrowers, load
from .survey import Survey, survey
from .upstream import PACKAGE, REPOSITORY, Project, Release

_DESCRIPTION = """\
Apply the patch series of a pinned SGLang release, take it back, maintain it, or carry it to
another release.

Without options, every patch of the default release is applied to its materialised files
(sglang/<release>/, made by scripts/bootstrap.sh). The whole series is applied in memory and
verified first; files on disk change only when all of it has passed. Your edits in other files
stay; an edit in a file that has to change stops the run before anything has changed.
"""

_EPILOG = """\
exit codes:
  0  done, or already so
  1  --status: not fully applied (a port that is under way does not count)
  2  wrong usage, missing file, missing or old git
  3  a patch does not apply; --report: one is not safe; --3way, --continue: stopped at one
  4  wrong base: the files are not the release that the series was written for
  5  local edits are in the way
  6  a patch, or the result, is not the one that series.lock records
  7  --lint has findings

examples:
  scripts/apply_patches.sh --to 0020              first patches only, up to and with 0020
  scripts/apply_patches.sh --reverse              back to upstream's files
  scripts/apply_patches.sh --root ~/src/sglang    a git checkout of the release's tag
  scripts/apply_patches.sh --root SITE_PACKAGES --strip 2
  scripts/apply_patches.sh --report --onto latest what the newest release breaks
  scripts/apply_patches.sh --3way --onto 0.5.14   begin a port; docs/porting.md has the rest
"""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="apply_patches.sh",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    where = parser.add_argument_group("where")
    where.add_argument("--release", metavar="R", help="a release of upstream.toml")
    where.add_argument("--root", metavar="DIR", help="a checkout or site-packages of that release")
    where.add_argument(
        "--strip", metavar="N", type=int,
        help="leading folders to drop from a/python/sglang/...; with --root (default 1; 2 for "
        "site-packages)",
    )  # fmt: skip
    what = parser.add_argument_group("what (default: apply all)")
    what.add_argument("--to", metavar="NNNN", help="go to this patch, from below or from above")
    what.add_argument("--reverse", action="store_true", help="take all back, or back --to NNNN")
    what.add_argument("--check", action="store_true", help="would it work? touches nothing")
    what.add_argument("--status", action="store_true", help="what is applied, read from the files")
    what.add_argument("--json", action="store_true", help="with --status or --report: as JSON")
    what.add_argument(
        "--refresh", metavar="NNNN", nargs="?", const="",
        help="fold the edits on disk into the topmost applied patch, or into NNNN at that level",
    )  # fmt: skip
    what.add_argument(
        "--new", metavar="NNNN-NAME", default="", help="with --refresh: make a new patch of them"
    )
    what.add_argument("--lint", action="store_true", help="check the form of series and patches")
    newer = parser.add_argument_group("another release")
    newer.add_argument(
        "--report", action="store_true", help="how each patch fares --onto it; touches nothing"
    )
    newer.add_argument(
        "--output", metavar="DIR", help="with --report: write it there too, as .md and .json"
    )
    newer.add_argument(
        "--3way", dest="three_way", action="store_true",
        help="begin a port --onto it: carry patches up to the first that needs a person",
    )  # fmt: skip
    newer.add_argument("--continue", dest="go_on", action="store_true", help="go on with a port")
    newer.add_argument("--abort", action="store_true", help="give a port up")
    newer.add_argument(
        "--onto", metavar="X",
        help="a version, 'latest', a wheel, a folder, or, with --root, a git ref of that checkout; "
        "with --continue, --abort, --refresh or --status: which port",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    return parser


def _refuse_contradictions(options: argparse.Namespace) -> None:
    verbs = {
        "--status": options.status,
        "--lint": options.lint,
        "--refresh": options.refresh is not None,
        "--check": options.check,
        "--report": options.report,
        "--3way": options.three_way,
        "--continue": options.go_on,
        "--abort": options.abort,
    }
    chosen = [name for name, given in verbs.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} exclude each other: see --help")
    moving = "--to" if options.to is not None else "--reverse" if options.reverse else None
    if moving and chosen and chosen != ["--check"]:
        raise UsageError(f"{chosen[0]} and {moving} exclude each other: see --help")
    if options.json and not (options.status or options.report):
        raise UsageError("--json needs --status or --report")
    newer = options.report or options.three_way
    if newer and options.onto is None:
        raise UsageError(f"{chosen[0]} needs --onto: the release to look at")
    if options.onto is not None and not (
        newer or options.go_on or options.abort or options.refresh == "" or options.status
    ):
        raise UsageError(
            "--onto needs --report, --3way, --continue, --abort, --refresh or --status"
        )
    if options.output is not None and not options.report:
        raise UsageError("--output needs --report")
    if options.onto is not None and options.new:
        raise UsageError("--new and --onto exclude each other: see --help")
    if options.new and (options.refresh is None or options.refresh):
        raise UsageError("--new needs --refresh without a number")
    own = options.lint or options.refresh is not None or options.go_on or options.abort
    if options.root is not None and own:
        raise UsageError(f"{chosen[0]} works on the repository's own series: leave out --root")
    if options.strip is not None and options.root is None:
        raise UsageError("--strip needs --root")
    if options.strip is not None and options.strip < 1:
        raise UsageError(f"--strip: expected 1 or more, found {options.strip}")


def main(arguments: list[str] | None = None) -> int:
    """Run the tool. Returns the exit code."""
    return command.run("apply_patches.sh", lambda: _run(_parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    _refuse_contradictions(options)
    project = Project(REPOSITORY)
    release = project.release(options.release)
    if options.lint:
        return _lint(project, release, options.quiet)
    require_git()
    series = load(project.patches(release))
    if (code := _newer(project, release, series, options)) is not None:
        return code
    if options.to is not None:
        series.level(options.to)
    if options.root is None:
        opened = open_materialised(project, release)
    else:
        opened = open_foreign(Path(options.root), options.strip or 1)
    with opened as root:
        found = survey(root, series, release, verify=options.refresh is None)
        if options.status:
            if not options.quiet:
                show = status.as_json if options.json else status.as_text
                print(show(root, series, release, found))
            return status.exit_code(found, series)
        if options.refresh is not None:
            result = refresh(root, series, found, options.refresh, options.new)
            what = result.patch.title if result.patch else "series"
            _say(options, f"{what}: wrote {', '.join(result.written)}")
            for other in borrowers(series.folder, result.written):
                _say(options, f"{other} shares it: take it there with --release {other} --refresh")
            return 0
        return _move(root, series, release, found, options)


def _newer(
    project: Project, release: Release, series: Series, options: argparse.Namespace
) -> int | None:
    """What concerns another release, or None when nothing does."""

    def say(text: str) -> None:
        _say(options, text)

    what = (project, release, series)
    checkout = Path(options.root) if options.root is not None else None
    if options.report:
        output = Path(options.output) if options.output is not None else None
        return commands.run_report(*what, options.onto, checkout, options.json, output, say)
    if options.three_way:
        return commands.run_3way(*what, options.onto, checkout, say)
    if options.go_on:
        return commands.run_continue(*what, options.onto, say)
    if options.abort:
        return commands.run_abort(project, options.onto, say)
    if options.status and not options.json:
        commands.run_where(project, options.onto, say)
        if options.onto is not None:
            return 0
    # A port is under way: then a plain --refresh means it, and one with a number the files here.
    if options.refresh == "" and not options.new and (options.onto or open_ports(project)):
        return commands.run_export(*what, options.onto, say)
    return None


def _move(
    root: Root, series: Series, release: Release, found: Survey, options: argparse.Namespace
) -> int:
    total = len(series.patches)
    level = series.level(options.to) if options.to else 0 if options.reverse else total
    if options.reverse and found.level is not None and found.level < level:
        raise UsageError(
            f"--reverse --to {options.to}: the files are at {series.title(found.level)}, which is "
            "below: leave out --reverse to go up"
        )
    paths = move(root, found, level, dry_run=options.check)
    for path in found.edited:
        kept = "leaves it missing:" if path in found.missing else "keeps your edits in"
        _say(options, f"{kept} {path}")
    done = "already so" if not paths else f"files changed: {len(paths)}"
    if options.check:
        done = f"would work; files to change: {len(paths)}"
    _say(
        options,
        f"{PACKAGE} {release.version} in {root.path}: {'would be ' * options.check}at "
        f"{series.title(level)}, {level} of {total} patches applied ({done})",
    )
    return 0


def _lint(project: Project, release: Release, quiet: bool) -> int:
    folder = project.patches(release)
    findings = lint(folder, project.root)
    for finding in findings:
        print(f"{folder.relative_to(project.root)}/{finding}")
    if findings:
        raise LintFailed(f"{len(findings)} findings in the series of {release.key}")
    if not quiet:
        print(f"the series of {release.key} is in order")
    return 0


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        print(text)
