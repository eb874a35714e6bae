# SPDX-License-Identifier: Apache-2.0
"""From the flags after `docker run IMAGE` to the flags of the server."""

import argparse
import os
import socket

import pytest
from container import entrypoint
from container.entrypoint import grace, prepare
from container.gpu import Card, Found
from container.health import address
from container.refusal import Refusal
from cpu_profile.environment import ENVIRONMENT

PRO_6000 = Card("NVIDIA RTX PRO 6000", (12, 0), 95 * 2**30)
B200 = Card("NVIDIA B200", (10, 0), 178 * 2**30)
H200 = Card("NVIDIA H200", (9, 0), 139 * 2**30)
A100 = Card("NVIDIA A100", (8, 0), 79 * 2**30)
HUB = ["--model-path", "Qwen/Qwen3-8B", "--speculative-draft-model-path", "z-lab/drafter"]


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def environ(temporary, tmp_path):
    """The environment of a container of the CUDA image."""
    return {"DDTREE_PROFILE": "cu128", "TMPDIR": str(temporary), "HOME": str(tmp_path)}


@pytest.fixture
def models(tmp_path):
    for name in ("target", "draft"):
        (tmp_path / "tiny" / name).mkdir(parents=True)
        (tmp_path / "tiny" / name / "config.json").touch()
    return tmp_path / "tiny"


def sees(*cards):
    return lambda: Found(cards, None if cards else "no NVIDIA driver (libcuda.so.1)")


def parsed(arguments):
    """As SGLang's parser reads them: the last of several wins."""
    parser = argparse.ArgumentParser()
    names = {name for name in arguments if name.startswith("--")}
    for name in names - {"--sleep-on-idle", "--enable-deterministic-inference"}:
        parser.add_argument(name)
    for name in ("--sleep-on-idle", "--enable-deterministic-inference"):
        parser.add_argument(name, action="store_true")
    return vars(parser.parse_args(arguments))


@pytest.mark.parametrize("card", [PRO_6000, B200, H200, A100])
def test_a_card_gets_what_the_series_serves_on_it(environ, card, capsys):
    flags = parsed(prepare(HUB, environ, sees(card)))
    assert flags["host"] == "0.0.0.0"
    assert flags["port"] == "30000"
    assert flags["speculative_algorithm"] == "DDTREE"
    assert flags["attention_backend"] == "triton"
    assert flags["sampling_backend"] == "pytorch"
    assert flags["model_path"] == "Qwen/Qwen3-8B"
    assert environ["SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"] == "1"
    assert not environ.keys() & {"SGLANG_USE_CPU_ENGINE", "CUDA_VISIBLE_DEVICES"}
    lines = capsys.readouterr().out.splitlines()
    assert f"ddtree: card: {card}" in lines
    assert any(line.startswith("ddtree: --attention-backend triton: ") for line in lines)
    assert any("SM120" in line for line in lines) == (card is PRO_6000)


@pytest.mark.parametrize("flag", ["--tp-size", "--tensor-parallel-size", "--tp"])
def test_the_choices_are_safe_on_every_card_that_is_taken(environ, flag, capsys):
    prepare([*HUB, flag, "2"], environ, sees(B200, PRO_6000))
    lines = capsys.readouterr().out.splitlines()
    assert {f"ddtree: card: {B200}", f"ddtree: card: {PRO_6000}"} < set(lines)
    assert any("SM120" in line for line in lines)
    with pytest.raises(Refusal, match="^GPU: expected 2 for --tp-size 2, found 1; "):
        prepare([*HUB, flag, "2"], environ, sees(B200))


