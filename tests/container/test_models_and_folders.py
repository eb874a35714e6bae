# SPDX-License-Identifier: Apache-2.0
"""Models that are not in the container, and folders that it cannot write."""

import os

import pytest
from container import folders
from container.folders import settle_home, temporary
from container.health import remember
from container.models import require_models
from container.refusal import Refusal


def flags(target, draft="z-lab/drafter"):
    return {
        "model-path": target,
        "speculative-draft-model-path": draft,
        "speculative-algorithm": "DDTREE",
    }


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").touch()
    return folder


def test_a_folder_and_a_hub_id_pass(model):
    require_models(flags(str(model)))
    require_models(flags("Qwen/Qwen3-8B", str(model)))


def test_a_file_and_an_address_pass(model):
    (model / "model.gguf").touch()
    require_models(flags(str(model / "model.gguf"), "s3://bucket/folder/drafter"))


@pytest.mark.parametrize("path", ["/models/absent", "./absent", "~/absent", "models/absent/target"])
@pytest.mark.parametrize("which", ["model-path", "speculative-draft-model-path"])
def test_a_path_that_is_not_in_the_container(model, path, which):
    given = flags(str(model), str(model)) | {which: path}
    with pytest.raises(Refusal) as info:
        require_models(given)
    assert str(info.value).startswith(f"--{which} {path}: expected a folder in the container")
    assert f"-v /path/on/the/host:{path}:ro" in str(info.value)


def test_an_empty_folder_as_docker_makes_it_for_a_path_that_the_host_lacks(tmp_path):
    with pytest.raises(Refusal, match=r"expected a config\.json in .* found none; mount"):
        require_models(flags(str(tmp_path)))


def test_a_snapshot_whose_files_are_links_out_of_the_mount(tmp_path):
    (tmp_path / "config.json").symlink_to("../../blobs/0123")
    with pytest.raises(Refusal, match="found a link that leads out of the mounted folder"):
        require_models(flags(str(tmp_path)))


@pytest.fixture
def read_only(monkeypatch):
    """Makes a set of folders unwritable; by mode would not stop the root of a test run."""
    closed = set()
    access = folders.os.access
    monkeypatch.setattr(
        folders.os,
        "access",
        lambda path, mode: not (path in closed and mode & os.W_OK) and access(path, mode),
    )
    return closed


def test_a_home_that_can_be_written_is_left_alone(tmp_path):
    environ = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    assert settle_home(environ) is None
    assert environ["HOME"] == str(tmp_path)


def test_a_home_that_cannot_be_written_moves(tmp_path, read_only):
    home = tmp_path / "home"
    home.mkdir()
    read_only.add(home)
    environ = {"HOME": str(home), "TMPDIR": str(tmp_path)}
    (tmp_path / "tmp").mkdir()
    environ["TMPDIR"] = str(tmp_path / "tmp")
    assert settle_home(environ).startswith(f"HOME {tmp_path}/tmp/home: {home} cannot be written")
    assert environ["HOME"] == str(tmp_path / "tmp" / "home")
    assert (tmp_path / "tmp" / "home").is_dir()
    assert "HF_HOME" not in environ


@pytest.mark.parametrize("writable", [True, False])
def test_a_mounted_cache_of_models_stays_in_use(tmp_path, read_only, writable):
    home = tmp_path / "home"
    cache = home / ".cache" / "huggingface"
    (cache / "hub").mkdir(parents=True)
    read_only.update({home} if writable else {home, cache})
    (tmp_path / "tmp").mkdir()
    environ = {"HOME": str(home), "TMPDIR": str(tmp_path / "tmp")}
    settle_home(environ)
    assert environ["HF_HOME"] == str(cache)


def test_no_temporary_folder_is_refused(tmp_path, read_only):
    read_only.add(tmp_path)
    with pytest.raises(Refusal, match=f"^temporary folder: .*; add --tmpfs {tmp_path}:exec$"):
        temporary({"TMPDIR": str(tmp_path)})


def test_a_mounted_cache_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    cache = tmp_path / ".cache" / "huggingface"
    cache.mkdir(parents=True)
    monkeypatch.setattr(folders.os, "access", lambda path, mode: path != cache)
    with pytest.raises(
        Refusal, match=f"^{cache}: expected a cache that user .* can read, .*--user"
    ):
        settle_home({"HOME": str(tmp_path), "TMPDIR": str(tmp_path)})


def test_a_temporary_folder_that_was_used_otherwise(tmp_path, monkeypatch, read_only):
    (tmp_path / "home").touch()
    home = tmp_path / "unwritable"
    home.mkdir()
    read_only.add(home)
    with pytest.raises(Refusal, match="^HOME: expected to make .*/home, found: File exists; "):
        settle_home({"HOME": str(home), "TMPDIR": str(tmp_path)})
    (tmp_path / "sglang-ddtree-health.json").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(Refusal, match=r"health\.json: expected to write .*: Is a directory; "):
        remember({"port": "1"})
