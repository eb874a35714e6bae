# SPDX-License-Identifier: Apache-2.0
"""What a container finds out about its cards, from a driver that is made up here."""

import ctypes
import json
import subprocess
from dataclasses import asdict

import pytest
from container.gpu import Card, Found, ask_driver, has_code, look, require_cards
from container.refusal import Refusal

B200 = Card("NVIDIA B200", (10, 0), 178 * 2**30)
PRO_6000 = Card("NVIDIA RTX PRO 6000", (12, 0), 95 * 2**30)

OLD = Card("NVIDIA V100", (7, 0), 32 * 2**30)


class Driver:
    """The calls of libcuda that are used, with C's way to return values."""

    def __init__(self, cards=(), init=0):
        self.cards, self.init = cards, init

    def cuInit(self, flags):
        return self.init

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.cards)
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index + 100  # a handle is not an index
        return 0

    def cuDeviceGetName(self, buffer, size, device):
        assert size == ctypes.sizeof(buffer)
        buffer.value = self.cards[device.value - 100].name.encode()
        return 0

    def cuDeviceTotalMem_v2(self, size, device):
        size._obj.value = self.cards[device.value - 100].bytes
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = self.cards[device.value - 100].capability[{75: 0, 76: 1}[attribute]]
        return 0


def test_every_card_is_listed_in_the_order_of_the_driver():
    assert ask_driver(lambda name: Driver((PRO_6000, B200))) == Found((PRO_6000, B200))


def no_library(name):
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (no_library, "no NVIDIA driver (libcuda.so.1)"),
        (lambda name: Driver(init=100), "an NVIDIA driver that shows no card"),
        (lambda name: Driver(), "an NVIDIA driver that shows no card"),
        (lambda name: Driver(init=803), "an NVIDIA driver that fails with CUDA error 803"),
    ],
)
def test_why_there_is_no_card(load, problem):
    found = ask_driver(load)
    assert found == Found((), problem)
    with pytest.raises(Refusal, match="^GPU: expected one, found .*; start .* --gpus all") as info:
        require_cards(found, 1)
    assert problem in str(info.value)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({"stdout": json.dumps(asdict(Found((B200, PRO_6000))))}, Found((B200, PRO_6000))),
        ({"stdout": json.dumps(asdict(Found((), "none")))}, Found((), "none")),
        (
            {"stderr": "what came before\nlast words\n", "returncode": -11},
            Found((), "an NVIDIA driver that fails: last words"),
        ),
        (
            {"stdout": "", "returncode": -11},
            Found((), "an NVIDIA driver that fails: exit code -11"),
        ),
    ],
)
def test_the_answer_of_the_process_that_asks(monkeypatch, answer, found):
    done = {"args": (), "returncode": 0, "stdout": "", "stderr": ""} | answer
    monkeypatch.setattr(subprocess, "run", lambda *_, **how: subprocess.CompletedProcess(**done))
    assert look() == found


def test_a_driver_that_does_not_answer(monkeypatch):
    def run(command, timeout, **how):
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)
    assert look() == Found((), "an NVIDIA driver that does not answer within 60 s")


def test_the_process_that_asks_answers_on_this_machine():
    """Whatever the machine has, the answer is one that `require_cards` understands."""
    found = look()
    assert bool(found.cards) != bool(found.problem)
    assert all(len(card.capability) == 2 for card in found.cards)


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_cards_that_the_locked_kernels_run_on(capability):
    card = Card("card", capability, 2**30)
    assert has_code(capability)
    assert require_cards(Found((card, OLD)), 1) == (card,)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5), (10, 3), (11, 0), (12, 1), (13, 0)])
def test_cards_without_kernels_are_refused(capability):
    """Code for sm_100a and sm_120a runs on no other version, not even on 10.3 or 12.1."""
    with pytest.raises(Refusal, match=rf"^GPU: expected .* found card, .* {capability[0]}\."):
        require_cards(Found((Card("card", capability, 2**30),)), 1)


def test_every_card_of_a_rank_is_looked_at_and_no_other():
    assert require_cards(Found((B200, PRO_6000, OLD)), 2) == (B200, PRO_6000)
    with pytest.raises(Refusal, match="^GPU: expected .* found NVIDIA V100"):
        require_cards(Found((B200, PRO_6000, OLD)), 3)
    with pytest.raises(Refusal, match="^GPU: expected 4 for --tp-size 4, found 3; "):
        require_cards(Found((B200, B200, B200)), 4)
