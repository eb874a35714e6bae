# SPDX-License-Identifier: Apache-2.0
"""Looks into the scheduler's process: verify steps, the drafter's input, the memory pool.

The scheduler gets a method `ddtree_probe`, which the tests call through the engine's RPC, so
that nothing of it runs in the middle of a step. A missing name to patch is an AttributeError at
start-up: a probe that sees nothing would pass every test.
"""

import importlib.util
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder

from support.upstream import accepted_per_request

# Imported by every process of an engine at its start, most of which have no use for torch:
# `torch` and `modes` are imported where they are needed.


@dataclass
class Log:
    """What has been seen since the last `configure`.

    `steps` has a dict per verify step with an entry per request in each of:
        rids: names of the requests.
        prefix_lens: committed tokens before the step.
        draft_lens: committed tokens that the drafter could see, less in a draft window.
        chain: the drafter's most probable token at each drafted position.
        accepted: accepted draft tokens; the step commits one token more.
        tree: tokens, parents and valid nodes of the draft tree; None for DFLASH.
        own, agreed: accepted nodes and the bonus token that this rank chose, and that all ranks
            commit; with tensor parallelism only.
    `hidden` maps (rid, position) to the row of target features that the drafter was fed.
    `replays` has a dict per replay of a recorded graph (cpu_graphs.py): whether the draft
    runner's, requests in the batch, requests of the graph, whether all its logits are finite.
    `materialised` has the rows of each fused append to the drafter's KV (fused_kv.py).
    """

    steps: list[dict] = field(default_factory=list)
    hidden: dict = field(default_factory=dict)
    replays: list[dict] = field(default_factory=list)
    materialised: list[int] = field(default_factory=list)
    record_hidden: bool = False


LOG = Log()


class PatchOnImport(MetaPathFinder):
    """Calls a function with a module right after that module has been executed."""

    def __init__(self, patches: dict) -> None:
        self.patches = patches

    def find_spec(self, name, path=None, target=None):
        patch = self.patches.pop(name, None)
        if patch is None:
            return None
        # Popped, so that this search does not come back here.
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_patch(module) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = execute_and_patch
        return spec


def install() -> None:
    """Patch the modules when they are imported."""
    patches = {
        "sglang.srt.managers.scheduler": patch_scheduler,
        "sglang.srt.speculative.dflash_worker": patch_worker,
    }
    if os.environ.get("SGLANG_DDTREE_PROBE_GRAPHS"):
        import cpu_graphs

        patches |= {
            "sglang.srt.model_executor.cuda_graph_runner": cpu_graphs.patch_graph_runner,
            "sglang.srt.model_executor.model_runner": cpu_graphs.patch_model_runner,
        }
    sys.meta_path.insert(0, PatchOnImport(patches))


def wrap(owner, name: str, make) -> None:
    """Replace `owner.name` by `make(owner.name)`."""
    setattr(owner, name, make(getattr(owner, name)))


def patch_scheduler(module) -> None:
    """Give the scheduler its probe method."""

    def ddtree_probe(scheduler, operation: str, path: str, **arguments) -> None:
        from sglang.srt.distributed import get_tensor_model_parallel_rank

        # Called on every rank; each writes a file of its own.
        path += f".{get_tensor_model_parallel_rank()}"
        if operation == "configure":
            configure(**arguments)
        elif operation == "hidden":
            import torch

            torch.save(LOG.hidden, path)
        else:
            logs = {
                "steps": LOG.steps,
                "replays": LOG.replays,
                "materialised": LOG.materialised,
            }
            result = logs[operation] if operation in logs else pool_state(scheduler)
            with open(path, "w") as file:
                json.dump(result, file)

    module.Scheduler.ddtree_probe = ddtree_probe


def configure(mode: str | None, record_hidden: bool) -> None:
    """Clear the log and set what the next requests run under."""
    import modes

    LOG.__init__(record_hidden=record_hidden)
    modes.choose(mode)


def pool_state(scheduler) -> dict:
    """The fields of `support.engine.PoolState`."""
    allocator, cache = scheduler.token_to_kv_pool_allocator, scheduler.tree_cache
    listed = Counter(allocator.free_pages.tolist() + allocator.release_pages.tolist())
    # A server without a radix cache keeps nothing.
    if hasattr(cache, "root_node"):
        listed.update(cached_slots(cache.root_node))
    requests = scheduler.req_to_token_pool
    return {
        "total": scheduler.max_total_num_tokens,
        "available": allocator.available_size(),
        "cached": cache.evictable_size(),
        "protected": cache.protected_size(),
        "accounted": len(listed),
        "duplicates": sum(count - 1 for count in listed.values()),
        "free_requests": len(requests.free_slots),
        "total_requests": requests.size,
    }


