# SPDX-License-Identifier: Apache-2.0
"""Ways to run DDTREE otherwise than it is: as a chain, or with a mistake that tests must see.

Each mode is one plausible mistake, made at the place where it would be made. They are switched
between requests by `engine_probe.configure`.
"""

import torch

MODES = (
    "spine_only",  # not a mistake: one token a position is proposed, so the tree is a chain
    "kv_of_wrong_rows",  # the slots of nodes 0..n-1 are kept instead of those of the path
    "positions_by_index",  # a node's position is prefix + index instead of prefix + depth
    "hidden_of_wrong_rows",  # the drafter is fed the rows of nodes 0..n-1
    "leak_a_slot",  # one rejected slot a step is not freed
    "rank_1_strays",  # rank 1 accepts nothing and takes token 0 for the bonus
    # Of graphs, made in cpu_graphs.py:
    "mask_left",  # the mask is not copied into the captured buffer
    "mask_unpadded",  # rows that pad a batch get no mask
    "positions_left",  # positions are not copied into the captured buffer
    # Of the drafter's fused KV append, made in fused_kv.py:
    "fused_kv_fails",  # not a mistake: its kernel fails, and the worker falls back
    "fused_kv_misplaced",  # keys are rotated for the position after theirs
)
CURRENT: str | None = None


def choose(mode: str | None) -> None:
    """Set the mode; None for the code as it is."""
    global CURRENT
    if mode not in (None, *MODES):
        raise ValueError(f"expected one of {MODES} or None, found {mode}")
    CURRENT = mode


def path_first(path: torch.Tensor, width: int) -> torch.Tensor:
    """The permutation of `width` nodes that puts the node k of a path in the place of node k.

    Args:
        path: int64 [D + 1], nodes of the path from the root, then -1.
    """
    nodes = path[path >= 0].tolist()
    others = [node for node in range(width) if node not in nodes]
    source = torch.empty(width, dtype=torch.int64)
    source[torch.tensor(nodes + others)] = torch.arange(width)
    return source


class LeakyAllocator:
    """The allocator, but for the first of the slots that it is given back."""

    def __init__(self, allocator) -> None:
        self._allocator = allocator

    def free(self, slots: torch.Tensor) -> None:
        self._allocator.free(slots[1:])


def may_stray(choose):
    """`choose` paths, but for rank 1 in the mode that lets it stray."""
    from sglang.srt.distributed import get_tensor_model_parallel_rank

    def choose_paths(*args, **kwargs):
        accepted_paths, accept_lens, bonus = choose(*args, **kwargs)
        if CURRENT == "rank_1_strays" and get_tensor_model_parallel_rank() == 1:
            accepted_paths[:, 1:] = -1
            accept_lens, bonus = torch.zeros_like(accept_lens), torch.zeros_like(bonus)
        return accepted_paths, accept_lens, bonus

    return choose_paths


def patch(worker_module, info_module) -> None:
    """Wrap the functions that the modes change."""
    compute_topk = worker_module.compute_ddtree_topk
    compile_positions = worker_module.compile_ddtree_positions
    commit = info_module.commit_ddtree_paths

    def compute_ddtree_topk(hidden_states, lm_head, k):
        return compute_topk(hidden_states, lm_head, 1 if CURRENT == "spine_only" else k)

    def compile_ddtree_positions(depths, prefix_lens):
        if CURRENT == "positions_by_index":
            depths = torch.arange(depths.shape[1]).expand_as(depths)
        return compile_positions(depths, prefix_lens)

    def commit_ddtree_paths(*, batch, logits_output, token_ids, accepted_paths, **rest):
        bs, width = token_ids.shape
        source = torch.stack([path_first(path, width) for path in accepted_paths])
        if CURRENT == "kv_of_wrong_rows":
            batch.out_cache_loc = batch.out_cache_loc.view(bs, width).gather(1, source).flatten()
        elif CURRENT == "hidden_of_wrong_rows":
            rows = (torch.arange(bs)[:, None] * width + source).flatten()
            logits_output.hidden_states = logits_output.hidden_states[rows]
        allocator = batch.token_to_kv_pool_allocator
        if CURRENT == "leak_a_slot":
            batch.token_to_kv_pool_allocator = LeakyAllocator(allocator)
        result = commit(
            batch=batch,
            logits_output=logits_output,
            token_ids=token_ids,
            accepted_paths=accepted_paths,
            **rest,
        )
        batch.token_to_kv_pool_allocator = allocator
        return result

    worker_module.compute_ddtree_topk = compute_ddtree_topk
    worker_module.compile_ddtree_positions = compile_ddtree_positions
    info_module.commit_ddtree_paths = commit_ddtree_paths
    for name in {"walk_ddtree", "sample_ddtree_paths"} & vars(info_module).keys():
        setattr(info_module, name, may_stray(getattr(info_module, name)))
