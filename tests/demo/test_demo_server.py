# SPDX-License-Identifier: Apache-2.0
"""Starting and ending a server process; a few lines of Python stand in for SGLang."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from demo import client
from demo.failure import Failure
from demo.ports import free_port
from demo.server import Server, server_environment
from demo.terminal import Progress

SCRIPTS = Path(client.__file__).parents[1]

# Answers its health check; has a child that cannot be asked to end; writes down both ids.
FAKE = """
import http.server, json, os, signal, subprocess, sys
port, ids, stubborn = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "stubborn"
wait = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-S", "-c", wait])
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/health"
        self.send_response(200 if known else 400)
        self.end_headers()
        self.wfile.write(b"" if known else b"no\\n such  page")
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
with open(ids + ".new", "w") as file:
    json.dump([os.getpid(), child.pid], file)
os.rename(ids + ".new", ids)
server.serve_forever()
"""


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie that nobody has reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("expected this within 30 s")


def fake_server(tmp_path: Path, how: str = "polite") -> Server:
    port = free_port()
    command = [sys.executable, "-c", FAKE, str(port), str(tmp_path / "ids"), how]
    return Server("Fake", command, port, tmp_path / "log", server_environment(tmp_path))


@pytest.mark.parametrize("how", ["polite", "stubborn"])
def test_nothing_is_left_of_a_stopped_server(tmp_path, how, monkeypatch):
    monkeypatch.setattr("demo.server._STOP_TIMEOUT_S", 0.5)
    with fake_server(tmp_path, how) as server:
        server.wait_until_healthy(Progress("Starting"))
        ids = json.loads((tmp_path / "ids").read_text())
        assert all(map(is_running, ids))
    wait_until(lambda: not any(map(is_running, ids)))
    assert not client.is_healthy(server.port)
    server.stop()


def test_a_server_that_dies_shows_the_end_of_its_log(tmp_path):
    say = "for i in range(40): print('line', i)\nraise SystemExit('no such model')"
    environment = server_environment(tmp_path)
    command = [sys.executable, "-S", "-c", say]
    with Server("Fake", command, free_port(), tmp_path / "log", environment) as server:
        with pytest.raises(
            Failure, match=r"^Fake server: expected it to answer, found that it end"
        ):
            server.wait_until_healthy(Progress("Starting"))
        with pytest.raises(Failure) as failure:
            server.fail("found nothing")
    assert failure.value.details[-1] == "no such model"
    assert len(failure.value.details) == 15
    assert str(tmp_path / "log") in str(failure.value)


@pytest.mark.parametrize(
    ("signum", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_server_ends_with_its_command(tmp_path, signum, code):
    """However the command ends, nothing stays behind."""
    command = f"""
import sys, time
sys.path[:0] = [{str(SCRIPTS)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from demo.failure import exit_with
from demo.signals import raise_on_termination
from test_demo_server import fake_server
def main():
    raise_on_termination()
    with fake_server(Path({str(tmp_path)!r})) as server:
        server.wait()
exit_with("demo", main)
"""
    process = subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "ids").exists)
    ids = json.loads((tmp_path / "ids").read_text())
    process.send_signal(signum)
    errors = process.communicate()[1]
    assert process.returncode == code, errors
    wait_until(lambda: not any(map(is_running, ids)))
    assert "Traceback" not in errors


def test_an_error_status_is_one_line(tmp_path):
    with fake_server(tmp_path) as server:
        server.wait_until_healthy(Progress("Starting"))
        with pytest.raises(
            Failure, match=r"^/server_info: expected status 200, found 400: no such"
        ):
            client.server_version(server.port)
    with pytest.raises(Failure, match=r"^/server_info: expected an answer from the server, found"):
        client.server_version(server.port)


def test_the_environment_of_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "example.org")
    monkeypatch.setenv("PYTHONPATH", "mine")
    environment = server_environment(tmp_path, tmp_path / "trace")
    assert environment["NO_PROXY"] == "example.org,127.0.0.1"
    assert environment["PYTHONPATH"] == f"{tmp_path / 'trace'}:mine"
    assert environment["TMPDIR"] == str(tmp_path)
    assert environment["SGLANG_USE_CPU_ENGINE"] == "1"
