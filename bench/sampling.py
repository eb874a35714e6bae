# SPDX-License-Identifier: Apache-2.0
"""What does deriving the accepted paths cost at a temperature, in time and peak memory?

Times the derive step of DDTREE (temperature, softmax, filters, walk, bonus) against DFLASH's
chain over the same number of rows, in one run. Peak memory is what the step holds beside the
verify logits that it is given.

On a CPU DFLASH cannot sample (it would answer greedily), so its greedy step is shown there, and
is no match. Run with: python -m bench.sampling [--out FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from cpu_profile.environment import set_environment

if __name__ == "__main__":
    import shutil

    # A machine with a GPU measures that.
    if shutil.which("nvidia-smi") is None:
        set_environment()

import torch

from bench.bars import bar_chart

DEPTH = 7
MIB = 1024.0**2


def sampling_info(bs: int, vocab: int, device: str) -> SimpleNamespace:
    """Temperature 0.8, top-k 50, top-p 0.95 for every request."""
    return SimpleNamespace(
        temperatures=torch.full((bs, 1), 0.8, device=device),
        top_ks=torch.full((bs,), 50, dtype=torch.int32, device=device),
        top_ps=torch.full((bs,), 0.95, device=device),
        min_ps=torch.zeros(bs, device=device),
        need_top_k_sampling=True,
        need_top_p_sampling=True,
        need_min_p_sampling=False,
        is_all_greedy=False,
        sampling_seed=None,
    )


def ddtree_step(bs: int, width: int, vocab: int, device: str) -> Callable[[torch.Tensor], None]:
    """DDTreeVerifyInput's derive step over random trees of `width` nodes."""
    from sglang.srt.speculative import dflash_info
    from sglang.srt.speculative.ddtree_utils import (
        build_ddtree_tree_from_topk,
        compile_ddtree_ancestors,
        compile_ddtree_retrieve,
    )

    draft = torch.log_softmax(2 * torch.randn(bs, DEPTH, vocab, device=device), dim=-1)
    top = draft.topk(width - 1, dim=-1)
    roots = torch.zeros(bs, dtype=torch.int64, device=device)
    tree = build_ddtree_tree_from_topk(top.values, top.indices, roots, width - 1)
    index, next_token, next_sibling = compile_ddtree_retrieve(tree.parents, tree.node_logws, width)
    verify_input = dflash_info.DDTreeVerifyInput(
        draft_token=tree.token_ids.flatten(),
        positions=tree.depths.flatten(),
        draft_token_num=width,
        tree=tree,
        ancestors=compile_ddtree_ancestors(tree.parents, DEPTH),
        max_depth=DEPTH,
        retrieve_index=index,
        retrieve_next_token=next_token,
        retrieve_next_sibling=next_sibling,
    )
    info = sampling_info(bs, vocab, device)
    return lambda logits: verify_input._sample_tree_paths(logits, info)


def dflash_step(bs: int, width: int, vocab: int, device: str) -> Callable[[torch.Tensor], None]:
    """DFLASH's derive step over a chain of `width` rows: sampled on CUDA, greedy on a CPU."""
    from sglang.srt.speculative import dflash_utils

    # SGLang 0.5.11 says accept_len.
    new = hasattr(dflash_utils, "compute_dflash_correct_drafts_and_bonus")
    count = "correct_drafts" if new else "accept_len"
    chain = getattr(dflash_utils, f"compute_dflash_{count}_and_bonus")
    sampled_chain = getattr(dflash_utils, f"compute_dflash_sampling_{count}_and_bonus")
    candidates = torch.randint(vocab, (bs, width), device=device)
    info = sampling_info(bs, vocab, device)
    if device == "cpu":

        def step(logits: torch.Tensor) -> None:
            target = torch.argmax(logits, dim=-1).view(bs, width)
            chain(candidates=candidates, target_predict=target)

        return step
    return lambda logits: sampled_chain(
        candidates=candidates,
        next_token_logits=logits,
        sampling_info=info,
        threshold_single=1.0,
        threshold_acc=1.0,
    )


def peak_of(step: Callable[[], None], device: str) -> float:
    """MiB that a step holds at its peak, beside what is there before it."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / MIB
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _status("VmRSS")
    step()
    return (_status("VmHWM") - before) / 1024.0


def _status(field: str) -> int:
    """KiB of a field of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"expected {field} in /proc/self/status, found none")


def measure(make_step, bs: int, width: int, vocab: int, device: str, repeats: int) -> dict:
    torch.manual_seed(0)
    step = make_step(bs, width, vocab, device)
    kept = 2 * torch.randn(bs * width, vocab, device=device)
    logits = torch.empty_like(kept)

    def seconds() -> float:
        logits.copy_(kept)  # the step overwrites them
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        step(logits)
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    seconds()
    times = [seconds() for _ in range(repeats)]
    logits.copy_(kept)
    return {
        "ms_median": 1e3 * statistics.median(times),
        "ms_min": 1e3 * min(times),
        "peak_mib": peak_of(lambda: step(logits), device),
        "logits_mib": logits.nbytes / MIB,
    }


def main() -> None:
    release = importlib.metadata.version("sglang")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build", "bench", release))
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    from sglang.srt.speculative import dflash_info

    dflash_info.get_global_server_args = lambda: SimpleNamespace(
        enable_nan_detection=False, sampling_backend="pytorch"
    )
    widths, batches, vocabs = (32, 64), (1, 8, 32), (32_000, 152_000)
    if arguments.quick:
        widths, batches, vocabs = (32,), (1, 2), (1_000,)
    results = []
    chain = "DFLASH chain" if device == "cuda" else "DFLASH chain, greedy"
    for vocab in vocabs:
        for width in widths:
            for bs in batches:
                row = {"vocab": vocab, "width": width, "batch": bs}
                for name, make_step in (("ddtree", ddtree_step), ("dflash", dflash_step)):
                    row[name] = measure(make_step, bs, width, vocab, device, arguments.repeats)
                results.append(row)
                tree, other = row["ddtree"], row["dflash"]
                print(
                    f"V {vocab:>7,}  W {width}  batch {bs:>2}: DDTREE {tree['ms_median']:9.1f} ms, "
                    f"peak {tree['peak_mib']:7.1f} MiB; {chain} {other['ms_median']:8.1f} ms, "
                    f"peak {other['peak_mib']:6.1f} MiB; logits {tree['logits_mib']:7.1f} MiB",
                    flush=True,
                )
    arguments.out.mkdir(parents=True, exist_ok=True)
    machine = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or "cpu"
    report = {
        "device": device,
        "machine": machine,
        "torch": torch.__version__,
        "sglang": release,
        "results": results,
    }
    (arguments.out / "sampling.json").write_text(json.dumps(report, indent=1) + "\n")
    chart = bar_chart(
        f"Derive step on {device}: time by vocabulary, rows and batch",
        ("DDTREE", chain),
        [
            (
                f"V {r['vocab'] // 1000}k  W {r['width']}  batch {r['batch']}",
                [r["ddtree"]["ms_median"], r["dflash"]["ms_median"]],
            )
            for r in results
        ],
        "ms",
    )
    (arguments.out / "sampling.svg").write_text(chart)
    print(f"wrote {arguments.out / 'sampling.json'} and sampling.svg")


if __name__ == "__main__":
    main()
