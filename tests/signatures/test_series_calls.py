# SPDX-License-Identifier: Apache-2.0
"""Every call of the series, in each unpacked release, against SGLang and sglang-kernel."""

import re

import pytest
from callcheck.calls import check
from callcheck.release import check_release, kernel_signatures, load_facts
from callcheck.signature import from_text
from callcheck.sources import Sources
from patchset.root import PREFIX
from patchset.upstream import PACKAGE, REPOSITORY, Project

PROJECT = Project(REPOSITORY)
# Not a port under way, whose calls are still another release's.
UNPACKED = sorted(
    folder.name
    for folder in (REPOSITORY / PACKAGE).iterdir()
    if (folder / PREFIX).is_dir() and PROJECT.pinned(folder.name)
)
WALK = "tree_speculative_sampling_target_only"
SAMPLING = "sglang/srt/speculative/ddtree_sampling.py"
# Upstream's, by what they are for: freeing slots, the slot table, seeded noise, the base class.
EXPECTED = {
    "BaseTokenToKVPoolAllocator.free",
    "assign_req_to_token_pool_func",
    "multinomial_with_seed",
    "DFlashVerifyInput.prepare_for_verify",
    "Req.finished",
    "get_config",
    WALK,
}
# Whole words of the sources, and what to put there instead: each makes one call wrong.
MUTANTS = {
    "wrong keyword to the kernel": (SAMPLING, r"retrive_index=", "retrieve_index="),
    "missing argument to the kernel": (SAMPLING, r"\n +target_probs=probs,", ""),
    "extra argument to the kernel": (SAMPLING, r"( +)deterministic=True,", r"\g<0> stream=0,"),
    "wrong keyword upstream": (
        "sglang/srt/layers/seeded_sampling.py",
        r"multinomial_with_seed\(logprobs, sampling_seed, positions\)",
        "multinomial_with_seed(logprobs, sampling_seed, places=positions)",
    ),
    "missing argument upstream": (
        "sglang/srt/speculative/ddtree_verify.py",
        r"(allocator\.free\()[^)]*\)",
        r"\1)",
    ),
    "extra argument upstream": (
        "sglang/srt/speculative/ddtree_draft.py",
        r"get_global_server_args\(\)",
        "get_global_server_args(0)",
    ),
    "method that upstream lacks": (
        "sglang/srt/speculative/ddtree_verify.py",
        r"req\.update_spec_\w+_histogram\(",
        "req.update_histogram(",
    ),
    "name that upstream lacks": (
        "sglang/srt/speculative/ddtree_verify.py",
        r"assign_req_to_token_pool_func",
        "assign_req_to_token_func",
    ),
}


def test_a_release_is_unpacked():
    assert PROJECT.release(None).key in UNPACKED, "run scripts/bootstrap.sh"


@pytest.mark.parametrize("key", UNPACKED)
def test_every_call_of_the_series_fits(key):
    for facts in load_facts(key):
        reached = check_release(PROJECT, PROJECT.release(key), facts)
        assert [str(one) for one in reached if one.problem] == []
        assert {one.name for one in reached} >= EXPECTED
        assert len(reached) >= 90
        assert all(one.signature is not None for one in reached)


@pytest.mark.parametrize("key", UNPACKED)
@pytest.mark.parametrize("path, pattern, replacement", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_found(key, path, pattern, replacement, tmp_path):
    original = PROJECT.materialised(PROJECT.release(key)) / PREFIX
    text = (original / path).read_text()
    mutant = re.sub(pattern, replacement, text)
    assert mutant != text, "the mutant changes nothing"
    # Only the mutant is copied: links lead to all else.
    folder = tmp_path
    for part in path.split("/")[:-1]:
        for entry in (original / folder.relative_to(tmp_path)).iterdir():
            if entry.name != part and entry.name != "__pycache__":
                (folder / entry.name).symlink_to(entry)
        folder /= part
        folder.mkdir()
    for entry in (original / path).parent.iterdir():
        if entry != original / path:
            (folder / entry.name).symlink_to(entry)
    (tmp_path / path).write_text(mutant)
    module = Sources(tmp_path, PACKAGE).module_at(path)
    external = kernel_signatures(load_facts(key)[0])
    assert [one for one in check(module, None, external) if one.problem]


@pytest.mark.parametrize("key", UNPACKED)
def test_wrappers_pass_their_parameters_to_the_operator_in_order(key):
    """What is written in Python and what is compiled agree, and the outputs are outputs."""
    for facts in load_facts(key):
        function = facts["functions"][WALK]
        schema = facts["operators"][function["operator"]]
        arguments = [a.split() for a in re.search(r"\((.*)\) ->", schema)[1].split(", ")]
        assert list(from_text(function["parameters"]).parameters) == [a[-1] for a in arguments]
        written = {name for kind, name in arguments if "!" in kind}
        assert written == {"predicts", "accept_index", "accept_token_num"}


@pytest.mark.parametrize("key", UNPACKED)
def test_dtypes_are_those_that_the_kernel_asks_for(key, monkeypatch):
    """The series' own call, with a kernel that looks at what it is given and walks no tree."""
    import torch
    from sglang.srt.speculative import ddtree_sampling, ddtree_utils

    calls = []

    def kernel(**arguments):
        calls.append(arguments)
        arguments["accept_index"][:, 0] = arguments["retrive_index"][:, 0].int()
        arguments["accept_token_num"].zero_()

    monkeypatch.setattr(ddtree_sampling, WALK, kernel, raising=False)
    bs, depth, vocabulary, budget = 2, 3, 11, 7
    logprobs, ids = torch.rand(bs, depth, vocabulary).log_softmax(-1).sort(-1, descending=True)
    roots = torch.zeros(bs, dtype=torch.int64)
    tree = ddtree_utils.build_ddtree_tree_from_topk(logprobs, ids, roots, budget)
    width = budget + 1
    retrieve = ddtree_utils.compile_ddtree_retrieve(tree.parents, tree.node_logws, width)
    ddtree_sampling.accept_by_kernel(
        tree,
        retrieve,
        torch.full((bs, width, vocabulary), 1 / vocabulary),
        torch.full((bs, width), vocabulary),
        torch.rand(bs, width),
        depth,
    )
    (given,) = calls
    for facts in load_facts(key):
        signature = from_text(facts["functions"][WALK]["parameters"])
        signature.bind(**given)
        found = {
            name: str(given[name].dtype) for name in facts["dtypes"] if name in signature.parameters
        }
        assert found == {name: facts["dtypes"][name] for name in found}
        assert len(found) == 10
    assert all(v.is_contiguous() for v in given.values() if isinstance(v, torch.Tensor))


def test_a_release_without_facts_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"expected .*0\.9\.9.*found none; run python -m"):
        load_facts("0.9.9", tmp_path)
