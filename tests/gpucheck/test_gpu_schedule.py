# SPDX-License-Identifier: Apache-2.0
"""Methods take turns within the time that there is; a clock of its own, no engine."""

from contextlib import contextmanager

import pytest
from gpucheck.schedule import Plan


class Simulated:
    """Starts take `start` seconds and rounds `round_s`; counts both."""

    def __init__(self, seconds: float, last: str | None = None) -> None:
        self.now, self.start_s, self.round_s = 1000.0, 30.0, 10.0
        self.starts, self.rounds, self.running = [], [], set()
        clock = lambda: self.now  # noqa: E731
        self.plan = Plan("ABC", seconds, self.start, self.measure, last, clock)

    @contextmanager
    def start(self, method):
        assert not self.running, "one engine at a time"
        self.running.add(method)
        self.now += self.start_s
        self.starts.append(method)
        yield method
        self.running.discard(method)

    def measure(self, method, engine):
        assert method == engine and self.running == {method}
        self.now += self.round_s
        self.rounds.append((method, self.now))

    @property
    def took(self) -> float:
        return self.now - 1000.0


def test_there_and_back_with_five_starts():
    simulated = Simulated(600)
    simulated.plan.run()
    assert simulated.plan.order == list("ABCCBA")
    assert simulated.starts == list("ABCBA")
    assert simulated.plan.mirrored and not simulated.running


def test_the_time_is_kept_and_used():
    simulated = Simulated(600)
    simulated.plan.run()
    assert 600 - 6 * 10 - 1 <= simulated.took <= 600
    rounds = [method for method, _ in simulated.rounds]
    assert max(map(rounds.count, "ABC")) - min(map(rounds.count, "ABC")) <= 2


def test_a_steady_drift_favours_nobody():
    simulated = Simulated(600)
    simulated.plan.run()
    middle = {
        method: sum(t for m, t in simulated.rounds if m == method)
        / sum(m == method for m, _ in simulated.rounds)
        for method in "ABC"
    }
    assert max(middle.values()) - min(middle.values()) < 0.15 * 600


def test_too_little_time_measures_each_once():
    simulated = Simulated(1, last="D")
    simulated.plan.run()
    assert simulated.plan.order == [m for m, _ in simulated.rounds] == list("ABC")
    assert not simulated.plan.mirrored


@pytest.mark.parametrize(
    ("seconds", "order"), [(229, "ABCCBA"), (260, "ABCCBAD"), (900, "ABCCBAD")]
)
def test_one_more_method_if_it_fits(seconds, order):
    """Five starts and six rounds are 210 s, one more of both 40 s; time is kept for it."""
    simulated = Simulated(seconds, last="D")
    simulated.plan.run()
    assert "".join(simulated.plan.order) == order
    assert simulated.took <= seconds
    assert not simulated.running


def test_an_engine_that_fails_is_left_in_order():
    simulated = Simulated(600)

    def fail(method, engine):
        raise RuntimeError(method)

    simulated.plan._measure = fail
    with pytest.raises(RuntimeError):
        simulated.plan.run()
    assert simulated.starts == ["A"]
