# SPDX-License-Identifier: Apache-2.0
"""The environment variables of the CPU profile; the one place that names them.

Call :func:`set_environment` before ``torch`` or ``sglang`` is imported, or pass its result
to a child process::

    from cpu_profile.environment import set_environment
    set_environment()                              # this process and its children
    subprocess.run(command, env=set_environment(dict(os.environ)))

A variable that is already set keeps its value, so a user can override any of them. For a
shell, ``eval "$(.venv/bin/python -m cpu_profile.environment)"`` exports the same variables.
The package is importable in the virtual environment that ``scripts/bootstrap.sh`` makes.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import MutableMapping

ENVIRONMENT = {
    # SGLang picks its CPU engine by this flag and not by what the machine has; hide a GPU
    # as well, because torch and Triton would look at it.
    "SGLANG_USE_CPU_ENGINE": "1",
    "CUDA_VISIBLE_DEVICES": "",
    # Triton kernels run in Triton's interpreter. torch.compile cannot compile functions
    # that call them there, and KV rows are moved by torch instead of by a kernel.
    "TRITON_INTERPRET": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "SGLANG_NATIVE_MOVE_KV_CACHE": "1",
    # One thread: the order of every floating-point sum is fixed, and tiny models are faster.
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Nothing is downloaded and nothing is reported while the profile runs.
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


def set_environment(
    environ: MutableMapping[str, str] = os.environ,
) -> MutableMapping[str, str]:
    """Set every variable of the profile that `environ` lacks, and return `environ`."""
    for name, value in ENVIRONMENT.items():
        environ.setdefault(name, value)
    return environ


if __name__ == "__main__":
    for _name, _value in ENVIRONMENT.items():
        print(f"export {_name}={shlex.quote(os.environ.get(_name, _value))}")
