# SPDX-License-Identifier: Apache-2.0
"""The process that holds the engine under test.

SGLang ends the process of a failing engine, with all its children. Here that is this process
and not the test run, which then sees a closed pipe. Calls come over the inherited socket whose
file descriptor is the only argument: `(function name, keyword arguments)`, answered by
`("ok", result)` or `("error", exception type name, message)`. The end of the pipe ends the
process and its engine.
"""

import asyncio
import os
import sys
from multiprocessing.connection import Connection


class Host:
    """At most one engine, and what the tests ask of it."""

    def __init__(self) -> None:
        self.engine = None

    def start(self, environment: dict, arguments: dict) -> None:
        """Start an engine, whose processes see the environment variables `environment`."""
        import sglang

        if self.engine is not None:
            raise RuntimeError("expected one engine at a time, found another one running")
        os.environ.update(environment)
        self.engine = sglang.Engine(**arguments)

    def stop(self) -> None:
        """Shut the engine down, if there is one."""
        if self.engine is not None:
            self.engine.shutdown()
            self.engine = None

    def generate(self, arguments: dict):
        """`Engine.generate`."""
        return self.engine.generate(**arguments)

    def run(self, requests: list[dict]) -> list[dict]:
        """Stream several requests at once, see `support.engine.Engine.run`."""
        return self.engine.loop.run_until_complete(self._run_all(requests))

    def rpc(self, method: str, arguments: dict) -> None:
        """Call a method of the scheduler, in its process."""
        self.engine.collective_rpc(method, **arguments)

    def server_info(self) -> dict:
        """What the server says of itself: its arguments among the rest."""
        info = self.engine.get_server_info()
        names = ("version", "speculative_algorithm", "speculative_ddtree_budget")
        return {name: info[name] for name in names}

    def flush_cache(self) -> bool:
        """Drop the radix cache; False if a request is still running."""
        # An answer arrives a moment before the scheduler is idle; without a time, it refuses.
        flush = self.engine.tokenizer_manager.flush_cache(timeout_s=10.0)
        return self.engine.loop.run_until_complete(flush).success

    async def _run_all(self, requests: list[dict]) -> list[dict]:
        # Notified whenever a request has streamed something.
        progress = asyncio.Condition()
        streamed = [0] * len(requests)
        tasks = [self._run_one(i, r, streamed, progress) for i, r in enumerate(requests)]
        return await asyncio.gather(*tasks)

    async def _run_one(
        self, index: int, request: dict, streamed: list[int], progress: asyncio.Condition
    ) -> dict:
        if request["after"] is not None:
            other, tokens = request["after"]
            async with progress:
                await progress.wait_for(lambda: streamed[other] >= tokens)
        stream = await self.engine.async_generate(
            input_ids=request["input_ids"],
            sampling_params=request["sampling_params"],
            rid=request["rid"],
            stream=True,
        )
        chunks, abort_at = [], request["abort_after"]
        async for output in stream:
            # The engine goes on filling the list that it hands out.
            chunks.append(list(output["output_ids"]))
            async with progress:
                streamed[index] = len(chunks[-1])
                progress.notify_all()
            if abort_at is not None and streamed[index] >= abort_at:
                self.engine.tokenizer_manager.abort_request(request["rid"])
                abort_at = None
        return {**output, "output_ids": chunks[-1], "chunks": chunks}


def main(fd: int) -> None:
    """Serve calls until the pipe ends."""
    # The engine's processes must not hold the pipe open.
    os.set_inheritable(fd, False)
    connection, host = Connection(fd), Host()
    try:
        while True:
            try:
                name, arguments = connection.recv()
            except EOFError:
                return
            try:
                answer = ("ok", getattr(host, name)(**arguments))
            except Exception as error:
                answer = ("error", type(error).__name__, str(error))
            connection.send(answer)
    finally:
        host.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
