# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/gpu_check.sh."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from demo.checkout import MODELS, ROOT, require_sglang
from demo.failure import OneLineParser, UsageError, exit_with
from demo.methods import BUDGET
from demo.signals import ending_signals_ignored, raise_on_termination

from .answers import NEAR_TIE
from .checks import CHECKS, Check
from .context import Context
from .engine import Bench
from .machine import Machine, examine
from .markdown import counts_in_words
from .report import Report
from .run import run_all
from .series import in_words
from .served import Pair
from .states import count, exit_code

_DESCRIPTION = """\
Check on this machine what CI, which has no GPU, cannot: DDTREE against no speculation, CUDA graphs
against eager, triton against FlashInfer, tensor parallel, sgl_kernel's sampled walk, and speed.
Writes gpu-check.json and gpu-check.md, to be attached to a report. Without a GPU it checks what a
CPU can, and lists the rest as not run.
"""
_EPILOG = """\
  --python PATH, --release R    of the launcher: which Python runs this, or which release's .venv
  -- FLAG ...                   further flags for every SGLang server, e.g. -- --trust-remote-code

exit codes: 0 all checks that ran passed; 1 one failed; 2 wrong usage, or this Python cannot serve;
3 none could be run; 130 interrupted. The report is written in all of these but 2.
"""


def _number(kind: type, least: float, what: str):
    def parse(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"expected {what}, found {text!r}")
        return value

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="gpu_check.sh",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    names = [check.name for check in CHECKS]
    integer, positive = "a whole number of at least", "a number above 0"
    add = parser.add_argument
    add("--model-path", metavar="M", help="the target (default: the tiny one that ships here)")
    add("--draft-model-path", metavar="M", help="its DFlash drafter (default: the tiny one)")
    add("--budget", type=_number(int, 1, f"{integer} 1"), default=BUDGET, metavar="N",
        help="nodes of a draft tree (default: %(default)s)")  # fmt: skip
    add("--output", type=Path, default=ROOT / "build" / "gpu-check", metavar="DIR",
        help="where the report and the logs go (default: build/gpu-check)")  # fmt: skip
    add("--tp", type=_number(int, 2, f"{integer} 2"), metavar="N",
        help="ranks of the check of tensor parallelism (default: 2)")  # fmt: skip
    add("--minutes", type=_number(float, 1e-9, positive), default=10.0, metavar="M",
        help="of the speed comparison, all methods together (default: 10)")  # fmt: skip
    add("--only", nargs="+", choices=names, metavar="NAME", help="run these checks only")
    add("--list", action="store_true", help="name the checks and end")
    # sgl-kernel 0.4.1 has an RMSNorm for 16 bits only.
    add("--dtype", choices=list(NEAR_TIE), default="bfloat16",
        help="of the comparisons of text on a GPU (default: bfloat16). Near ties are excused, but "
        "in float32, which needs kernels that SGLang may not have. Speed is measured in the "
        "model's own")  # fmt: skip
    add("--device", choices=("auto", "cuda", "cpu"), default="auto",
        help="auto: the GPU if there is one")  # fmt: skip
    add("--new-tokens", type=_number(int, 2, f"{integer} 2"), metavar="N",
        help="of each text that is compared (default: 128 on a GPU, 48 on a CPU)")  # fmt: skip
    add("--start-timeout", type=_number(float, 1e-9, positive), default=1800.0, metavar="S",
        help="seconds for an engine to start, with downloads (default: 1800)")  # fmt: skip
    add("--answer-timeout", type=_number(float, 1e-9, positive), default=600.0, metavar="S",
        help="seconds for a batch to be answered (default: 600)")  # fmt: skip
    return parser


def _model(flag: str, path: str) -> str:
    """A model's folder, or an owner/name that SGLang downloads.

    Raises:
        UsageError: it is neither.
    """
    folder = Path(path).expanduser()
    if (folder / "config.json").is_file():
        return str(folder)
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", path) and not folder.exists():
        return path
    raise UsageError(
        f"{flag}: expected a folder with config.json or owner/name, found {path}; check the path"
    )


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """The options, and the flags for the servers.

    Raises:
        UsageError: one line.
    """
    arguments = list(arguments)
    extra: list[str] = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, extra = arguments[:at], arguments[at + 1 :]
    options = _parser().parse_args(arguments)
    if (options.model_path is None) != (options.draft_model_path is None):
        raise UsageError(
            "--model-path and --draft-model-path: expected both or neither, found one; "
            "a drafter is trained for one target"
        )
    options.model_path = _model("--model-path", options.model_path or str(MODELS / "target"))
    draft = options.draft_model_path or str(MODELS / "draft")
    options.draft_model_path = _model("--draft-model-path", draft)
    return options, tuple(extra)


def selected(only: Sequence[str] | None) -> list[Check]:
    """The checks to run, in their own order."""
    return [check for check in CHECKS if only is None or check.name in only]


def make_context(options: argparse.Namespace, extra: tuple[str, ...], machine: Machine) -> Context:
    pair = Pair(options.model_path, options.draft_model_path, options.budget)
    bench = Bench(
        machine,
        pair,
        options.output / "logs",
        options.start_timeout,
        options.answer_timeout,
        extra,
    )
    new_tokens = options.new_tokens or (128 if machine.on_gpu else 48)
    dtype = options.dtype if machine.on_gpu else "float32"
    return Context(bench, dtype, options.tp, options.minutes, new_tokens)


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"--output: expected to be able to write {folder}, found: {error.strerror}; "
            "name another folder"
        ) from None


def run(arguments: Sequence[str]) -> int:
    """Parse, examine the machine, run, report. Returns the exit code."""
    options, extra = parse(arguments)
    if options.list:
        for check in CHECKS:
            print(f"{check.name:<16} {check.title}")
        return 0
    require_sglang()
    _require_writable(options.output)
    checks = selected(options.only)
    machine = examine(options.device)
    why = f" ({machine.no_cuda})" if machine.no_cuda else f" ({machine.cards[0]})"
    print(f"engines run on: {machine.device}{why}", flush=True)
    print(f"series: {in_words(machine.series)}", flush=True)
    shown = {k: v for k, v in vars(options).items() if v is not None and k != "list"}
    report = Report(
        options.output,
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        machine.as_json(),
        machine.series,
        {k: v if isinstance(v, (int, float)) else _text(v) for k, v in shown.items()}
        | {"server_flags": shlex.join(extra)},
        {check.name: check.title for check in checks},
    )
    context = make_context(options, extra, machine)
    try:
        run_all(checks, context, report)
    finally:
        with ending_signals_ignored():
            print(f"\n{counts_in_words(count(report.outcomes))}")
            print(f"report: {options.output}/gpu-check.md and gpu-check.json", flush=True)
    return exit_code(report.outcomes)


def _text(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def main() -> None:
    raise_on_termination()
    sys.stdout.reconfigure(errors="replace")
    exit_with("gpu_check.sh", lambda: run(sys.argv[1:]))
