# SPDX-License-Identifier: Apache-2.0
"""The tracer that writes down a server's draft trees, on trees made by hand."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import pytest
import torch
from demo import checkout

# Root 9; depth 1: token 4 (-0.2), token 5 (-1.7); depth 2: token 4 below the first (-0.3).
TOPK_IDS = torch.tensor([[[4, 5], [4, 6]]])
TOPK_LOGPROBS = torch.tensor([[[-0.2, -1.7], [-0.3, -1.4]]])


@pytest.fixture
def tracer(monkeypatch):
    """The tracer as a module; it must not stay in this process's import system."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    path = checkout.ROOT / "scripts" / "demo" / "trace" / "sitecustomize.py"
    spec = importlib.util.spec_from_file_location("traced_sitecustomize", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small_tree(*_args):
    return SimpleNamespace(
        token_ids=torch.tensor([[9, 4, 4, 5, 9]]),
        parents=torch.tensor([[-1, 0, 1, 0, -1]]),
        depths=torch.tensor([[0, 1, 2, 1, 1]]),
        valid=torch.tensor([[True, True, True, True, False]]),
    )


class Verify:
    """Stands in for DDTreeVerifyInput: commits the tokens that a test chose."""

    def __init__(self, tree, committed):
        self.tree = tree
        self.committed = committed

    def verify(self, *, batch, logits_output):
        batch.reqs[0].output_ids.extend(self.committed)
        return logits_output


def traced_step(tracer, committed):
    """One step through the patched builder and the patched verify."""
    utils = SimpleNamespace(build_ddtree_tree_from_topk=small_tree)
    tracer.keep_log_q(utils)
    tree = utils.build_ddtree_tree_from_topk(TOPK_LOGPROBS, TOPK_IDS, torch.tensor([9]), 4)
    info = SimpleNamespace(DDTreeVerifyInput=type("Traced", (Verify,), {}))
    tracer.write_steps(info)
    batch = SimpleNamespace(reqs=[SimpleNamespace(origin_input_ids=[1, 2], output_ids=[9])])
    assert info.DDTreeVerifyInput(tree, committed).verify(batch=batch, logits_output="same")


@pytest.mark.parametrize(
    ("committed", "accepted", "bonus"),
    [
        ([4, 4, 7], [0, 1, 2], 7),
        ([5, 7], [0, 3], 7),
        ([7], [0], 7),
        ([4], [0, 1], None),  # the answer ended there
    ],
)
def test_a_step_is_one_line(tracer, tmp_path, monkeypatch, committed, accepted, bonus):
    path = tmp_path / "trace.jsonl"
    path.touch()
    monkeypatch.setenv("DDTREE_TRACE", str(path))
    traced_step(tracer, committed)
    (line,) = path.read_text().splitlines()
    assert json.loads(line) == {
        "context": [1, 2],
        "tokens": [9, 4, 4, 5],
        "parents": [-1, 0, 1, 0],
        "log_q": [0.0, -0.2, -0.3, -1.7],
        "accepted": accepted,
        "bonus": bonus,
    }


def test_nothing_is_written_without_the_file(tracer, tmp_path, monkeypatch):
    monkeypatch.setenv("DDTREE_TRACE", str(tmp_path / "trace.jsonl"))
    traced_step(tracer, [4, 4, 7])
    monkeypatch.delenv("DDTREE_TRACE")
    traced_step(tracer, [4, 4, 7])
    assert not list(tmp_path.iterdir())


def test_a_module_is_patched_when_it_is_imported(tracer, tmp_path, monkeypatch):
    (tmp_path / "traced_example.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(tracer.PATCHES, "traced_example", lambda m: setattr(m, "value", 2))
    monkeypatch.delitem(sys.modules, "traced_example", raising=False)
    import traced_example

    assert traced_example.value == 2
