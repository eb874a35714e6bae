# SPDX-License-Identifier: Apache-2.0
"""Measure the pair's accept lengths on its held-out prompts, without SGLang."""

import argparse
import json
import sys
from pathlib import Path

import torch
from safetensors import SafetensorError

from models.accept_lengths import METHODS, Pair, Walks, measure
from models.recipe import Recipe, make_deterministic

HERE = Path(__file__).resolve().parent


def ratio(numerator: torch.Tensor, denominator: torch.Tensor) -> dict[str, float]:
    """``sum(numerator) / sum(denominator)`` over independent prompts, with its standard error."""
    mean = numerator.sum() / denominator.sum()
    deviations = numerator - mean * denominator
    n = len(numerator)
    error = (n / (n - 1) * deviations.square().sum()).sqrt() / denominator.sum()
    return {"mean": mean.item(), "stderr": error.item()}


def summarise(walks: Walks) -> dict:
    """Accept lengths of all prompts and of each kind, gains over the chain, and confidence.

    Every method emits the same tokens, so its gain is the ratio of the chain's steps to its own.
    """
    groups = {"all": torch.ones(len(walks.kinds), dtype=torch.bool)}
    for kind in dict.fromkeys(walks.kinds):
        groups[kind] = torch.tensor([k == kind for k in walks.kinds])
    top_probability, margin = walks.confidence.unbind(-1)
    return {
        "prompts": len(walks.kinds),
        "tokens": int(walks.tokens.sum()),
        "accept_length": {
            group: {
                method: ratio(walks.tokens[rows], walks.steps[rows, i])
                for i, method in enumerate(METHODS)
            }
            for group, rows in groups.items()
        },
        "steps_of_chain_over_own": {
            method: ratio(walks.steps[:, 0], walks.steps[:, i])
            for i, method in enumerate(METHODS)
            if method != "chain"
        },
        "share_of_tokens": {
            "top probability > 0.9": (top_probability > 0.9).double().mean().item(),
            "top probability < 0.5": (top_probability < 0.5).double().mean().item(),
            "top two logits within 1e-3": (margin < 1e-3).double().mean().item(),
        },
    }


def print_table(temperature: float, result: dict) -> None:
    """The summary of one temperature as an aligned table."""
    print(
        f"\ntemperature {temperature:g}: {result['prompts']} prompts, {result['tokens']} tokens; "
        "tokens a step ± standard error"
    )
    print(f"{'':8}" + "".join(f"{method:>14}" for method in METHODS))
    for name, row in result["accept_length"].items():
        cells = (f"{row[m]['mean']:.2f} ± {row[m]['stderr']:.2f}" for m in METHODS)
        print(f"{name:8}" + "".join(f"{cell:>14}" for cell in cells))
    gains = result["steps_of_chain_over_own"].values()
    cells = (f"{g['mean'] - 1:+.1%} ± {g['stderr']:.1%}" for g in gains)
    print(f"{'gain':8}{'':14}" + "".join(f"{cell:>14}" for cell in cells))
    shares = (f"{name}: {value:.2%}" for name, value in result["share_of_tokens"].items())
    print("share of the target's tokens with " + "; ".join(shares))


def fail(message: str) -> None:
    """Stop with one line on standard error."""
    raise SystemExit(f"models.evaluate: {message}")


def load(path: Path) -> tuple[Pair, list[dict[str, str]]]:
    """The pair at ``path`` and its held-out prompts, or one line about what is wrong with it."""
    for part in ("target", "draft"):
        if not (path / part / "config.json").is_file():
            fail(f"expected {path / part / 'config.json'}, found none; make it with models.train")
    try:
        return Pair.load(path), json.loads((path / "held_out_prompts.json").read_text())
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        fail(f"expected a model pair at {path}, found: {reason}; make one with models.train")


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m models.evaluate", description=__doc__)
    parser.add_argument("--pair", type=Path, default=HERE / "tiny", help="default: %(default)s")
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--new-tokens", type=int, default=128, help="at most, for each prompt")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    args = parser.parse_args(argv)
    if min(args.temperatures) < 0:
        fail(f"expected --temperatures of 0 or more, found {min(args.temperatures)}")
    if args.new_tokens < 2:
        fail(f"expected --new-tokens of 2 or more, found {args.new_tokens}")
    make_deterministic(Recipe(), "evaluation")
    pair, prompts = load(args.pair)
    results = {}
    for temperature in args.temperatures:
        results[f"{temperature:g}"] = summarise(
            measure(pair, prompts, temperature, args.new_tokens)
        )
        print_table(temperature, results[f"{temperature:g}"])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
