# SPDX-License-Identifier: Apache-2.0
"""ci/per_patch.sh is green only if every listed patch was applied and tested."""

import pytest
from made_up_series import NAMES, NOTES, NUMBERS, SLOW, TRAILERS, UNIT, levels


def red(repository, *expected: str) -> str:
    """The last line of a run that must fail; it has all the `expected` words."""
    result = repository.per_patch()
    assert result.returncode != 0, result.stdout
    assert "reversed to the base tree" not in result.stdout
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("per patch: ")]
    for words in expected:
        assert words in line
    return line


def test_a_series_in_order_is_green_and_counted(repository):
    result = repository.per_patch()
    assert (result.returncode, result.stderr) == (0, "")
    last = result.stdout.splitlines()[-1]
    # Unit tests: one at the first level, two at the second, three at the third; one slow test.
    counts = "3 listed, 3 on disk, 3 applied, 3 tested (7 tests), reversed to the base tree "
    assert last.startswith(f"per patch: 9.9.1: {counts}")
    # Slow tests run at the level of the patch that names them, and nowhere else.
    assert (repository.root / NOTES).read_text() == "2"
    assert repository.level() == "LEVEL = 3\n"


@pytest.mark.parametrize("name", NAMES)
def test_any_patch_that_is_corrupted(repository, name):
    path = repository.patches / name
    path.write_bytes(path.read_bytes().replace(b"+LEVEL = ", b"+LEVEL =  "))
    red(repository)


@pytest.mark.parametrize("name", NAMES)
def test_any_patch_that_is_missing(repository, name):
    (repository.patches / name).unlink()
    red(repository, name)


@pytest.mark.parametrize("name", NAMES)
def test_any_patch_that_is_not_listed(repository, name):
    for file in ("series", "series.lock"):
        path = repository.patches / file
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith(name[:4])))
    red(repository, "on disk", name)


def test_an_empty_series(repository):
    for name in NAMES:
        (repository.patches / name).unlink()
    (repository.patches / "series").write_text("# none\n")
    (repository.patches / "series.lock").write_text("")
    red(repository, "found an empty one")


@pytest.mark.parametrize("level", [1, 2, 3])
def test_any_patch_that_is_wrong(make, level):
    """It is well-formed and recorded, but its test fails, whether a later patch mends it or not."""
    repository = make(levels(**{f"core_{level}": b"LEVEL = -1\n"}))
    red(repository, f"00{level}0-patch: expected pytest to succeed")
    assert repository.level() == ("LEVEL = -1\n" if level == 3 else "LEVEL = 3\n")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"LEVEL = = 2\n", "compile"),
        (b"def f(): return gone  # noqa\n", "lint"),
        (b"import gone\n", "import"),
    ],
)
def test_a_patch_that_no_test_would_find_wrong(make, line, what):
    repository = make(levels(core_2=b"LEVEL = 2\n" + line))
    red(repository, f"0020-patch: expected {what} to succeed")


def test_a_file_that_only_an_earlier_patch_touches_is_looked_at_again(make):
    """What the third patch leaves in core.py breaks extra.py, which it does not touch."""
    trees = levels(extra_2=b"from sglang.core import LEVEL\n", core_3=b"OTHER = 3\n")
    trees[3]["python/sglang/extra.py"] = trees[2]["python/sglang/extra.py"]
    red(make(trees), "0030-patch: expected import to succeed")


@pytest.mark.parametrize("number", NUMBERS)
def test_any_patch_without_tests(repository, number):
    (repository.root / UNIT[number]).unlink()
    red(repository, f"expected tests/patches/test_{number}_*.py, found none; write one")


@pytest.mark.parametrize("number", NUMBERS)
def test_any_test_file_that_collects_nothing(repository, number):
    repository.write(UNIT[number], "x = 1\n")
    line = red(repository, number)
    # Where it is the only file, pytest itself says that it has collected nothing.
    assert f"expected tests that pass in {UNIT[number]}" in line or "exit code 5" in line


@pytest.mark.parametrize(
    "text", ["x = 1\n", "import pytest\npytest.skip(allow_module_level=True)\n"]
)
def test_a_slow_test_file_in_which_nothing_runs(repository, text):
    repository.write(SLOW, text)
    red(repository, f"0020-patch: expected tests that pass in {SLOW}, found none")


def test_a_test_file_that_no_patch_names(repository):
    repository.write("tests/patches/test_0020_more.py", "def test(): pass\n")
    red(repository, "found a difference in tests/patches/test_0020_more.py")


def test_a_test_file_of_an_unknown_patch(repository):
    repository.write("tests/patches/test_0050_more.py", "def test(): pass\n")
    red(repository, "found test_0050_more.py")


def test_a_trailer_that_names_no_test(make):
    red(make(trailers=TRAILERS | {"0030": "none"}), "0030-patch: expected Test: to name all of")


def test_edited_files(repository):
    path = repository.root / "sglang/9.9.1/python/sglang/core.py"
    path.write_text("LEVEL = 7\n")
    red(repository, "0010-patch: expected apply to succeed")
    assert path.read_text() == "LEVEL = 7\n"


def test_an_unknown_release_and_one_without_environment(repository):
    result = repository.per_patch("0.0")
    assert result.returncode == 2
    assert result.stderr == "RELEASE: expected one of 9.9.1, found '0.0'; name one of them\n"
    (repository.root / ".venv").rename(repository.root / "elsewhere")
    result = repository.per_patch()
    assert result.returncode == 2
    assert "expected the environment .venv, found none; run scripts/bootstrap.sh" in result.stderr
