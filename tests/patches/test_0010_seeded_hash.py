# SPDX-License-Identifier: Apache-2.0
"""What seeded sampling needs on a CPU: the hash, and a server that may be deterministic."""

import pytest
import torch
import triton
from sglang.srt import server_args
from sglang.srt.layers.utils import hash as hash_module
from sglang.srt.layers.utils.hash import murmur_hash32, murmur_hash32_kernel


def by_kernel(seed, positions, columns):
    """The real Triton kernel under the interpreter."""
    n, m = seed.shape[0], columns.shape[0]
    out = torch.empty((n, m), dtype=torch.uint32)
    grid = (n, triton.cdiv(m, 1024))
    murmur_hash32_kernel[grid](seed, positions, columns, out, n, m, BLOCK_SIZE=1024)
    return out.to(torch.int64)


# Seeds and columns at the edges of their ranges, and of the hash's 32-bit halves.
SEEDS = [0, 1, 42, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 7, 2**63 - 1, -1, -(2**63)]


def test_the_hash_is_the_kernels():
    generator = torch.Generator().manual_seed(0)
    random_seeds = torch.randint(-(2**63), 2**63 - 1, (20,), generator=generator)
    seed = torch.cat([torch.tensor(SEEDS), random_seeds])
    positions = torch.randint(0, 2**31 - 1, seed.shape, generator=generator)
    columns = torch.cat([torch.arange(60), torch.tensor([1023, 1024, 151_935, 2**31 - 1])])
    expected = by_kernel(seed.view(torch.uint64), positions, columns)
    for given in (seed, seed.view(torch.uint64)):
        found = murmur_hash32(given, positions, columns)
        assert found.shape == expected.shape
        assert torch.equal(found.to(torch.int64), expected)
    assert expected.unique().numel() > 0.99 * expected.numel()


def test_other_devices_launch_the_kernel(monkeypatch):
    """Shapes only: a block of 1024 columns for each row."""
    grids = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *args, **how: grids.append(grid)

    monkeypatch.setattr(hash_module, "murmur_hash32_kernel", Kernel())
    seed = torch.zeros(3, dtype=torch.uint64, device="meta")
    positions = torch.zeros(3, dtype=torch.int64, device="meta")
    hashed = murmur_hash32(seed, positions, torch.arange(2000, device="meta"))
    assert (hashed.shape, hashed.dtype, hashed.device.type) == ((3, 2000), torch.uint32, "meta")
    assert grids == [(3, 2)]


def test_torch_native_may_be_deterministic_on_a_cpu():
    assert "torch_native" in server_args.DETERMINISTIC_ATTENTION_BACKEND_CHOICES


@pytest.mark.parametrize("shape", [(2,), (1, 1)])
def test_shapes_that_do_not_fit_are_refused_as_before(shape):
    with pytest.raises(AssertionError):
        murmur_hash32(torch.zeros(shape, dtype=torch.int64), torch.zeros(3), torch.arange(4))
