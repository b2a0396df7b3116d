# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adaptive pools of images all of whose sizes are symbols, the number of channels too."""

from __future__ import annotations

import torch
from eager import Call
from torch.export import Dim
from torch.nn import functional as F

import qcomp

T = torch.Tensor


def pools(x: T, y: T, z: T) -> tuple[T, ...]:
    return (
        F.adaptive_max_pool1d(x, 3), F.adaptive_max_pool2d(y, (2, 5)), F.adaptive_max_pool3d(z, (1, 2, 3)),
        F.adaptive_max_pool2d((y * 9).to(torch.int32).to(torch.float32), 1), F.adaptive_avg_pool2d(y, (2, 5)),
    )  # fmt: skip


def images(b: int, c: int, h: int, w: int) -> tuple[T, T, T]:
    return torch.randn(b, c, h), torch.randn(b, c, h, w), torch.randn(b, c, h, w, 4)


def test_adaptive_pools_over_symbols() -> None:
    """Windows that overlap, that repeat elements, and sizes of 1."""
    names = [Dim(name, min=1, max=40) for name in "bchw"]
    dims = tuple(dict(enumerate(names[:rank])) for rank in (3, 4, 4))
    program = torch.export.export(Call(pools), images(2, 3, 7, 6), dynamic_shapes=(dims,))
    artifact = qcomp.compile(program, target="generic", opt_level=1)
    for sizes in ((2, 3, 7, 6), (1, 1, 1, 1), (3, 17, 2, 11), (1, 33, 9, 1)):
        values = images(*sizes)
        *largest, mean = pools(*values)
        *found, average = artifact(*values)
        assert all(torch.equal(one, other) for one, other in zip(found, largest, strict=True)), sizes
        torch.testing.assert_close(average, mean)
