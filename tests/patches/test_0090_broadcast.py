# SPDX-License-Identifier: Apache-2.0
"""Every rank commits rank 0's paths, whatever it would have chosen itself."""

from types import SimpleNamespace

import pytest
import torch
from sglang.srt.speculative import ddtree_tensor_parallel, dflash_info
from sglang.srt.speculative.ddtree_tensor_parallel import broadcast_ddtree_paths

BS, DEPTH = 3, 4


def random_paths(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def draw(high, *shape):
        return torch.randint(high, shape, generator=generator)

    return draw(16, BS, DEPTH + 1), draw(DEPTH, BS), draw(2**40, BS)


class Group:
    """A group of two ranks that take turns, rank 0 first."""

    world_size = 2

    def __init__(self):
        self.rank, self.sent, self.broadcasts = 0, None, 0

    def broadcast(self, tensor: torch.Tensor, src: int) -> torch.Tensor:
        assert src == 0 and tensor.is_contiguous()
        self.broadcasts += 1
        if self.rank == 0:
            self.sent = tensor.clone()
        return tensor.copy_(self.sent)


@pytest.fixture
def group(monkeypatch):
    group = Group()
    monkeypatch.setattr(ddtree_tensor_parallel, "get_tp_group", lambda: group)
    return group


def as_lists(paths):
    return [part.tolist() for part in paths]


def test_rank_0s_paths_reach_the_others(group):
    mine, theirs = random_paths(0), random_paths(1)
    assert as_lists(mine) != as_lists(theirs)
    assert as_lists(broadcast_ddtree_paths(mine)) == as_lists(mine)
    group.rank = 1
    received = broadcast_ddtree_paths(theirs)
    assert as_lists(received) == as_lists(mine)
    assert [part.dtype for part in received] == [torch.int64] * 3
    assert [part.shape for part in received] == [part.shape for part in mine]
    assert group.broadcasts == 2  # one a rank: a step costs one collective


def committed_by(monkeypatch, group, rank: int, is_all_greedy: bool) -> list:
    """What `verify` commits on a rank whose own paths are `random_paths(rank)`."""
    seen = {}
    monkeypatch.setattr(group, "rank", rank)
    monkeypatch.setattr(dflash_info, "commit_ddtree_paths", lambda **given: seen.update(given))
    verify_input = SimpleNamespace(
        tree=SimpleNamespace(token_ids=None),
        _adjust_logits=lambda logits: logits,
        _greedy_tree_paths=lambda logits: random_paths(rank),
        _sample_tree_paths=lambda logits, info: random_paths(rank),
    )
    dflash_info.DDTreeVerifyInput.verify(
        verify_input,
        batch=SimpleNamespace(sampling_info=SimpleNamespace(is_all_greedy=is_all_greedy)),
        logits_output=SimpleNamespace(next_token_logits=None),
        page_size=1,
    )
    return as_lists(seen[name] for name in ("accepted_paths", "accept_lens", "bonus"))


@pytest.mark.parametrize("is_all_greedy", [True, False])
@pytest.mark.parametrize(("tp_size", "broadcasts"), [(1, 0), (2, 2)])
def test_verify_commits_what_was_broadcast(monkeypatch, group, tp_size, broadcasts, is_all_greedy):
    """With one rank nothing is sent, and each commits its own: the mutant without a broadcast."""
    args = SimpleNamespace(enable_nan_detection=False, tp_size=tp_size)
    monkeypatch.setattr(dflash_info, "get_global_server_args", lambda: args)
    first, second = (committed_by(monkeypatch, group, rank, is_all_greedy) for rank in range(2))
    assert group.broadcasts == broadcasts
    assert first == as_lists(random_paths(0))
    assert (second == first) == (tp_size > 1)
