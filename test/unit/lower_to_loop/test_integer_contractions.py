# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of integer matrices, which wrap, as torch has them: constants or not, of any integer type and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qcomp

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional

DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
SHAPES = (
    ((3, 5), (5, 7)), ((2, 33), (33, 1)), ((7, 1), (1, 3)), ((2, 3, 4), (4, 6)), ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (4, 3)), ((3, 0), (0, 2)), ((0, 3), (3, 2)),
)  # fmt: skip


def whole(dtype: Any, *shape: int, seed: int) -> Any:
    """Numbers over the whole range of the type."""
    limits, generator = torch.iinfo(dtype), torch.Generator().manual_seed(seed)
    return torch.randint(limits.min, limits.max, shape, generator=generator, dtype=dtype)


class Products(torch.nn.Module):
    """Each product with a constant, with an input, and as a linear with a bias; `_int_mm`; a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.cases = [(dtype, left, right) for dtype in DTYPES for left, right in SHAPES]
        self.inputs = [whole(dtype, *left, seed=at) for at, (dtype, left, _) in enumerate(self.cases)]
        self.inputs += [whole(dtype, *right, seed=100 + at) for at, (dtype, _, right) in enumerate(self.cases)]
        self.inputs += [whole(torch.int8, 32, 8, seed=7), whole(torch.int64, 1, 2, 5, 6, seed=8)]
        for at, (dtype, _, right) in enumerate(self.cases):
            self.register_buffer(f"w{at}", whole(dtype, *right, seed=200 + at))
            self.register_buffer(f"b{at}", whole(dtype, right[-1], seed=300 + at))
        self.register_buffer("head", whole(torch.int8, 8, 16, seed=9))
        self.register_buffer("taps", whole(torch.int64, 3, 2, 3, 2, seed=10))

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        found: list[Any] = []
        for at, (_, _, right) in enumerate(self.cases):
            x, w = inputs[at], getattr(self, f"w{at}")
            found += [x @ w, x @ inputs[at + len(self.cases)]]
            if len(right) == 2 and x.ndim == 2 and 0 not in (*x.shape, *right):
                found.append(F.linear(x, w.t(), getattr(self, f"b{at}")))
        found.append(torch._int_mm(inputs[-2], self.head))
        found.append(F.conv2d(inputs[-1], self.taps, stride=2, padding=1))
        return tuple(found)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_integer_products(target: str) -> None:
    model = Products().eval()
    inputs = tuple(model.inputs)
    want = model(*inputs)
    program: Any = torch.export.export(model, inputs)
    artifact = qcomp.compile(program, target=target, opt_level=2)
    reference = qcomp.interpret(qcomp.from_torch(program), *(value.numpy() for value in inputs))
    for place, (one, two, other) in enumerate(zip(want, artifact(*inputs), reference, strict=True)):
        assert one.dtype == two.dtype and torch.equal(one, two), place
        assert np.array_equal(one.numpy(), other), place