def test_compiled_kernels_must_be_loadable_on_a_card(environ, models, monkeypatch):
    """Docker mounts --tmpfs noexec, and with --read-only HOME lies there."""
    noexec = os.statvfs_result((0,) * 8 + (os.ST_NOEXEC, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: noexec)
    with pytest.raises(Refusal, match="^HOME: expected to load .* mounted noexec; .*:exec"):
        prepare(HUB, environ, sees(B200))
    environ["DDTREE_PROFILE"] = "cpu"
    prepare([], environ, sees(), models)


@pytest.mark.parametrize(
    "own",
    [
        ["--attention-backend", "flashinfer"],
        ["--sampling-backend=flashinfer"],
        ["--host", "127.0.0.1"],
        ["--port", "8000"],
        ["--speculative-algorithm", "DFLASH"],
    ],
)
def test_a_flag_of_the_user_is_never_overridden(environ, own, capsys):
    flag, value = own if len(own) == 2 else own[0].split("=")
    command = prepare([*HUB, *own], environ, sees(PRO_6000))
    assert command[-len(own) :] == own
    assert flag not in command[: -len(own)], "the image adds the flag a second time"
    assert f"{flag} " not in capsys.readouterr().out, "the image says that it chose the flag"
    assert value == parsed([*HUB, flag, value])[flag[2:].replace("-", "_")]


def test_a_flag_in_a_file_is_not_overridden_either(environ, tmp_path):
    """SGLang lets the command line win over the file, and the image's flags are on it."""
    file = tmp_path / "flags.yml"
    file.write_text("attention-backend: flashinfer\nport: 8000\nmodel-path: owner/name\n")
    command = prepare(
        ["--config", str(file), "--speculative-draft-model-path", "a/b"], environ, sees(B200)
    )
    assert not {"--attention-backend", "--port", "--model-path"} & set(command)
    assert address()[2] == 8000


def test_variables_of_the_user_are_kept(environ):
    environ |= {"SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "0", "NO_PROXY": "a"}
    environ["SGLANG_GRPC_PORT"] = "5"
    prepare(HUB, environ, sees(B200))
    assert environ["SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"] == "0"
    assert environ["SGLANG_GRPC_PORT"] == "5"
    assert environ["NO_PROXY"] == "a,127.0.0.1,localhost"


def test_the_cpu_image_serves_the_tiny_models(environ, models):
    environ["DDTREE_PROFILE"] = "cpu"
    flags = parsed(prepare([], environ, sees(), models))
    assert flags["model_path"] == str(models / "target")
    assert flags["speculative_draft_model_path"] == str(models / "draft")
    assert flags["device"] == "cpu"
    assert flags["attention_backend"] == "torch_native"
    assert flags["enable_deterministic_inference"] and flags["sleep_on_idle"]
    assert environ.items() >= ENVIRONMENT.items()


def test_the_cpu_image_looks_for_no_card(environ, models):
    environ["DDTREE_PROFILE"] = "cpu"

    def look():
        raise AssertionError("looked for a card")

    prepare([], environ, look, models)


def test_the_cpu_image_serves_another_pair_without_the_tiny_pairs_limits(environ):
    environ["DDTREE_PROFILE"] = "cpu"
    flags = parsed(prepare(HUB, environ, sees()))
    assert flags["model_path"] == "Qwen/Qwen3-8B"
    assert not flags.keys() & {"max_total_tokens", "served_model_name"}


def test_a_target_of_ones_own_does_not_get_the_tiny_drafter(environ):
    environ["DDTREE_PROFILE"] = "cpu"
    with pytest.raises(Refusal, match="^--speculative-draft-model-path: expected a DFlash drafter"):
        prepare(["--model", "Qwen/Qwen3-8B"], environ, sees())


def test_no_card_is_refused_before_anything_else(environ):
    with pytest.raises(Refusal, match="^GPU: expected one, found no NVIDIA driver"):
        prepare([], environ, sees())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "--model-path: expected a model, found none; name a folder"),
        (["--model-path", "a/b"], "--speculative-draft-model-path: expected a DFlash drafter"),
        (["--model-path"], "--model-path: expected a model, found none"),
        ([*HUB, "--port", "http"], "--port: expected a number from 1 to 65535, found 'http'"),
        ([*HUB, "--port"], "--port: expected a number"),
        ([*HUB, "--port", "99999"], "--port: expected a number from 1 to 65535, found '99999'"),
        ([*HUB, "--tp-size", "0"], "--tp-size: expected a number of at least 1, found '0'"),
        (["--model-path", "/" + 5000 * "m"], "--model-path /mmm"),
    ],
)
def test_what_is_refused_in_one_line(environ, arguments, line):
    with pytest.raises(Refusal) as info:
        prepare(arguments, environ, sees(B200))
    assert str(info.value).startswith(line)
    assert "\n" not in str(info.value)


def test_an_algorithm_without_a_drafter_needs_none(environ):
    command = prepare(
        ["--model-path", "a/b", "--speculative-algorithm", "NGRAM"], environ, sees(B200)
    )
    assert "--speculative-draft-model-path" not in command


@pytest.mark.parametrize("profile", ["", "cu130"])
def test_an_unknown_profile_is_refused(environ, profile):
    environ["DDTREE_PROFILE"] = profile
    with pytest.raises(Refusal, match=f"^DDTREE_PROFILE: expected cu128 or cpu, found '{profile}'"):
        prepare(HUB, environ, sees(B200))


@pytest.mark.parametrize(("text", "seconds"), [(None, 7.0), ("0", 0.0), ("120", 120.0)])
def test_time_to_finish_requests(text, seconds):
    assert grace({} if text is None else {"DDTREE_STOP_SECONDS": text}) == seconds


@pytest.mark.parametrize("text", ["", "-1", "long", "nan"])
def test_no_time_to_finish_requests(text):
    with pytest.raises(Refusal, match="^DDTREE_STOP_SECONDS: expected 0 to 86400, found"):
        grace({"DDTREE_STOP_SECONDS": text})


def test_a_refusal_is_one_line_and_exit_code_2(environ, monkeypatch, capsys):
    monkeypatch.setattr(entrypoint, "describe", lambda: "SGLang")
    monkeypatch.setenv("DDTREE_PROFILE", "none")
    assert entrypoint.main(["--model-path", "a/b"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("ddtree: DDTREE_PROFILE: expected ") and err.count("\n") == 1


def test_an_empty_argument(capsys):
    """As of `docker run IMAGE "$UNSET"`."""
    assert entrypoint.main([""]) == 2
    assert capsys.readouterr().err.startswith("ddtree: expected flags or a command, found an empty")


@pytest.mark.parametrize(("code", "memory"), [(137, True), (1, False)])
def test_a_server_that_was_killed_may_have_lacked_memory(monkeypatch, capsys, code, memory):
    monkeypatch.setattr(entrypoint.Supervisor, "run", lambda *_: code)
    assert entrypoint.main(["--help"]) == code
    assert ("--memory" in capsys.readouterr().out) == memory


def test_a_port_in_use_is_refused(environ, monkeypatch, capsys):
    monkeypatch.setattr(entrypoint, "describe", lambda: "SGLang")
    for name, value in (environ | {"DDTREE_PROFILE": "cpu"}).items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert entrypoint.main([*HUB, "--host", "127.0.0.1", "--port", port]) == 2
    assert "Address already in use" in capsys.readouterr().err


def test_a_command_that_is_not_there(capsys):
    assert entrypoint.main(["no-such-command"]) == 127
    assert capsys.readouterr().err == "ddtree: no-such-command: No such file or directory\n"
