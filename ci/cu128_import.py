# SPDX-License-Identifier: Apache-2.0
"""Import the patched worker as on a CUDA card, and compare signatures, on a machine without one.

    python ci/cu128_import.py 12.0 RELEASE

For ci/cu128_check.sh, which makes the environment and a libcuda.so.1 whose every function fails.
torch is told that a card of this compute capability is there, so SGLang takes each branch that it
would take on import. Nothing is run: that the branches are right is not shown by this.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent


def pretend_card(capability: tuple[int, int]) -> None:
    """Let torch report one card, without touching a driver."""
    import torch

    major, minor = capability
    card = SimpleNamespace(
        name="stub", major=major, minor=minor, total_memory=96 << 30, multi_processor_count=148
    )
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_name = lambda device=None: card.name
    torch.cuda.get_device_capability = lambda device=None: capability
    torch.cuda.get_device_properties = lambda device=None: card


def import_series(release: str) -> None:
    """Import the worker and every module that the series adds. Raises what an import raises."""
    import importlib

    tree = ROOT / "sglang" / release / "python"
    sys.path[:0] = [str(tree), str(ROOT / "scripts")]
    names = sorted(p.stem for p in (tree / "sglang/srt/speculative").glob("ddtree_*.py"))
    for name in ("dflash_worker", *names):
        importlib.import_module(f"sglang.srt.speculative.{name}")
    print(f"imported dflash_worker, {', '.join(names)}")


def main() -> int:
    capability = tuple(int(part) for part in sys.argv[1].split("."))
    release = sys.argv[2]
    pretend_card(capability)
    import_series(release)

    import sgl_kernel
    from sglang.srt.speculative import ddtree_sampling

    library = Path(sgl_kernel.common_ops.__file__)
    print(f"as on compute capability {sys.argv[1]}: sgl_kernel took {library.parent.name}")
    walk = getattr(ddtree_sampling, "tree_speculative_sampling_target_only", None)
    if walk is not sgl_kernel.tree_speculative_sampling_target_only:
        print(f"cu128: expected the sampled walk to be sgl_kernel's, found {walk}")
        return 1

    from callcheck.__main__ import main as callcheck

    return callcheck(["--release", release, "--installed"])


if __name__ == "__main__":
    sys.exit(main())
