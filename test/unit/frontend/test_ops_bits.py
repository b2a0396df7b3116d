# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""view(dtype): bits as elements of another type, of any width, in bits on every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from eager import Call
from torch.export import Dim

import qcomp

NAMES = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64"
DTYPES = [getattr(torch, name) for name in NAMES.split()]
T = torch.Tensor


def raw(value: T) -> np.ndarray[Any, Any]:
    """The array of a tensor, bfloat16 as its bits."""
    return value.view(torch.int16).numpy().view(np.uint16) if value.dtype == torch.bfloat16 else value.numpy()


def samples(*shape: int) -> list[T]:
    """Random bits in each type: negative numbers, NaN and denormals are among them."""
    generator, sizes = torch.Generator().manual_seed(3), (*shape[:-1], shape[-1] * 8)
    bits = torch.randint(0, 256, sizes, generator=generator, dtype=torch.uint8)
    return [bits[..., : shape[-1] * dtype.itemsize].contiguous().view(dtype) for dtype in DTYPES]


def all_views(*values: T) -> tuple[T, ...]:
    """Each of each, once computed before and once after: neither argument nor result lies as the caller has it."""
    found = [value.view(dtype) for value in values for dtype in DTYPES]
    found += [value.transpose(0, 1).contiguous().view(torch.uint8).sum(0) for value in values]
    found += [value.view(torch.uint8).view(torch.int32) + 1 for value in values]
    return tuple(found)


@pytest.mark.parametrize("target", ["generic", "native"])
def test_all_pairs_of_types(target: str) -> None:
    inputs = tuple(samples(3, 2, 8))
    module = qcomp.from_torch(torch.export.export(Call(all_views), inputs))
    artifact = qcomp.compile(module, target=target, opt_level=1)
    arrays = [raw(value) for value in inputs]
    reference = qcomp.interpret(module, *arrays)
    for place, (want, have, held) in enumerate(zip(all_views(*inputs), artifact.run(arrays), reference, strict=True)):
        assert raw(want).dtype == have.dtype and raw(want).tobytes() == have.tobytes() == held.tobytes(), place


def test_symbolic_and_empty_sizes() -> None:
    def views(x: T) -> tuple[T, T, T]:
        return x.view(torch.int16), x.view(torch.int32) + 1, x.view(torch.int64)

    sizes = {0: Dim("b", min=0, max=9)}
    program = torch.export.export(Call(views), (torch.randn(3, 4),), dynamic_shapes=((sizes,),))
    artifact = qcomp.compile(program, target="generic", opt_level=1)
    for rows in (3, 0, 1, 7):
        x = torch.randn(rows, 4)
        assert all(torch.equal(one, other) for one, other in zip(artifact(x), views(x), strict=True))


def test_a_write_through_a_view() -> None:
    def write(x: T) -> T:
        y = x.clone()
        y.view(torch.int32)[:, 1].add_(7)
        y.view(torch.uint8)[0, 3] = 0
        return y

    x = torch.randn(3, 4)
    (found,) = qcomp.interpret(qcomp.from_torch(torch.export.export(Call(write), (x,))), x.numpy())
    assert found.tobytes() == write(x).numpy().tobytes()


def test_numbers_and_truth_values() -> None:
    x, t = torch.tensor(2.5), torch.tensor([True, False, True])
    module = qcomp.from_torch(torch.export.export(Call(lambda x, t: (x.view(torch.int32), t.view(torch.int8))), (x, t)))
    one, other = qcomp.compile(module, target="generic", opt_level=1).run([x.numpy(), t.numpy()])
    assert int(one) == x.view(torch.int32).item() and list(other) == [1, 0, 1]
    program = torch.export.export(Call(lambda x: x.view(torch.bool)), (torch.tensor([1, 0], dtype=torch.uint8),))
    with pytest.raises(qcomp.QcompError, match="the bits of uint8 as bool are not supported"):
        qcomp.from_torch(program)
