# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dimensions of size 0: nothing to compute, sums of nothing, and what surrounds nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import three_way
from layers import Program, activation, kind
from xdsl.ir import Operation

from qcomp.dialects import nn, quant
from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError

A, C, SYMMETRIC = activation(0.02, 114), activation(0.05, 99), Encoding.make(0.01, 0)
CASES: dict[str, Callable[[Program], Operation]] = {
    "relu": lambda p: nn.ReluOp(p.input((0, 3))),
    "table": lambda p: nn.TanhOp(p.input((2, 0, 3), A), kind((2, 0, 3), C)),
    "quantize": lambda p: quant.QuantizeOp(p.input((0, 3)), A),
    "broadcast": lambda p: nn.AddOp(p.input((2, 1, 3)), p.input((0, 3))),
    "softmax of nothing": lambda p: nn.SoftmaxOp(p.input((2, 0)), -1),
    "no softmax": lambda p: nn.SoftmaxOp(p.input((0, 5)), -1),
    "softmax along nothing": lambda p: nn.SoftmaxOp(p.input((0, 5)), 0),
    "layer norm of nothing": lambda p: nn.LayerNormOp(p.input((2, 0)), (0,), None, None, 1e-5),
    "sum of nothing": lambda p: nn.SumOp(p.input((3, 0)), (1,), False),
    "mean of nothing": lambda p: nn.MeanOp(p.input((0, 3)), (0,), False),
    "no mean of codes": lambda p: nn.MeanOp(p.input((0, 3), A), (1,), False, kind((0,), C)),
    "matmul over nothing": lambda p: nn.MatmulOp(p.input((3, 0)), p.input((0, 4))),
    "matmul of no rows": lambda p: nn.MatmulOp(p.input((0, 3)), p.input((3, 4))),
    "matmul of no columns": lambda p: nn.MatmulOp(p.input((2, 3, 4)), p.input((2, 4, 0))),
    "matmul of codes": lambda p: nn.MatmulOp(p.input((0, 3), A), p.codes((3, 4), SYMMETRIC), kind((0, 4), C)),
    "pad": lambda p: nn.PadOp(p.input((0, 3)), (1, 0), (0, 2), 1.5),
    "cat": lambda p: nn.CatOp([p.input((0, 3)), p.input((2, 3))], 0),
    "permute": lambda p: nn.PermuteOp(p.input((0, 3, 2)), (2, 0, 1)),
    "reshape": lambda p: nn.ReshapeOp(p.input((0, 3, 2)), (6, 0)),
    "slice": lambda p: nn.SliceOp(p.input((5, 3)), 0, 2, 2),
    "expand": lambda p: nn.ExpandOp(p.input((1, 3)), (0, 3)),
    "linear": lambda p: nn.LinearOp(p.input((0, 3)), p.reals((4, 3))),
    "convolution": lambda p: nn.Conv2dOp(p.input((0, 3, 5, 5)), p.reals((4, 3, 3, 3)), padding=(1, 1)),
    "pool": lambda p: nn.MaxPool2dOp(p.input((0, 3, 5, 5)), (2, 2), (1, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_empty(name: str) -> None:
    p = Program(1)
    three_way.check(p.module(p.add(CASES[name](p))), *p.arrays)


def test_the_largest_of_nothing_is_refused() -> None:
    p = Program(2)
    with pytest.raises(QcompError, match="the largest of no elements"):
        three_way.lower(p.module(p.add(nn.AmaxOp(p.input((3, 0)), (1,), False))), three_way.TARGETS[0])
