# SPDX-License-Identifier: Apache-2.0
"""Let a torchvision that was built for CUDA be imported beside a CPU build of torch.

The compiled part of such a torchvision does not load, which torchvision tolerates, but it
then registers fake kernels for two operators that nobody declared, and its import ends in
"operator torchvision::nms does not exist". Declaring the two operators first cures that.
They have no kernel: calling one still fails, and nothing in the CPU profile calls them.

``scripts/bootstrap.sh`` makes the interpreter import this module at start-up where torch is
a CPU build. It imports nothing heavy itself; torch is touched when torchvision is imported.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class DeclareOpsOnImport:
    """A finder that finds nothing: it declares the operators when torchvision is looked up."""

    def __init__(self) -> None:
        self.library = None  # dropping a torch Library would withdraw its operators

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        if name == "torchvision" and self.library is None:
            import torch

            self.library = torch.library.Library("torchvision", "FRAGMENT")
            for operator in ("nms", "qnms"):
                self.library.define(operator + SIGNATURE)
        return None


sys.meta_path.insert(0, DeclareOpsOnImport())
