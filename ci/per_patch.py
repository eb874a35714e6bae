# SPDX-License-Identifier: Apache-2.0
"""Prove every patch of a series by itself. Run through ci/per_patch.sh.

At each level of the series, from the first patch to the last:

* the files that the patches so far touch compile and use no undefined name,
* their modules can be imported, all in one process on the CPU profile,
* the unit tests of all patches so far pass, and
* so do the other tests that the level's own patch names in its `Test:` trailer. These start
  engines, so they run at one level each.

Then everything is taken back, and the files must be the pinned release's. A patch counts as
tested when a test has passed in each file that it names, at its level. All that is listed must be
on disk, applied and tested, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from cpu_profile.environment import set_environment  # noqa: E402
from patchset.errors import PatchsetError  # noqa: E402
from patchset.patchfile import SEPARATOR, split_trailers, trailer_words  # noqa: E402
from patchset.root import open_materialised  # noqa: E402
from patchset.series import Patch, load  # noqa: E402
from patchset.upstream import Project  # noqa: E402

UNIT_TESTS = "tests/patches"
# pytest's exit code when it has collected nothing.
NO_TESTS = 5


class Failed(Exception):
    """One line: what was expected, what was found, what to do."""


@dataclass(frozen=True)
class Tests:
    """What a patch's `Test:` trailers name, relative to the repository's root."""

    unit: list[str]
    """Files in tests/patches, named after the patch's number."""
    other: list[str]


def tests_of(patch: Patch) -> Tests:
    """The tests that a patch names. Raises Failed unless all its test files are among them."""
    message = patch.content.header.decode().removesuffix(SEPARATOR.decode())
    _, trailers = split_trailers(message)
    named = trailer_words(trailers, "Test")
    own = {str(p.relative_to(ROOT)) for p in files_in(UNIT_TESTS, f"test_{patch.number}_*.py")}
    unit = [path for path in named if path.startswith(f"{UNIT_TESTS}/")]
    if not own:
        raise Failed(f"expected {UNIT_TESTS}/test_{patch.number}_*.py, found none; write one")
    if set(unit) != own:
        differing = ", ".join(sorted(set(unit) ^ own))
        raise Failed(
            f"expected Test: to name all of {UNIT_TESTS}/test_{patch.number}_*.py, found a "
            f"difference in {differing}; correct it and run apply_patches.sh --refresh"
        )
    return Tests(unit, [path for path in named if path not in own])


def files_in(folder: str, pattern: str) -> list[Path]:
    return sorted((ROOT / folder).glob(pattern))


def require_same(what: str, expected: list[str], found: list[str]) -> None:
    """Raise Failed where two lists that must agree do not."""
    if expected != found:
        differing = sorted(set(expected) ^ set(found)) or found
        raise Failed(
            f"expected the patches {what} to be the ones that the series lists, found a difference "
            f"in {', '.join(differing)}; make series, files and tests agree"
        )


class Line:
    """The series of one release, and its files under sglang/."""

    def __init__(self, key: str) -> None:
        self.project = Project(ROOT)
        self.release = self.project.release(key)
        self.series = load(self.project.patches(self.release))
        self.root = self.project.materialised(self.release)

    def apply(self, *arguments: str) -> None:
        command = [ROOT / "scripts/apply_patches.sh", "--release", self.release.key, "--quiet"]
        run("apply", [*command, *arguments])

    def applied(self) -> list[str]:
        """Names of the patches that the files on disk hold, each of them whole."""
        command = [ROOT / "scripts/apply_patches.sh", "--release", self.release.key]
        done = subprocess.run([*command, "--status", "--json"], capture_output=True, text=True)
        if done.returncode > 1:
            raise Failed(done.stderr.strip())
        status = json.loads(done.stdout)
        if status["kind"] != "clean":
            raise Failed(f"expected clean files, found them {status['kind']}; see --status")
        return [patch["name"] for patch in status["patches"] if patch["applied"]]

    def touched(self, level: int) -> list[str]:
        """Python files under the root that the first `level` patches touch and leave there."""
        left: dict[str, bool] = {}
        for patch in self.series.patches[:level]:
            left |= {change.path: change.new is not None for change in patch.content.changes()}
        return sorted(path for path, there in left.items() if there and path.endswith(".py"))

    def tree(self) -> str:
        """git tree id of the files on disk."""
        with open_materialised(self.project, self.release) as root:
            return root.snapshot(()).tree


def run(what: str, command: list[str | os.PathLike]) -> None:
    """Run a command from the repository's root. Raises Failed when it does not succeed."""
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, env=set_environment(dict(os.environ)))
    if done.returncode:
        raise Failed(f"expected {what} to succeed, found exit code {done.returncode}; see above")


