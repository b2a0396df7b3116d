# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bounds and indices that are negative sizes, ranges that count down, and sizes that only an op makes equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim, export

import qcomp
from qcomp.transforms.specialize_dims import resolve

TABLE = torch.randn(64, 4)
Formula = Callable[..., Tensor]


class Model(torch.nn.Module):
    def __init__(self, formulas: Sequence[Formula]):
        super().__init__()
        self.formulas = formulas

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(formula(*inputs) for formula in self.formulas)


def exported(formulas: Sequence[Formula], *inputs: Tensor, dims: Any) -> torch.export.ExportedProgram:
    return export(Model(formulas), inputs, dynamic_shapes={"inputs": dims})


@pytest.fixture(autouse=True)
def seed() -> None:
    """Sums that nearly cancel would be compared beside their rounding."""
    torch.manual_seed(0)


def assert_equal(found: Sequence[Any], formulas: Sequence[Formula], *inputs: Tensor) -> None:
    for number, (result, wanted) in enumerate(zip(found, Model(formulas)(*inputs), strict=True)):
        message = f"formula {number} at {[tuple(value.shape) for value in inputs]}"
        torch.testing.assert_close(torch.as_tensor(result), wanted, msg=message)


def test_some_sizes_fixed_under_guards_over_more() -> None:
    dims = ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},)
    module = qcomp.from_torch(exported([lambda x: x[:, : x.shape[1] - 3]], torch.randn(2, 12, 4), dims=dims))
    ((name, size),) = resolve(module, {"inputs_0.1": 12}).items()
    assert size == 12
    with pytest.raises(qcomp.QcompError, match=f"does not work for {name} = 4: it needs {name} != 4"):
        resolve(module, {name: 4})


FROM_1 = (
    lambda x: x + TABLE[-x.shape[1] :],
    lambda x: torch.slice_scatter(torch.zeros(1, 64, 4).expand(x.shape[0], 64, 4), x, 1, -x.shape[1], 64),
    lambda x: TABLE[-2 * x.shape[1] : -x.shape[1]] * x,
    # The position bias of a decoder that may have a cache (T5).
    lambda x: x @ x.transpose(1, 2) + (torch.arange(64.0)[:, None] - torch.arange(64.0))[-x.shape[1] :, : x.shape[1]],
    lambda x: TABLE[: -x.shape[1]].sum(0),
)  # fmt: skip
FROM_0 = (
    lambda x: x + TABLE[-x.shape[1]],
    lambda x: TABLE.narrow(0, -x.shape[1], x.shape[1]) - x,
    lambda x: x + TABLE[64 - x.shape[1] :],
    lambda x: x @ torch.eye(4) + torch.eye(x.shape[1], 4),
    lambda x: torch.eye(x.shape[1]) @ x,
    lambda x: x * torch.eye(3, x.shape[1], dtype=torch.bool)[1][:, None],
    lambda x: x[..., 0] + torch.arange(x.shape[1] - 1, -1, -1),
    lambda x: x.sum() + torch.arange(2 * x.shape[1], -1, -3, dtype=torch.int32),
)  # fmt: skip


def test_negative_bounds() -> None:
    program = exported(FROM_1, torch.randn(2, 12, 4), dims=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
    module, artifact = qcomp.from_torch(program), qcomp.compile(program, opt_level=1)
    for batch, size in ((2, 12), (3, 31), (1, 5), (2, 1), (0, 7), (1, 32)):
        x = torch.randn(batch, size, 4)
        assert_equal(artifact(x), FROM_1, x)
        assert_equal(qcomp.interpret(module, x.numpy()), FROM_1, x)
    for size in (0, 33):  # A[-0:] is all of A, and 2 * 33 elements are more than there are.
        with pytest.raises(qcomp.QcompError, match=r"dimension 1 of input|does not work for"):
            artifact(torch.randn(2, size, 4))


@pytest.mark.parametrize("least", [0, 4])
def test_sizes_that_may_be_0(least: int) -> None:
    dims = {0: Dim.DYNAMIC, 1: Dim("n", min=least, max=64)}
    program = exported(FROM_0, torch.randn(2, 12, 4), dims=(dims,))
    module, artifact = qcomp.from_torch(program), qcomp.compile(program, opt_level=1)
    for batch, size in ((2, 12), (3, 64), (1, 4), (0, 9), (2, 63), (2, 1), (2, 0)):
        x = torch.randn(batch, size, 4)
        if size < least:
            with pytest.raises(qcomp.QcompError, match="allowed are 4 to 64"):
                artifact(x)
            continue
        assert_equal(artifact(x), FROM_0, x)
        assert_equal(qcomp.interpret(module, x.numpy()), FROM_0, x)


def test_sizes_that_an_op_makes_equal() -> None:
    base = torch.arange(28.0).reshape(7, 4)
    formulas: Sequence[Formula] = (
        lambda x, index: torch.index_put(base, (index,), x),
        lambda x, index: torch.index_put(base, (index,), x, accumulate=True),
        lambda x, index: base.index_copy(0, index, x),
        lambda x, index: base.index_reduce(0, index, x, "amax"),
        lambda x, index: base.index_add(0, index, x),
    )
    rows = {0: Dim.DYNAMIC}
    for kinds in (formulas[:1], formulas[3:4], formulas):
        program = exported(kinds, torch.randn(5, 4), torch.tensor([6, 0, 3, 1, 2]), dims=(rows, rows))
        module = qcomp.from_torch(program)
        for size in (5, 1, 0, 7):
            x, index = torch.randn(size, 4), torch.randperm(7)[:size]
            assert_equal(qcomp.interpret(module, x.numpy(), index.numpy()), kinds, x, index)
        with pytest.raises(qcomp.QcompError, match=r"dimension 0 of input .* is 3, expected"):
            qcomp.interpret(module, torch.randn(2, 4).numpy(), torch.tensor([4, 5, 6]).numpy())