def cached_slots(node) -> list[int]:
    """KV slots of a radix-tree node's descendants."""
    slots = []
    for child in node.children.values():
        slots += child.value.tolist() + cached_slots(child)
    return slots


def patch_worker(worker_module) -> None:
    """Log the steps and the drafter's input, and let `modes` change what it changes."""
    import modes

    info_module = sys.modules["sglang.srt.speculative.dflash_info"]
    worker = worker_module.DFlashWorker
    drafts_trees = hasattr(worker_module, "compute_ddtree_topk")  # since 0030
    if drafts_trees:
        modes.patch(worker_module, info_module)
    seen = {}  # of the step under way

    def log_top1(compute_topk):
        def compute(hidden_states, lm_head, k):
            logprobs, token_ids = compute_topk(hidden_states, lm_head, k)
            seen["top1"] = token_ids[:, 0]
            return logprobs, token_ids

        return compute

    def log_draft(prepare):
        def prepare_step(self, batch, draft_input):
            lens = batch.seq_lens.tolist()
            prepare(self, batch, draft_input)
            verify_input, bs = batch.spec_info, len(lens)
            tree = getattr(verify_input, "tree", None)
            if tree is None:
                chain = verify_input.draft_token.view(bs, -1)[:, 1:]
            else:
                chain = seen["top1"].view(bs, -1)
                tree = {
                    name: getattr(tree, name).tolist() for name in ("token_ids", "parents", "valid")
                }
            LOG.steps.append(
                {
                    "rids": [req.rid for req in batch.reqs],
                    "prefix_lens": lens,
                    "draft_lens": draft_input.draft_seq_lens.tolist(),
                    "chain": chain.tolist(),
                    "tree": tree,
                }
            )

        return prepare_step

    def log_accepted(forward):
        def forward_step(self, batch, **kwargs):
            known = len(LOG.steps)
            result = forward(self, batch, **kwargs)
            if len(LOG.steps) > known:
                LOG.steps[-1]["accepted"] = accepted_per_request(result)
                LOG.steps[-1].update(seen.pop("ranks", {}))
            return result

        return forward_step

    def log_broadcast(broadcast):
        def broadcast_paths(paths):
            def chosen(paths):
                _, accept_lens, bonus = paths
                return list(zip(accept_lens.tolist(), bonus.tolist(), strict=True))

            own = chosen(paths)
            paths = broadcast(paths)
            seen["ranks"] = {"own": own, "agreed": chosen(paths)}
            return paths

        return broadcast_paths

    def keep_positions(append):
        def append_rows(self, ctx_hidden, ctx_positions, ctx_cache_loc):
            seen["positions"] = ctx_positions.tolist()
            append(self, ctx_hidden, ctx_positions, ctx_cache_loc)

        return append_rows

    def log_hidden(append):
        def append_to_draft(self, batch, draft_input):
            rows, lens = draft_input.target_hidden, draft_input.ctx_lens.tolist()
            append(self, batch, draft_input)
            if LOG.record_hidden and sum(lens):
                rids = [[req.rid] * n for req, n in zip(batch.reqs, lens, strict=True)]
                places = zip(sum(rids, []), seen["positions"], strict=True)
                LOG.hidden.update(zip(places, rows.clone(), strict=True))

        return append_to_draft

    if drafts_trees:
        wrap(worker_module, "compute_ddtree_topk", log_top1)
    if hasattr(info_module, "broadcast_ddtree_paths"):  # since 0090
        wrap(info_module, "broadcast_ddtree_paths", log_broadcast)
    wrap(worker, "_prepare_for_speculative_decoding", log_draft)
    wrap(worker, "forward_batch_generation", log_accepted)
    wrap(worker, "_append_target_hidden_sequential", keep_positions)
    wrap(worker, "_append_target_hidden_to_draft_kv", log_hidden)
    if os.environ.get("SGLANG_DDTREE_PROBE_FUSED_KV"):
        import fused_kv

        fused_kv.patch_worker(worker_module)
