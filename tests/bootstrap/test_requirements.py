# SPDX-License-Identifier: Apache-2.0
"""The requirement files of all releases fit each other, as far as that can be seen offline."""

import re
import subprocess

import pytest
from checkout import REPOSITORY

RELEASES = subprocess.run(
    [REPOSITORY / "scripts" / "releases.sh"], capture_output=True, text=True, check=True
).stdout.split()
FOLDER = REPOSITORY / "requirements"


def pins(name: str) -> dict[str, set[str]]:
    """Versions by package; a package may have one for each Python."""
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^(\S+?)={2,3}(\S+)", (FOLDER / name).read_text(), re.M):
        found.setdefault(package, set()).add(version)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_has_its_pins(release):
    torch = re.search(r"^torch==(\S+)", (FOLDER / f"cpu-{release}.in").read_text(), re.M)[1]
    assert pins(f"torch-cpu-{torch}.txt") == {"torch": {f"{torch}+cpu"}}
    assert pins(f"torch-cuda-{torch}.txt")["torch"] == {torch}
    assert "torch" not in pins(f"cpu-{release}.txt")


@pytest.mark.parametrize("release", RELEASES)
def test_the_tools_move_no_package_of_a_release(release):
    assert pins("dev.txt").keys() & pins(f"cpu-{release}.txt").keys() == set()


def test_no_file_belongs_to_a_release_that_is_gone():
    named = {path.name.removeprefix("cpu-").rsplit(".", 1)[0] for path in FOLDER.glob("cpu-*")}
    assert named == set(RELEASES)
