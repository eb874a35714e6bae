# SPDX-License-Identifier: Apache-2.0
"""Addresses that nothing can listen on."""

import socket

import pytest
from container.network import require_free, require_port
from container.refusal import Refusal


@pytest.mark.parametrize("text", ["1", "30000", "65535"])
def test_ports(text):
    require_port({"port": text})


@pytest.mark.parametrize("text", ["0", "65536", "99999", "-1", "http", "", None, "8000.0"])
def test_what_is_no_port(text):
    with pytest.raises(Refusal, match="^--port: expected a number from 1 to 65535, found"):
        require_port({"port": text})


def test_a_port_that_is_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        flags = {"host": "127.0.0.1", "port": str(taken.getsockname()[1])}
        with pytest.raises(Refusal, match=r"--port \d+: .* found: Address already in use; choose"):
            require_free(flags)
    require_free(flags)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_a_host_that_is_not_this_one(host):
    with pytest.raises(Refusal, match=f"^--host {host} --port 5: expected to listen there"):
        require_free({"host": host, "port": "5"})
