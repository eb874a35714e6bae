# SPDX-License-Identifier: Apache-2.0
"""Progress lines with the time that is left."""

import time


class Progress:
    """Prints every ``every`` steps of ``total``: step, a note, seconds so far, seconds to go."""

    def __init__(self, name: str, total: int, every: int) -> None:
        self.name, self.total, self.every = name, total, every
        self.start = time.monotonic()

    def step(self, done: int, note: str = "") -> None:
        """Report that ``done`` steps of ``total`` are finished."""
        if done % self.every and done != self.total:
            return
        spent = time.monotonic() - self.start
        left = spent / done * (self.total - done)
        print(
            f"{self.name} {done}/{self.total} {note} {spent:.0f} s, {left:.0f} s to go", flush=True
        )
