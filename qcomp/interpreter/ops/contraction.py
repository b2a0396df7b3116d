# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, linear and matmul. Integer arithmetic when input and weight are both quantized."""

from __future__ import annotations

from typing import Any

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints, tensor
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.dispatch import Arrays, meaning, real_value
from qcomp.interpreter.reference import contraction
from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.integer_plan import IntegerPlan, integer_plan, matmul_plan


def plan_of(op: nn.WeightedOp, weight: Array, bias: Array | None) -> IntegerPlan | None:
    """The integer plan of a convolution or linear, given its stored weight and bias; None when it computes in float.

    Raises QcompError "not-integer" when input and weight are quantized but there is no integer form.
    """
    source, weights = encoding_of(op.input.type), encoding_of(op.weight.type)
    if source is None or weights is None:
        return None
    bias_encoding = None if op.bias is None else encoding_of(op.bias.type)
    if op.bias is not None and bias is not None and bias_encoding is None:
        bias = real_value(bias, tensor(op.bias))
    return integer_plan(
        weight, source, weights, encoding_of(op.result.type), bias=bias, bias_encoding=bias_encoding,
        residual_encoding=None if op.residual is None else encoding_of(op.residual.type),
        activation=activation_bounds(op),
    )  # fmt: skip


def activation_bounds(op: nn.WeightedOp) -> tuple[float, float] | None:
    """The bounds of the op's fused activation."""
    return None if op.activation is None else op.activation.bounds


def _named(op: nn.WeightedOp, arrays: Arrays) -> tuple[Array, Array, Array | None, Array | None]:
    rest = list(arrays[2:])
    bias = rest.pop(0) if op.bias is not None else None
    residual = rest.pop(0) if op.residual is not None else None
    return arrays[0], arrays[1], bias, residual


def _stored(op: nn.WeightedOp, arrays: Arrays) -> tuple[Array, Array, Array | None, Array | None]:
    value, weight, bias, residual = _named(op, arrays)
    if residual is not None and op.residual is not None and encoding_of(op.residual.type) is None:
        residual = real_value(residual, tensor(op.residual))
    return value, weight, bias, residual


def _window(op: nn.ConvolutionOp) -> dict[str, Any]:
    return {
        "stride": ints(op.stride), "padding": op.padding_pairs,
        "dilation": ints(op.dilation), "groups": op.groups.value.data,
    }  # fmt: skip


def _integer_convolution(op: nn.ConvolutionOp, arrays: Arrays) -> Array | None:
    value, weight, bias, residual = _stored(op, arrays)
    plan = plan_of(op, weight, bias)
    return None if plan is None else contraction.integer_convolution(value, weight, plan, residual, **_window(op))


@meaning(*nn.CONVOLUTIONS, coded=_integer_convolution)
def _convolution(op: nn.ConvolutionOp, arrays: Arrays) -> Array:
    value, weight, bias, residual = _named(op, arrays)
    return contraction.convolution(value, weight, bias, residual, activation_bounds(op), **_window(op))


def _steps(op: nn.ConvTransposeOp) -> dict[str, Any]:
    return {
        "stride": ints(op.stride), "padding": ints(op.padding), "output_padding": ints(op.output_padding),
        "dilation": ints(op.dilation), "groups": op.groups.value.data,
    }  # fmt: skip


def _integer_transposed(op: nn.ConvTransposeOp, arrays: Arrays) -> Array | None:
    value, weight, bias, residual = _stored(op, arrays)
    plan = plan_of(op, weight, bias)
    if plan is None:
        return None
    return contraction.integer_transposed_convolution(value, weight, plan, residual, **_steps(op))


@meaning(*nn.TRANSPOSED, coded=_integer_transposed)
def _transposed(op: nn.ConvTransposeOp, arrays: Arrays) -> Array:
    return contraction.transposed_convolution(*_named(op, arrays), activation_bounds(op), **_steps(op))


def _integer_linear(op: nn.LinearOp, arrays: Arrays) -> Array | None:
    value, weight, bias, residual = _stored(op, arrays)
    plan = plan_of(op, weight, bias)
    return None if plan is None else contraction.integer_linear(value, weight, plan, residual)


@meaning(nn.LinearOp, coded=_integer_linear)
def _linear(op: nn.LinearOp, arrays: Arrays) -> Array:
    return contraction.linear(*_named(op, arrays), activation_bounds(op))


def _integer_matmul(op: nn.MatmulOp, arrays: Arrays) -> Array | None:
    left, right = encoding_of(op.lhs.type), encoding_of(op.rhs.type)
    if left is None or right is None:
        return None
    if right.axis is not None and right.axis != arrays[1].ndim - 1:
        raise QcompError(
            "right side is quantized along another dimension than its last", code="not-integer",
            hint="leave the op between dequantize and quantize",
        )  # fmt: skip
    plan = matmul_plan(arrays[0].shape[-1], left, right, encoding_of(op.result.type))
    return contraction.integer_matmul(arrays[0], arrays[1], plan)


@meaning(nn.MatmulOp, coded=_integer_matmul)
def _matmul(op: nn.MatmulOp, arrays: Arrays) -> Array:
    return contraction.matmul(arrays[0], arrays[1])
