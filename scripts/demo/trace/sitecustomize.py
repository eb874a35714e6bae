# SPDX-License-Identifier: Apache-2.0
"""Writes down the draft trees of a running DDTREE server, for `make demo` to draw one.

Python imports a module of this name at start-up, so a server with this folder on PYTHONPATH
is traced in its scheduler process too, and the server's own code has no hook for it. While the
file that DDTREE_TRACE names is there, every verify step appends one JSON line a request to it;
its fields are those of `demo.draft_tree.DraftTree`. Without the file nothing is written.
"""

import importlib.machinery
import json
import os
import sys

CONTEXT_TOKENS = 24


def trace_is_wanted() -> bool:
    return os.path.exists(os.environ.get("DDTREE_TRACE", ""))


def keep_log_q(module) -> None:
    """`ddtree_utils`: keep the drafter's log-probability of each node with the tree."""
    build = module.build_ddtree_tree_from_topk

    def build_and_keep(topk_logprobs, topk_ids, *args, **kwargs):
        tree = build(topk_logprobs, topk_ids, *args, **kwargs)
        if trace_is_wanted():
            # A node of depth d has a token of row d - 1 of the top-k; a token is there once.
            rows = (tree.depths - 1).clamp(min=0).unsqueeze(2).expand(-1, -1, topk_ids.shape[2])
            is_node = topk_ids.gather(1, rows) == tree.token_ids.unsqueeze(2)
            log_q = topk_logprobs.gather(1, rows).masked_fill(~is_node, float("-inf")).amax(2)
            log_q[:, 0] = 0.0
            tree.log_q = log_q
        return tree

    module.build_ddtree_tree_from_topk = build_and_keep


def write_steps(module) -> None:
    """`dflash_info`: write down each tree with the tokens that its verify step committed."""
    verify = module.DDTreeVerifyInput.verify

    def verify_and_write(self, *, batch, **kwargs):
        if not hasattr(self.tree, "log_q"):
            return verify(self, batch=batch, **kwargs)
        before = [[*req.origin_input_ids, *req.output_ids] for req in batch.reqs]
        result = verify(self, batch=batch, **kwargs)
        with open(os.environ["DDTREE_TRACE"], "a", encoding="utf-8") as trace:
            for row, (req, ids) in enumerate(zip(batch.reqs, before, strict=True)):
                committed = [*req.origin_input_ids, *req.output_ids][len(ids) :]
                record = describe(self.tree, row, committed)
                record["context"] = ids[-CONTEXT_TOKENS - 1 : -1]
                trace.write(json.dumps(record) + "\n")
        return result

    module.DDTreeVerifyInput.verify = verify_and_write


def describe(tree, row: int, committed: "list[int]") -> dict:
    """One request's tree, and the path that its committed tokens take through it."""
    valid = tree.valid[row]
    tokens, parents = tree.token_ids[row][valid].tolist(), tree.parents[row][valid].tolist()
    child = {
        (parent, token): i for i, (parent, token) in enumerate(zip(parents, tokens, strict=True))
    }
    accepted, bonus = [0], None
    for token in committed:
        node = child.get((accepted[-1], token))
        if node is None:
            bonus = token
            break
        accepted.append(node)
    log_q = [round(value, 4) for value in tree.log_q[row][valid].tolist()]
    return {
        "tokens": tokens,
        "parents": parents,
        "log_q": log_q,
        "accepted": accepted,
        "bonus": bonus,
    }


PATCHES = {
    "sglang.srt.speculative.ddtree_utils": keep_log_q,
    "sglang.srt.speculative.dflash_info": write_steps,
}


class PatchOnImport:
    """A finder that lets the usual one find a module, and patches it after its import."""

    def find_spec(self, name, path=None, target=None):
        patch = PATCHES.get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path) if patch else None
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_patch(module) -> None:
            execute(module)
            patch(module)

        spec.loader.exec_module = execute_and_patch
        return spec


sys.meta_path.insert(0, PatchOnImport())
