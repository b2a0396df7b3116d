# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on values of one dtype, for ops that are imported as several."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.frontend.builder import Builder, Number, dtype_of, shape_of
from qcomp.frontend.ops.shape import permute_to, reshape_to

Operand = SSAValue | Number


def _value(b: Builder, operand: Operand, like: SSAValue) -> SSAValue:
    return operand if isinstance(operand, SSAValue) else b.scalar(operand, dtype_of(like))


def add(b: Builder, left: SSAValue, right: Operand) -> SSAValue:
    """left + right, with broadcasting; a number takes the dtype of `left`."""
    return b.add(nn.AddOp(left, _value(b, right, left)))


def subtract(b: Builder, left: SSAValue, right: Operand) -> SSAValue:
    """left - right."""
    return b.add(nn.SubOp(left, _value(b, right, left)))


def multiply(b: Builder, left: SSAValue, right: Operand) -> SSAValue:
    """left * right."""
    return left if isinstance(right, int | float) and right == 1 else b.add(nn.MulOp(left, _value(b, right, left)))


def divide(b: Builder, left: SSAValue, right: Operand) -> SSAValue:
    """left / right."""
    return b.add(nn.DivOp(left, _value(b, right, left)))


def total(b: Builder, value: SSAValue, axes: Sequence[int], keep: bool = False) -> SSAValue:
    """The sum over `axes`."""
    return b.add(nn.SumOp(value, axes, keep)) if axes else value


def centred(b: Builder, value: SSAValue, axes: Sequence[int]) -> tuple[SSAValue, SSAValue]:
    """Return (mean, value - mean) over `axes`, which are kept; the difference of equal elements is exactly 0."""
    mean = b.add(nn.MeanOp(value, axes, True, shifted=True))
    return mean, subtract(b, value, mean)


def exchanged(b: Builder, value: SSAValue) -> SSAValue:
    """The transpose of each matrix."""
    rank = len(shape_of(value))
    return permute_to(b, value, (*range(rank - 2), rank - 1, rank - 2))


def per_channel(b: Builder, value: SSAValue, like: SSAValue) -> SSAValue:
    """A vector over axis 1 of `like`, shaped to broadcast with it."""
    return reshape_to(b, value, (*shape_of(value), *(1 for _ in shape_of(like)[2:])))


def scaled_and_shifted(b: Builder, value: SSAValue, weight: SSAValue | None, bias: SSAValue | None) -> SSAValue:
    """value * weight + bias per channel of axis 1, as far as they are given."""
    value = value if weight is None else multiply(b, value, per_channel(b, weight, value))
    return value if bias is None else add(b, value, per_channel(b, bias, value))


def sum_axes_where(b: Builder, value: SSAValue, labels: Sequence[object], keep: set[object]) -> SSAValue:
    """`value`, whose dimensions are called `labels`, summed over those not in `keep`."""
    return total(b, value, [axis for axis, label in enumerate(labels) if label not in keep])