def check_files(line: Line, level: int) -> None:
    """Compile, lint and import what the first `level` patches touch."""
    paths = line.touched(level)
    files = [line.root / path for path in paths]
    run("compile", [sys.executable, "-m", "compileall", "-q", "-f", *files])
    ruff = [Path(sys.executable).parent / "ruff", "check", "--quiet", "--isolated", "--no-cache"]
    ruff += ["--target-version", "py310", "--select", "F821", "--ignore-noqa"]
    run("lint", [*ruff, *files])
    modules = [
        path.removeprefix("python/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for path in paths
    ]
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    run("import", [sys.executable, "-W", "ignore", "-c", program, *modules])


def start_pytest(paths: list[str], report: Path, output: IO | None) -> subprocess.Popen:
    """Run pytest on `paths`, which writes `report`; its output goes to `output`, or is shown."""
    options = ["-q", "-W", "ignore", f"--junitxml={report}", "-o", "junit_family=xunit1"]
    options += ["-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    environment = set_environment(dict(os.environ))
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)


def passed_tests(groups: list[list[str]]) -> Counter[str]:
    """Run pytest on each group, all at once; returns how many tests have passed in each file.

    The first group's output is shown as it comes, the others' when all have ended.
    """
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reports = [folder / f"{number}.xml" for number in range(len(groups))]
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in groups[1:]]
        running: list[subprocess.Popen] = []
        try:
            for paths, report, output in zip(groups, reports, [None, *outputs], strict=True):
                running.append(start_pytest(paths, report, output))
            codes = [process.wait() for process in running]
        except BaseException:
            for process in running:
                process.send_signal(signal.SIGINT)  # pytest ends its engines
                process.wait()
            raise
        for output in outputs:
            output.seek(0)
            print(output.read(), end="", flush=True)
        # Where nothing was collected, `prove` says which file lacks tests.
        failed = [code for code in codes if code not in (0, NO_TESTS)]
        if failed:
            raise Failed(f"expected pytest to succeed, found exit code {failed[0]}; see above")
        cases = [case for report in reports for case in ElementTree.parse(report).iter("testcase")]
        return Counter(case.get("file") for case in cases if case.find("skipped") is None)


def side_by_side(unit: list[str], other: list[str]) -> list[list[str]]:
    """Groups of test files for two cores, of which an engine keeps one busy.

    The first of the others runs beside the rest of them, so `Test:` names the longest first.
    """
    groups = [unit, other[:1], other[1:]] if other else [unit[::2], unit[1::2]]
    return [group for group in groups if group]


def prove(line: Line, level: int, tests: list[Tests]) -> int:
    """Check the series up to its patch number `level`. Returns how many tests have passed."""
    patch = line.series.patches[level - 1]
    line.apply("--to", patch.number)
    require_same("applied", [p.name for p in line.series.patches[:level]], line.applied())
    check_files(line, level)
    own = tests[-1]
    unit = [path for each in tests for path in each.unit]
    passed = passed_tests(side_by_side(unit, own.other))
    for path in own.unit + own.other:
        name = path.split("::")[0]
        if not any(file == name or file.startswith(f"{name}/") for file in passed):
            raise Failed(f"expected tests that pass in {path}, found none; see its markers")
    return passed.total()


def prove_all(line: Line) -> str:
    """Check every level, then take all back. Returns the summary."""
    patches = line.series.patches
    listed = [patch.name for patch in patches]
    # A patch that is the same for another release is in that release's folder.
    borrowed = [patch.name for patch in patches if patch.lender]
    on_disk = sorted([*borrowed, *(path.name for path in line.series.folder.glob("*.patch"))])
    require_same("on disk", listed, on_disk)
    if not listed:
        raise Failed("expected a series with patches, found an empty one; list them in series")
    known = {patch.number for patch in patches}
    stray = [p.name for p in files_in(UNIT_TESTS, "test_*.py") if p.name[5:9] not in known]
    if stray:
        raise Failed(f"expected test_NNNN_*.py of listed patches, found {stray[0]}; rename it")
    tests: list[Tests] = []
    tested: list[str] = []
    passed = 0
    for level, patch in enumerate(patches, 1):
        print(f"\nper patch: at {patch.title}, {level} of {len(patches)}")
        try:
            tests.append(tests_of(patch))
            passed += prove(line, level, tests)
        except Failed as problem:
            raise Failed(f"{patch.title}: {problem}") from None
        tested.append(patch.name)
    applied = line.applied()
    require_same("applied", listed, applied)
    require_same("tested", listed, tested)
    line.apply("--reverse")
    tree = line.tree()
    if tree != line.release.tree:
        expected = line.release.tree
        raise Failed(f"expected tree {expected} after --reverse, found {tree}; see --status")
    return (
        f"{len(listed)} listed, {len(on_disk)} on disk, {len(applied)} applied, "
        f"{len(tested)} tested ({passed} tests), reversed to the base tree {tree[:12]}"
    )


def main() -> int:
    (key,) = sys.argv[1:]
    try:
        summary = prove_all(Line(key))
    except (Failed, PatchsetError) as problem:
        print(f"per patch: {problem}", file=sys.stderr)
        return 1
    print(f"per patch: {key}: {summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
