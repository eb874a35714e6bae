# SPDX-License-Identifier: Apache-2.0
"""Dockerfile and its scripts, as far as they can be judged without building an image."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from patchset.series import load

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
INSTALL = ROOT / "scripts" / "container" / "install.sh"
SYSTEM = ROOT / "scripts" / "container" / "system.sh"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


RELEASES = run(ROOT / "scripts" / "releases.sh").stdout.split()


def test_the_default_image_is_for_cuda_12_8():
    defaults = re.findall(r"^ARG (\w+)=(.*)$", DOCKERFILE, re.M)
    assert {value for name, value in defaults if name == "BASE_IMAGE"} == {
        "nvidia/cuda:12.8.1-devel-ubuntu24.04"
    }
    assert {value for name, value in defaults if name == "PROFILE"} == {"cu128"}


def test_the_default_release_is_that_of_upstream_toml():
    default = run(ROOT / "scripts" / "releases.sh", "default").stdout.strip()
    assert set(re.findall(r"^ARG RELEASE=(.*)$", DOCKERFILE, re.M)) == {default}


def test_every_stage_is_made_of_the_one_base():
    assert {line.split()[1] for line in re.findall(r"^FROM .*$", DOCKERFILE, re.M)} == {
        "${BASE_IMAGE}"
    }


def test_the_file_is_one_that_buildah_1_28_builds():
    assert "<<" not in DOCKERFILE, "a heredoc"
    assert "--link" not in DOCKERFILE
    assert "--mount" not in DOCKERFILE


def test_nothing_is_fetched_but_by_the_scripts():
    assert not re.findall(r"^ADD|\b(curl|wget|pip install|apt-get)\b", DOCKERFILE, re.M)


def test_every_source_of_a_copy_is_in_the_context():
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line[0] == "!"}
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M):
        for source in sources.split():
            assert (ROOT / source).exists()
            assert any(source == path or source.startswith(f"{path}/") for path in allowed), source


@pytest.mark.parametrize("release", RELEASES)
def test_the_series_is_named_alike_everywhere(release):
    expected = load(ROOT / "patches" / release).id
    command = "cd scripts && python3 -m container.series_id "
    assert run("bash", "-c", f"cd {ROOT}; {command}{release}").stdout.strip() == expected
    if (ROOT / "sglang" / release).is_dir():
        tool = ROOT / "scripts" / "apply_patches.sh"
        status = run(tool, "--release", release, "--status", "--json").stdout
        assert json.loads(status)["series"] == expected


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ((INSTALL, "packages", "cu130", "0.5.11"), "install: PROFILE: expected cu128 or cpu, "),
        ((INSTALL, "series", "cpu", "0.4"), "install: RELEASE: expected one that requirements/ "),
        ((INSTALL, "series", "cpu", "0.5.11", "000000000000"), "install: SERIES_ID: expected "),
        ((INSTALL, "both", "cpu", "0.5.11"), "install: expected packages or series, found 'both'"),
        ((SYSTEM, "build", "cu130"), "system.sh: expected build or serve, and cu128 or cpu, "),
    ],
)
def test_a_wrong_build_argument_ends_the_build_with_a_line(command, line):
    done = run(*command)
    assert done.returncode == 2
    assert done.stderr.startswith(line) and done.stderr.count("\n") == 1
