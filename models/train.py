# SPDX-License-Identifier: Apache-2.0
"""Make the tiny model pair: tokenizer, target, drafter and held-out prompts, in one go."""

import argparse
import hashlib
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from models.corpus import held_out_prompts
from models.recipe import Recipe
from models.train_draft import train_draft
from models.train_target import train_target
from models.train_tokenizer import train_tokenizer

HERE = Path(__file__).resolve().parent


def make_pair(recipe: Recipe, out: Path) -> None:
    """Train everything and put it at ``out``, which is replaced only when all has succeeded."""
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".making-") as work:
        made = Path(work) / "tiny"
        tokenizer = train_tokenizer(recipe, made / "target")
        target = train_target(recipe, tokenizer, made / "target")
        train_draft(recipe, tokenizer, target, made / "draft")
        prompts = held_out_prompts(recipe.rng("held-out prompts"), recipe.held_out_prompts_per_kind)
        (made / "held_out_prompts.json").write_text(json.dumps(prompts, indent=1) + "\n")
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)


def print_digests(out: Path) -> None:
    """One ``sha256  file`` line for each file, in the form of sha256sum."""
    for path in sorted(p for p in out.rglob("*") if p.is_file()):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(out), sep="  ")


def fail(message: str) -> None:
    """Stop with one line on standard error."""
    raise SystemExit(f"models.train: {message}")


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m models.train", description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "tiny", help="default: %(default)s")
    parser.add_argument(
        "--shorten",
        type=int,
        default=1,
        metavar="N",
        help="N times fewer steps: a quick, worse pair of the same shape (default: 1)",
    )
    args = parser.parse_args(argv)
    if args.shorten < 1:
        fail(f"expected --shorten of 1 or more, found {args.shorten}; use 1 for all steps")
    if args.out.exists() and not (args.out / "target" / "config.json").is_file():
        fail(f"expected a model pair or nothing at --out {args.out}, found other things; move them")
    # Leave through the clean-up of the working directory when told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        make_pair(Recipe().shortened(args.shorten), args.out)
    except OSError as error:
        fail(f"expected a writable --out {args.out}, found: {error}; free it or choose another")
    print_digests(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
