# SPDX-License-Identifier: Apache-2.0
"""`make demo`: an answer from a DDTREE server, a comparison of three methods, and a draft tree."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

# This file is run as a script, also by a Python that has not been set up.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from demo import chain, checkout, client, methods, sampled, table, terminal
from demo.draft_tree import DraftTree, most_telling, read_trace
from demo.failure import OneLineParser, UsageError, exit_with
from demo.ports import free_port
from demo.server import Server, server_environment
from demo.signals import raise_on_termination
from demo.tree_drawing import draw_tree

TRACER = Path(__file__).resolve().parent / "trace"
CHAT_TOKENS = 160
TREE_NOTE = (
    "log q: the drafter's log-probability of a token; path: the sum from the root, best first."
)


def parse_arguments() -> argparse.Namespace:
    parser = OneLineParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--models",
        type=Path,
        default=checkout.MODELS,
        help="folder with target, draft and held_out_prompts.json (default: %(default)s)",
    )
    parser.add_argument("--prompts", type=int, default=4, help="of each kind (default: 4)")
    parser.add_argument("--tokens", type=int, default=96, help="at most, an answer (default: 96)")
    arguments = parser.parse_args()
    for name, least in (("prompts", 1), ("tokens", 2)):
        value = getattr(arguments, name)
        if value < least:
            raise UsageError(f"--{name}: expected at least {least}, found {value}; pass more")
    return arguments


def heading(text: str) -> None:
    colour = terminal.use_colour(sys.stdout)
    print("\n" + terminal.paint(text, "1", colour) + "\n", flush=True)


def start(method: str, models: checkout.Models, temporary: Path, trace: Path | None) -> Server:
    """A server that was told to start; it is not healthy yet."""
    port = free_port()
    environment = server_environment(temporary, TRACER if trace else None)
    if trace:
        environment["DDTREE_TRACE"] = str(trace)
    log = checkout.log_path(method.lower().replace(" ", "-"))
    return Server(method, methods.launch_command(method, models, port), port, log, environment)


def wait(server: Server) -> None:
    progress = terminal.Progress(f"Starting the server: {server.name}")
    server.wait_until_healthy(progress)
    progress.done(f"ready after {progress.seconds:.0f} s, on 127.0.0.1:{server.port}")


def chat(server: Server, question: str) -> None:
    print(f"    user   {question}")
    answer = terminal.WrappedStream("    model  ")
    for piece in client.stream_chat(server.port, question, CHAT_TOKENS):
        answer.write(piece)
    answer.end()


def measure(
    server: Server, texts: list[str], tokens: int, temperature: float = 0.0
) -> table.Measurement:
    if temperature == 0:
        # What a server does for the first time is slow, and is not what is compared.
        client.generate(server.port, texts[-1:], tokens)
    at = f", temperature {temperature}" if temperature else ""
    progress = terminal.Progress(f"Answering {len(texts)} prompts: {server.name}{at}")
    answers = client.generate(server.port, texts, tokens, temperature)
    seconds = progress.seconds
    progress.done(f"{seconds:.1f} s")
    return table.Measurement(server.name, answers, seconds, server.name != methods.PLAIN)


def measure_all(
    server: Server, texts: list[str], tokens: int
) -> dict[tuple[str, float], table.Measurement]:
    """The prompts at every temperature that the method decodes at, by method and temperature."""
    sampling = () if server.name == methods.DFLASH else sampled.TEMPERATURES
    return {
        (server.name, temperature): measure(server, texts, tokens, temperature)
        for temperature in (0.0, *sampling)
    }


def chain_at_temperatures(
    models: Path, texts: list[str], measured: sampled.Measured
) -> dict[tuple[str, float], table.Measurement]:
    """DFLASH at the temperatures at which it does not decode on a CPU, see `demo.chain`."""
    progress = terminal.Progress("Counting the steps of DFLASH's chain along the sampled text")
    counted = {}
    for temperature in sampled.TEMPERATURES:
        answers = measured[methods.PLAIN, temperature].answers
        with_steps = chain.with_chain_steps(models, texts, answers)
        counted[methods.DFLASH, temperature] = table.Measurement(
            methods.DFLASH, with_steps, progress.seconds, True
        )
    progress.done(f"{progress.seconds:.1f} s")
    return counted


def show_tree(models: checkout.Models, trees: list[DraftTree]) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(models.target / "tokenizer.json"))
    index = most_telling(trees)
    tree = trees[index]
    context = tokenizer.decode(list(tree.context), skip_special_tokens=False)
    print(f"After {context[-50:]!r}, {len(tree.tokens) - 1} tokens were drafted.")
    print(f"The target accepted {tree.drafts_accepted} of them.", end="")
    if tree.chain_accepted < tree.drafts_accepted:
        print(f" DFLASH's chain of first choices would have got {tree.chain_accepted}.", end="")
    print("\n")
    colour = terminal.use_colour(sys.stdout)
    for line in draw_tree(tree, lambda token: tokenizer.decode([token], False), colour):
        print("    " + line)
    print(f"\n    {TREE_NOTE}")


def main() -> int:
    raise_on_termination()
    sys.stdout.reconfigure(errors="replace")
    arguments = parse_arguments()
    checkout.require_sglang()
    models = checkout.load_models(arguments.models.resolve())
    texts = [prompt.text for prompt in models.of_each_kind(arguments.prompts)]
    measured = {}
    with tempfile.TemporaryDirectory(prefix="ddtree-demo-") as folder:
        temporary = Path(folder)
        trace = temporary / "trace.jsonl"
        with start(methods.DDTREE, models, temporary, trace) as server:
            wait(server)
            version = client.server_version(server.port)
            heading(f"SGLang {version} with DDTREE, through the OpenAI-compatible API")
            trace.touch()  # the server writes its trees there from now on
            chat(server, models.question())
            trace = trace.rename(temporary / "chat.jsonl")
            heading("The same prompts through three methods")
            measured |= measure_all(server, texts, arguments.tokens)
        trees = read_trace(trace)
        for method in (methods.DFLASH, methods.PLAIN):
            with start(method, models, temporary, None) as server:
                wait(server)
                measured |= measure_all(server, texts, arguments.tokens)

    measured |= chain_at_temperatures(arguments.models, texts, measured)
    compared = [measured[method, 0.0] for method in methods.METHODS]
    print()
    for line in (*table.render_table(compared[0], compared[1:]), "", *table.NOTE):
        print(f"    {line}".rstrip())
    heading("One step of the chat above")
    show_tree(models, trees)
    heading("Sampled: tokens a step by temperature")
    for line in (*sampled.render_sampled(measured), "", *sampled.NOTE):
        print(f"    {line}".rstrip())
    sampled.require_same_samples(measured)
    print("\n" + table.verdict(*compared))
    return 0


if __name__ == "__main__":
    exit_with("demo", main)
