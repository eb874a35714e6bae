# SPDX-License-Identifier: Apache-2.0
"""Share a number of minutes among methods that are measured in the order A B C C B A.

A machine warms up and its clocks drift. Measured there and back, every method has the same mean
place in time, so a steady drift favours none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

Start = Callable[[Any], AbstractContextManager]
Measure = Callable[[Any, Any], None]


class Plan:
    """Measures methods, one engine at a time.

    Attributes:
        order: the method of each block so far.
        mirrored: whether the way back was taken.
    """

    def __init__(
        self,
        methods: Sequence[Any],
        seconds: float,
        start: Start,
        measure: Measure,
        last: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            methods: at least one, hashable.
            seconds: for everything, starts included. One round of each method is measured even
                if they are too few.
            start: gives the engine of a method, for the length of a `with` block.
            measure: measures one round with a method and its engine.
            last: one more method, for one block after the others if a round of it fits; time is
                kept for it.
        """
        self.methods = tuple(methods)
        self.order: list[Any] = []
        self.mirrored = False
        self._last = () if last is None else (last,)
        self._start, self._measure, self._clock = start, measure, clock
        self._end = clock() + seconds
        self._start_seconds: dict[Any, float] = {}
        self._round_seconds: dict[Any, float] = {}
        self._engines = ExitStack()
        self._running: tuple[Any, Any] | None = None

    def run(self) -> None:
        """Measure there, back if there is time for a round of each, and then the last one."""
        back = self.methods[::-1]
        with self._engines:
            for i, method in enumerate(self.methods):
                # The last engine goes on into the way back, so it starts once.
                self._block(method, (*self.methods[i + 1 :], *back[1:]), 2 * len(back) - i)
            self.mirrored = self.fits(*back)
            for i, method in enumerate(back if self.mirrored else ()):
                self._block(method, back[i + 1 :], len(back) - i)
            if self._last and self.fits(*self._last):
                (method,), self._last = self._last, ()
                self._block(method, (), 1)

    def fits(self, *methods: Any) -> bool:
        """Whether there is time for a round of each; for one not met yet, the slowest's."""
        slowest = [max(known.values()) for known in (self._start_seconds, self._round_seconds)]
        need = 0.0
        for method in methods:
            if self._running is None or self._running[0] != method:
                need += self._start_seconds.get(method, slowest[0])
            need += self._round_seconds.get(method, slowest[1])
        return self._clock() + need <= self._end

    def _block(self, method: Any, to_start: Sequence[Any], blocks_left: int) -> None:
        engine = self._engine(method)
        self.order.append(method)
        slowest = max(self._start_seconds.values())
        to_start = (*to_start, *self._last)
        starts = sum(self._start_seconds.get(each, slowest) for each in to_start)
        now = self._clock()
        until = now + (self._end - now - starts) / (blocks_left + len(self._last))
        while True:
            begin = self._clock()
            self._measure(method, engine)
            took = self._clock() - begin
            self._round_seconds[method] = max(took, self._round_seconds.get(method, 0.0))
            if self._clock() + took > until:
                return

    def _engine(self, method: Any) -> Any:
        """The method's engine: the running one if it is its own, else a new one in its place."""
        if self._running is None or self._running[0] != method:
            # To end the engine before it is part of a start.
            begin = self._clock()
            self._running = None
            self._engines.close()
            self._running = method, self._engines.enter_context(self._start(method))
            took = self._clock() - begin
            self._start_seconds[method] = max(took, self._start_seconds.get(method, 0.0))
        return self._running[1]
