# SPDX-License-Identifier: Apache-2.0
"""What SGLang's releases name differently, as the imported release has it.

Tests ask here and not for a version, so that one test serves every release. SGLang is imported
where a function is called: an engine's processes import this module at their start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def first_of(owner: Any, *names: str) -> Any:
    """The attribute of `owner` with the first of `names` that it has.

    Raises:
        AttributeError: it has none of them.
    """
    for name in names:
        if hasattr(owner, name):
            return getattr(owner, name)
    raise AttributeError(f"{owner!r}: expected one of {', '.join(names)}, found none")


def accepted_drafts(req) -> int:
    """Draft tokens that were accepted for a request so far."""
    return first_of(req, "spec_num_correct_drafts", "spec_accepted_drafts")


def accept_histogram(req) -> list[int]:
    """Verify steps of a request by the number of draft tokens that they accepted."""
    return first_of(req, "spec_correct_drafts_histogram", "spec_acceptance_histogram")


def accepted_per_request(result) -> list[int]:
    """Accepted draft tokens of a step, of a `GenerationBatchResult`."""
    return list(
        first_of(result, "num_correct_drafts_per_req_cpu", "num_accepted_drafts_per_req_cpu")
    )


def retractions(meta_info: dict) -> int:
    """How often a request was retracted."""
    names = ("num_retractions", "total_retractions")
    return meta_info[next(name for name in names if name in meta_info)]


def algorithm_classes() -> list[type]:
    """What a speculative algorithm is an instance of: plugins have a class of their own."""
    from sglang.srt.speculative import spec_info

    names = ("SpeculativeAlgorithm", "CustomSpecAlgo")
    return [getattr(spec_info, name) for name in names if hasattr(spec_info, name)]


def chain_walk() -> Callable:
    """DFLASH's greedy acceptance of a chain."""
    from sglang.srt.speculative import dflash_utils

    return first_of(
        dflash_utils,
        "compute_dflash_correct_drafts_and_bonus",
        "compute_dflash_accept_len_and_bonus",
    )


def draft_window(size: int) -> dict[str, int]:
    """The server argument for a draft window of `size` tokens."""
    from sglang.srt.server_args import ServerArgs

    fields = ServerArgs.__dataclass_fields__
    names = ("speculative_draft_window_size", "speculative_dflash_draft_window_size")
    return {next(name for name in names if name in fields): size}


def resolve_speculative_arguments(args) -> None:
    """Resolve the speculative arguments of a `ServerArgs` once more, in place."""
    try:
        from sglang.srt.arg_groups.speculative_hook import handle_speculative_decoding
    except ModuleNotFoundError:
        args._handle_speculative_decoding()
    else:
        handle_speculative_decoding(args)


def plan_capture(backend, forward_batch) -> None:
    """Let an attention backend prepare a captured forward on a batch's tensors."""
    if hasattr(backend, "init_forward_metadata_out_graph"):
        backend.init_forward_metadata_out_graph(forward_batch, in_capture=True)
        return
    backend.init_forward_metadata_capture_cuda_graph(
        forward_batch.batch_size,
        forward_batch.positions.numel(),
        forward_batch.req_pool_indices,
        forward_batch.seq_lens,
        forward_batch.encoder_lens,
        forward_batch.forward_mode,
        forward_batch.spec_info,
    )


def plan_replay(backend, forward_batch) -> None:
    """Let an attention backend prepare the replay of a captured forward on a batch."""
    if hasattr(backend, "init_forward_metadata_out_graph"):
        backend.init_forward_metadata_out_graph(forward_batch)
        return
    backend.init_forward_metadata_replay_cuda_graph(
        forward_batch.batch_size,
        forward_batch.req_pool_indices,
        forward_batch.seq_lens,
        forward_batch.seq_lens_sum,
        forward_batch.encoder_lens,
        forward_batch.forward_mode,
        forward_batch.spec_info,
        seq_lens_cpu=forward_batch.seq_lens_cpu,
    )
