# SPDX-License-Identifier: Apache-2.0
"""What `make demo` and `make serve` refuse before they start anything: one line, exit code 2."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from demo import checkout
from demo.failure import UsageError
from demo.ports import free_port, parse_port, require_free_port

SCRIPTS = Path(checkout.__file__).parent


@pytest.fixture
def models(tmp_path) -> Path:
    """A folder with the files of a model pair, none of them a real model."""
    for model in ("target", "draft"):
        (tmp_path / model).mkdir()
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            (tmp_path / model / name).touch()
    prompts = [("sums", "1 + 1 ="), ("chat", "<|user|>Tell me a story.<|assistant|>")]
    prompts = [{"kind": kind, "prompt": prompt} for kind, prompt in prompts]
    (tmp_path / "held_out_prompts.json").write_text(json.dumps(prompts))
    return tmp_path


@pytest.fixture
def busy_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture
def patched(tmp_path) -> Path:
    """A folder for PYTHONPATH with as much of a patched SGLang as is looked at."""
    package = tmp_path / "path" / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "srt" / "server_args.py").write_text("speculative_ddtree_budget = None\n")
    return package.parent


def refusal(script: str, *arguments: str, python_path: Path) -> str:
    """The one line of a command that must end with code 2 and print nothing else."""
    done = subprocess.run(
        [sys.executable, "-S", str(SCRIPTS / script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(python_path)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_busy_port(busy_port, models, patched):
    arguments = ("--port", busy_port, "--models", models)
    line = refusal("serve.py", *arguments, python_path=patched)
    assert line == (
        f"serve: port {busy_port}: expected a free port, found it in use; "
        "pass PORT=... to make serve\n"
    )


@pytest.mark.parametrize("script", ["run.py", "serve.py"])
def test_no_bootstrap(script, models, tmp_path):
    """A Python that has no site-packages, and so no SGLang."""
    line = refusal(script, "--models", models, python_path=tmp_path)
    assert "found none; run scripts/bootstrap.sh" in line


@pytest.mark.parametrize("script", ["run.py", "serve.py"])
def test_an_unpatched_sglang(script, models, patched):
    (patched / "sglang" / "srt" / "server_args.py").write_text("speculative_algorithm = None\n")
    line = refusal(script, "--models", models, python_path=patched)
    assert f"found an unpatched one in {patched / 'sglang'}; run scripts/bootstrap.sh" in line


@pytest.mark.parametrize("script", ["run.py", "serve.py"])
@pytest.mark.parametrize(
    "missing", ["target/config.json", "draft/model.safetensors", "held_out_prompts.json"]
)
def test_missing_models(script, missing, models, patched):
    (models / missing).unlink()
    line = refusal(script, "--models", models, python_path=patched)
    assert f"expected {models / missing}, found no such file; check the models out again" in line


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", "[]", '[{"kind": "x", "prompt": "y"}]'])
def test_unusable_prompts(text, models):
    (models / "held_out_prompts.json").write_text(text)
    with pytest.raises(UsageError, match=r"^models: expected .*held_out_prompts.json to be a JSON"):
        checkout.load_models(models)


@pytest.mark.parametrize(
    ("script", "arguments", "found"),
    [
        ("run.py", ["--tokens", "1"], "--tokens: expected at least 2, found 1"),
        ("run.py", ["--prompts", "0"], "--prompts: expected at least 1, found 0"),
        ("run.py", ["--prompts", "few"], "invalid int value: 'few'"),
        ("run.py", ["now"], "unrecognized arguments: now"),
        ("serve.py", ["--port", "0"], "expected a port number from 1 to 65535, found '0'"),
        ("serve.py", ["--port", "65536"], "found '65536'"),
        ("serve.py", ["--port", "http"], "found 'http'"),
        ("serve.py", ["--port", ""], "found ''"),
        ("serve.py", ["--port=-1"], "found '-1'"),
    ],
)
def test_wrong_arguments(script, arguments, found, patched):
    assert found in refusal(script, *arguments, python_path=patched)


def test_ports():
    assert parse_port("30000") == 30000
    port = free_port()
    require_free_port(port)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        listener.listen()
        with pytest.raises(UsageError, match="found it in use"):
            require_free_port(port)
    require_free_port(port)


def test_each_release_has_its_own_logs(monkeypatch, tmp_path):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr("importlib.metadata.version", {"sglang": "9.9.9"}.get)
    assert checkout.log_path("serve-1") == tmp_path / "build" / "demo" / "9.9.9" / "serve-1.log"
    assert checkout.log_path("serve-1").exists()


def test_prompts_of_each_kind(models):
    found = checkout.load_models(models)
    assert [p.kind for p in found.of_each_kind(4)] == ["sums", "chat"]
    assert found.question() == "Tell me a story."
