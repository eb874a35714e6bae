# SPDX-License-Identifier: Apache-2.0
"""The process that a container runs first, with small programs in the server's place."""

import os
import signal
import subprocess
import sys
import time

import pytest
from container.supervise import _exit_code

SCRIPTS = os.path.join(os.path.dirname(__file__), "..", "..", "scripts")
SUPERVISE = """
import os, sys
from container.supervise import Supervisor
sys.exit(Supervisor(float(sys.argv[1])).run([sys.executable, "-c", sys.argv[2]], os.environ))
"""
READY = "print(os.getpid(), flush=True)\n"
POLITE = f"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
{READY}
time.sleep(60)
"""
# As SGLang ends: it takes its time, and then kills itself.
LIKE_SGLANG = f"""
import os, signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
{READY}
while not asked:
    time.sleep(0.05)
time.sleep(0.3)
os.kill(os.getpid(), signal.SIGKILL)
"""
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def start():
    started = []

    def _start(program, grace_s=5.0):
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISE, str(grace_s), program],
            env={**os.environ, "PYTHONPATH": SCRIPTS},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield _start
    for process in started:
        process.kill()
        process.communicate()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid):
    deadline = time.monotonic() + 5
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} outlives its supervisor"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("program", [POLITE, LIKE_SGLANG], ids=["polite", "like SGLang"])
def test_told_to_end_is_exit_code_0(start, number, program):
    process = start(program)
    server = int(process.stdout.readline())
    process.send_signal(number)
    assert process.wait(10) == 0
    wait_until_gone(server)


def test_a_server_that_does_not_end_is_killed_with_its_children(start):
    process = start(STUBBORN, grace_s=0.5)
    grandchild = int(process.stdout.readline())
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert 0.4 < time.monotonic() - begun < 5
    wait_until_gone(grandchild)


def test_a_second_signal_does_not_prolong_the_end(start):
    process = start(STUBBORN, grace_s=1.0)
    process.stdout.readline()
    begun = time.monotonic()
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    assert process.wait(10) == 0
    assert time.monotonic() - begun < 4


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 0),
        ("raise SystemExit(2)", 2),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.abort()", 134),
    ],
)
def test_a_server_that_ends_by_itself_gives_its_own_exit_code(start, program, code):
    assert start(program).wait(20) == code


def test_children_of_a_server_that_crashed_are_ended(start):
    program = STUBBORN.replace("time.sleep(60)\n", "os.kill(os.getpid(), 9)\n")
    process = start(program)
    grandchild = int(process.stdout.readline())
    assert process.wait(10) == 137
    wait_until_gone(grandchild)


def test_the_server_can_be_told_to_end_by_every_signal(start):
    """The supervisor's own way with signals must not be inherited as an ignored one."""
    program = "import signal\nprint(*(signal.getsignal(n) for n in (1, 2, 13, 15, 17)), sep='|')"
    out, _ = start(program).communicate(timeout=20)
    kinds = out.strip().split("|")
    assert kinds[0] == kinds[3] == kinds[4] == str(signal.SIG_DFL)
    assert "default_int_handler" in kinds[1]


def test_exit_codes_of_wait_statuses():
    assert _exit_code(0) == 0
    assert _exit_code(3 << 8) == 3
    assert _exit_code(15) == 143
