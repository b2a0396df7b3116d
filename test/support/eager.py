# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of tensors, exported, imported, interpreted and compared with eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from xdsl.dialects.func import FuncOp

from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

Case = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]


def r(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def ints(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Integers from -9 to 8."""
    return torch.randint(-9, 9, shape, generator=torch.Generator().manual_seed(1)).to(dtype)


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def compare(
    function: Callable[..., Any], *inputs: torch.Tensor, tolerance: float = 2e-6, decomposed: bool = True
) -> None:
    """`function` pre-dispatch and, with `decomposed`, in core ATen: types, shapes and numbers of eager."""
    model = Call(function).eval()
    with torch.no_grad():
        expected = tree_leaves(model(*(value.clone() for value in inputs)))
    program = torch.export.export(model, inputs)
    for form in (program, program.run_decompositions()) if decomposed else (program,):
        module = from_torch(form)
        main = module.body.block.first_op
        assert isinstance(main, FuncOp) and main.res_attrs is not None
        names = [str(attributes.data["nn.name"]) for attributes in main.res_attrs]
        found = interpret(module, *(value.numpy() for value in inputs))
        for name, left, right in zip(names, found, expected, strict=True):
            right = right.numpy()
            assert (left.dtype, left.shape) == (right.dtype, right.shape), name
            if right.dtype.kind == "f":
                assert np.allclose(left, right, tolerance, tolerance, equal_nan=True), name
            else:
                assert np.array_equal(left, right), name
