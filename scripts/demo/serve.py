# SPDX-License-Identifier: Apache-2.0
"""`make serve`: the DDTREE server of the demo, in the foreground until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path

# This file is run as a script, also by a Python that has not been set up.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo import checkout, client, methods
from demo.failure import OneLineParser, exit_with
from demo.ports import LOOPBACK, parse_port, require_free_port
from demo.server import Server, server_environment
from demo.signals import raise_on_termination
from demo.terminal import Progress


def parse_arguments() -> argparse.Namespace:
    parser = OneLineParser(prog="make serve", description=__doc__)
    parser.add_argument(
        "--port",
        type=parse_port,
        default=os.environ.get("PORT", "30000"),
        help="on 127.0.0.1 (default: PORT of the environment, else 30000)",
    )
    parser.add_argument(
        "--models",
        type=Path,
        default=checkout.MODELS,
        help="folder with target, draft and held_out_prompts.json (default: %(default)s)",
    )
    return parser.parse_args()


def curl_line(port: int, question: str) -> str:
    """A shell command that asks the server a question."""
    body = shlex.quote(json.dumps(client.chat_body(question, max_tokens=160)))
    url = f"http://{LOOPBACK}:{port}/v1/chat/completions"
    return f"curl -s {url} -H 'Content-Type: application/json' -d {body}"


def serve(arguments: argparse.Namespace, models: checkout.Models, temporary: Path) -> None:
    """Run the server until it is interrupted.

    Raises:
        Failure: it ended by itself.
        KeyboardInterrupt, SystemExit: this command was told to end.
    """
    port = arguments.port
    log = checkout.log_path(f"serve-{port}")
    command = methods.launch_command(methods.DDTREE, models, port)
    with Server(methods.DDTREE, command, port, log, server_environment(temporary)) as server:
        progress = Progress(f"Starting the server: {server.name}")
        server.wait_until_healthy(progress)
        version = client.server_version(port)
        progress.done(f"SGLang {version} is ready after {progress.seconds:.0f} s; log: {log}")
        print(f"\nAsk it something:\n\n{curl_line(port, models.question())}\n")
        print("Ctrl-C stops it.", flush=True)
        server.wait()
        server.fail("found that it ended")


def main() -> int:
    raise_on_termination()
    sys.stdout.reconfigure(errors="replace")
    arguments = parse_arguments()
    checkout.require_sglang()
    models = checkout.load_models(arguments.models.resolve())
    require_free_port(arguments.port)
    with tempfile.TemporaryDirectory(prefix="ddtree-serve-") as folder:
        try:
            serve(arguments, models, Path(folder))
        except KeyboardInterrupt:
            print("\nserve: stopped")
    return 0


if __name__ == "__main__":
    exit_with("serve", main)
