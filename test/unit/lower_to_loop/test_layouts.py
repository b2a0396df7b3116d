# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images lie channels last, other tensors row-major, and ops between them agree in bits whichever they meet."""

from __future__ import annotations

import pytest
import three_way
from layers import Program, activation, kind
from xdsl.dialects.func import CallOp
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding

A, B, C = activation(0.02, 114), activation(0.031, 7), activation(0.05, 99)


def convolution(
    p: Program, x: SSAValue, inputs: int, outputs: int, size: tuple[int, ...], target: Encoding
) -> SSAValue:
    """A 3x3 convolution of codes with padding."""
    weight = p.codes((outputs, inputs, 3, 3), p.weight_encoding(outputs))
    return p.add(
        nn.Conv2dOp(x, weight, stride=(1, 1), padding=(1, 1), result_type=kind((size[0], outputs, *size[1:]), target))
    )


def linear(p: Program, x: SSAValue, shape: tuple[int, ...], outputs: int, target: Encoding) -> SSAValue:
    """A linear of codes over the last dimension."""
    weight = p.codes((outputs, shape[-1]), p.weight_encoding(outputs))
    return p.add(nn.LinearOp(x, weight, result_type=kind((*shape[:-1], outputs), target)))


def kernels(p: Program, *results: SSAValue) -> list[str]:
    """The kernels that main calls on the widest target, checked at all levels before."""
    module = p.module(*results)
    three_way.check(module, *p.arrays)
    lowered = three_way.lower(module, three_way.TARGETS[-1])
    return [op.callee.string_value().rsplit("_", 1)[0] for op in lowered.walk() if isinstance(op, CallOp)]


@pytest.mark.parametrize("padded", [False, True])
def test_permutes_between_images_and_rows_are_views(padded: bool) -> None:
    """As in a ConvNeXt block: channels last is the memory order already; only a border asks for a copy."""
    p = Program(1)
    image = convolution(p, p.input((2, 5, 6, 7), A), 5, 19, (2, 6, 7), B)
    rows = p.add(nn.PermuteOp(image, (0, 2, 3, 1), kind((2, 6, 7, 19), B)))
    rows = linear(p, rows, (2, 6, 7, 19), 23, C)
    back = p.add(nn.PermuteOp(rows, (0, 3, 1, 2), kind((2, 23, 6, 7), C)))
    if padded:
        last = convolution(p, back, 23, 9, (2, 6, 7), A)
    else:
        last = p.add(nn.MaxPool2dOp(back, (2, 2), (2, 2)))
    found = kernels(p, p.add(nn.ReluOp(last)))
    assert found.count("linear") == 1 and found.count("permute") == int(padded)


def test_linear_in_the_middle_of_images() -> None:
    """A linear along the width of an image, whose result a convolution reads as an image."""
    p = Program(2)
    image = convolution(p, p.input((1, 3, 4, 18), A), 3, 5, (1, 4, 18), B)
    wide = p.add(nn.ReluOp(linear(p, image, (1, 5, 4, 18), 11, C), kind((1, 5, 4, 11), C)))
    kernels(p, convolution(p, wide, 5, 6, (1, 4, 11), A), wide)


def test_attention_shapes_are_row_major() -> None:
    """Tensors of rank 4 that no convolution sees are not turned around."""
    p = Program(3)
    x, y = p.input((2, 3, 5, 18)), p.input((2, 3, 5, 18))
    total = p.add(nn.AddOp(x, y))
    found = kernels(p, p.add(nn.ReluOp(total)), p.add(nn.MulOp(total, y)))
    assert sorted(found) == ["add", "mul", "relu"]


def test_permutes_that_move_only_single_elements() -> None:
    p = Program(4)
    x = p.add(nn.ReluOp(p.input((1, 6, 1, 9))))
    found = kernels(
        p, p.add(nn.ReluOp(p.add(nn.PermuteOp(x, (2, 1, 3, 0))))), p.add(nn.NegOp(p.add(nn.PermuteOp(x, (3, 1, 2, 0)))))
    )
    assert found.count("permute") == 1
