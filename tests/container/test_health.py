# SPDX-License-Identifier: Apache-2.0
"""The image's health check, against a server that is made up here."""

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from container.health import address, remember

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def serve():
    """Starts a server on a free port that answers every request with one status."""
    servers = []

    def _serve(status):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status if self.path == "/health" else 404)
                self.end_headers()

            def log_message(self, *args):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_port

    yield _serve
    for server in servers:
        server.shutdown()
        server.server_close()


def check():
    command = [sys.executable, "-m", "container.healthcheck"]
    environ = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", None])
def test_a_healthy_server(serve, host):
    remember({"host": host, "port": str(serve(200))})
    done = check()
    assert (done.returncode, done.stdout) == (0, "healthy\n")


def test_a_server_that_is_not_ready(serve):
    remember({"host": "0.0.0.0", "port": str(serve(503))})
    done = check()
    assert (done.returncode, done.stdout) == (1, "health: expected status 200, found status 503\n")


def test_no_server(serve):
    remember({"host": "0.0.0.0", "port": "9"})
    done = check()
    assert done.returncode == 1
    assert done.stdout.startswith("health: expected status 200, found ConnectionRefusedError")


def test_a_server_with_a_certificate_is_asked_by_https():
    remember({"host": "::", "port": "8443", "ssl-certfile": "/c.pem"})
    assert address() == ("https", "::1", 8443)


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_without_a_note_it_is_the_image_s_own_port(temporary, text):
    if text is not None:
        (temporary / "sglang-ddtree-health.json").write_text(text)
    assert address() == ("http", "127.0.0.1", 30000)
