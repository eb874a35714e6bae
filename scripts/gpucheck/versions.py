# SPDX-License-Identifier: Apache-2.0
"""`python -m gpucheck.versions`: what this Python has, as JSON. A process of its own, for torch."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform

_PACKAGES = ("sglang", "torch", "triton", "transformers", "flashinfer-python", "numpy")
# The same package under its old and its new name.
_KERNELS = ("sglang-kernel", "sgl-kernel")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def collect() -> dict:
    """Versions by package (None: not there), and what torch was built for."""
    found = {package: _version(package) for package in _PACKAGES}
    found["sgl_kernel"] = next(filter(None, map(_version, _KERNELS)), None)
    if importlib.util.find_spec("sgl_kernel") is None:
        found["sgl_kernel"] = None
    cuda, sees_device = None, False
    if found["torch"] is not None:
        import torch

        found["torch"] = torch.__version__
        cuda, sees_device = torch.version.cuda, torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "packages": found,
        "torch_cuda": cuda,
        "torch_sees_device": sees_device,
    }


if __name__ == "__main__":
    print(json.dumps(collect()))
