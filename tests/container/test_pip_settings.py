# SPDX-License-Identifier: Apache-2.0
"""How ci/container.sh lets pip in a build see what pip on this machine sees."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "ci" / "container" / "pip_settings.py"


@pytest.fixture(scope="module")
def pip_settings():
    spec = importlib.util.spec_from_file_location("pip_settings", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_environment_wins_over_files(pip_settings):
    listing = ":env:.find-links='/b'\nglobal.find-links='/a'\nglobal.index-url='https://i/simple'\n"
    assert pip_settings.settings(listing) == {
        "find-links": "/b",
        "index-url": "https://i/simple",
    }


def test_a_setting_of_several_lines(pip_settings):
    """pip prints the line break of a list as a backslash and an n."""
    listing = "global.extra-index-url='\\nhttps://a\\nhttps://b'\n"
    assert pip_settings.settings(listing)["extra-index-url"].split() == ["https://a", "https://b"]


@pytest.mark.parametrize("name", ["constraint", "target", "no-binary", "user", "require-hashes"])
def test_what_would_change_the_result_stays_here(pip_settings, name):
    assert pip_settings.settings(f"global.{name}='x'\n") == {}


def test_local_paths_are_those_that_exist(pip_settings, tmp_path):
    (tmp_path / "wheel house").mkdir()
    (tmp_path / "ca.pem").touch()
    found = {
        "find-links": f"file://{tmp_path}/wheel%20house {tmp_path}/absent",
        "cert": f"{tmp_path}/ca.pem",
        "index-url": "https://i/simple",
        "proxy": str(tmp_path),
    }
    assert pip_settings.local_paths(found) == [tmp_path / "ca.pem", tmp_path / "wheel house"]


def test_of_a_local_index_the_folder_with_its_files(pip_settings, tmp_path):
    (tmp_path / "pypi" / "simple").mkdir(parents=True)
    url = f"file://{tmp_path}/pypi/simple"
    assert pip_settings.local_paths({"extra-index-url": url}) == [tmp_path / "pypi"]
    assert pip_settings.local_paths({"index-url": "file:///usr"}) == [Path("/usr")]
