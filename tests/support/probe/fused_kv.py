# SPDX-License-Identifier: Apache-2.0
"""The drafter's fused KV append, which SGLang does on CUDA, on a CPU: its kernel is interpreted."""

import modes
from engine_probe import LOG, wrap


def patch_worker(worker_module) -> None:
    """Let the worker choose as on CUDA, and log the rows of each append."""
    # The one thing that it asks about the platform.
    worker_module.is_cuda = lambda: True

    def log(materialize):
        def materialize_rows(self, ctx_hidden, positions, write_layer_kv):
            LOG.materialised.append(len(ctx_hidden))
            if modes.CURRENT == "fused_kv_fails":
                raise RuntimeError("the kernel fails")
            positions = positions + (modes.CURRENT == "fused_kv_misplaced")
            materialize(
                self, ctx_hidden=ctx_hidden, positions=positions, write_layer_kv=write_layer_kv
            )

        return materialize_rows

    wrap(worker_module._get_fused_kv_materialize_helper(), "materialize", log)
