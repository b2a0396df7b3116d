# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of nn.conv2d and nn.linear to contraction kernels; depthwise convolutions have their own."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import LocationAttr, MemRefType, f32, i8, i32
from xdsl.dialects.memref import AllocOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array
from qcomp.dialects.nn.base import ints
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.integer_plan import IntegerPlan, integer_plan
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Border, Buffer, Layout, static_shape
from qcomp.transforms.lower_to_loop.contraction import (
    ContractionKernel,
    Geometry,
    build_contraction,
    contraction_kernel,
)
from qcomp.transforms.lower_to_loop.depthwise import is_depthwise, lower_depthwise
from qcomp.transforms.lower_to_loop.driver import Lowering, lowers
from qcomp.transforms.lower_to_loop.epilogue import Epilogue
from qcomp.transforms.lower_to_loop.layouts import padding_border
from qcomp.transforms.lower_to_loop.movement import convert


@lowers(nn.Conv2dOp)
def lower_conv2d(lowering: Lowering, op: nn.Conv2dOp) -> None:
    """A convolution over a channels-last buffer whose border holds the padding."""
    if is_depthwise(op):
        lower_depthwise(lowering, op)
        return
    border = padding_border(op)
    x = lowering.channels_last(op.input, border, op.location)
    weight = weight_array(lowering, op)
    y = lowering.define(op.result, op.location)
    residual = lowering.channels_last(op.residual, NO_BORDER, op.location) if op.residual is not None else None
    geometry, source = conv_geometry(op, x, y, residual, border, weight.shape)
    taps = weight.transpose(0, 2, 3, 1).reshape(weight.shape[0], geometry.kernel_rows * geometry.runs, geometry.run)
    shapes = [_flat(geometry, buffer) for buffer in (y, residual)]
    _call(lowering, op, geometry, taps, x, source, (y, shapes[0]), (residual, shapes[1]))


@lowers(nn.LinearOp)
def lower_linear(lowering: Lowering, op: nn.LinearOp) -> None:
    """A linear as a convolution of one run: each row of the input is a pixel."""
    x = lowering.row_major(op.input, op.location)
    weight = weight_array(lowering, op)
    channels, run = weight.shape
    rows = int(np.prod(x.sizes[:-1], dtype=np.int64))
    y = lowering.define(op.result, op.location, Layout(False))
    residual = lowering.row_major(op.residual, op.location) if op.residual is not None else None
    geometry = Geometry(1, 1, rows, channels, 1, 1, 1, run, 0, 0, (1, 1), run, 0, (0, 0))
    shape = ((1, 1, rows, channels), NO_BORDER)
    _call(lowering, op, geometry, weight[:, None, :], x, (1, 1, rows * run), (y, shape), (residual, shape))


def weight_array(lowering: Lowering, op: nn.WeightedOp) -> Array:
    """The constant weight of `op`. Raises QcompError when it is not constant."""
    weight = lowering.array(op.weight)
    if weight is None:
        raise QcompError.at(op, "weight must be a constant", code="lower")
    return weight


def plan_of(lowering: Lowering, op: nn.WeightedOp, weight: Array) -> IntegerPlan | None:
    """The integer plan of a quantized op; None for a float one."""
    source, held = encoding_of(op.input.type), encoding_of(op.weight.type)
    if source is None or held is None:
        return None
    bias = lowering.array(op.bias) if op.bias is not None else None
    return integer_plan(
        weight, source, held, encoding_of(op.result.type), bias=bias,
        bias_encoding=encoding_of(op.bias.type) if op.bias is not None else None,
        residual_encoding=encoding_of(op.residual.type) if op.residual is not None else None,
        activation=op.activation.bounds if op.activation is not None else None,
    )  # fmt: skip


def conv_geometry(
    op: nn.Conv2dOp, x: Buffer, y: Buffer, residual: Buffer | None, border: Border, weight: tuple[int, ...]
) -> tuple[Geometry, tuple[int, int, int]]:
    """The loop nest of a convolution, and how it sees its input: [N, rows, columns * channels]."""
    batch, channels, height, width = static_shape(op.result)
    _, group, kernel_rows, kernel_columns = weight
    n, rows, columns, pixel = x.physical
    groups, stride = op.groups.value.data, ints(op.stride)
    row_step, column_step = ints(op.dilation)
    have = x.layout.border
    whole = column_step == 1 and groups == 1
    flat = (kernel_rows, kernel_columns, *stride) == (1, 1, 1, 1) and not any(
        any(buffer.layout.border) for buffer in (x, y, residual) if buffer is not None
    )
    if flat:
        batch, height, width, n, rows, columns = 1, 1, batch * height * width, 1, 1, n * rows * columns
    geometry = Geometry(
        batch, height, width, channels // groups, groups, kernel_rows, 1 if whole else kernel_columns,
        kernel_columns * pixel if whole else group, column_step * pixel, row_step, (stride[0], stride[1]), pixel,
        group, (have[0] - border[0], (have[2] - border[2]) * pixel),
    )  # fmt: skip
    return geometry, (n, rows, columns * pixel)


def _flat(geometry: Geometry, buffer: Buffer | None) -> tuple[tuple[int, ...], Border]:
    """The shape and border in which a kernel of `geometry` sees an output or residual."""
    if buffer is None:
        return (), NO_BORDER
    n, rows, columns, channels = buffer.physical
    top, bottom, left, right = buffer.layout.border
    if rows - top - bottom != geometry.height or columns - left - right != geometry.width:
        return (1, 1, n * rows * columns, channels), NO_BORDER
    return buffer.physical, buffer.layout.border


def _call(
    lowering: Lowering, op: nn.WeightedOp, geometry: Geometry, taps: Array, x: Buffer, source: tuple[int, int, int],
    output: tuple[Buffer, tuple[tuple[int, ...], Border]],
    residual: tuple[Buffer | None, tuple[tuple[int, ...], Border]],
) -> None:  # fmt: skip
    plan = plan_of(lowering, op, weight_array(lowering, op))
    clamp = op.activation.bounds if op.activation is not None else None
    if plan is None and op.residual is not None:
        raise QcompError.at(op, "a float residual is not lowered", code="lower")
    epilogue = Epilogue.of(plan) if plan is not None else Epilogue(False, clamp=clamp)
    (y, seen), (held, held_seen) = output, residual
    spec = contraction_kernel(
        lowering.target, geometry, epilogue, x.unsigned, source, seen, held_seen if held is not None else None
    )
    element = i8 if plan is not None else f32
    x = in_arena(lowering, x, geometry.run, op.location)
    arguments = [lowering.view(x, MemRefType(element, source)), lowering.constant(spec.pack_weight(taps), element)]
    arguments += channel_constants(lowering, op, plan, spec, taps)
    alias: list[tuple[int, int]] = []
    if held is not None and plan is not None and plan.residual is not None:
        arguments.append(lowering.view(held, MemRefType(i8, held_seen[0])))
        arguments.append(lowering.constant(np.array([plan.residual_multiplier], np.float32), f32))
        if held_seen == seen:
            alias.append((len(arguments), len(arguments) - 2))
    arguments.append(lowering.view(y, MemRefType(y.element, seen[0])))
    name = op.name.removeprefix("nn.")
    lowering.call(
        spec, name, lambda symbol: build_contraction(spec, symbol, op.location), arguments, op.location, alias
    )


def in_arena(lowering: Lowering, x: Buffer, run: int, where: LocationAttr) -> Buffer:
    """`x`, or a copy when reading the last group of a run would go over the end of what the caller holds."""
    base = x.value
    while isinstance(base.owner, loop.ViewOp):
        base = base.owner.source
    if isinstance(base.owner, AllocOp) or str(x.element) != "i8" or run % lowering.target.dot_group == 0:
        return x
    return convert(lowering, x, x.layout, where)


def channel_constants(
    lowering: Lowering, op: nn.WeightedOp, plan: IntegerPlan | None, spec: ContractionKernel, taps: Array
) -> list[SSAValue]:
    """The constant buffers per output channel: start, and for integers multiplier, bias, zero points."""
    if plan is None:
        bias = lowering.array(op.bias) if op.bias is not None else None
        if op.bias is not None and bias is None:
            raise QcompError.at(op, "bias must be a constant", code="lower")
        start = np.zeros(taps.shape[0], np.float32) if bias is None else bias
        return [lowering.constant(spec.pack_channels(start), f32)]
    found = [
        lowering.constant(spec.pack_channels(start_values(plan, taps)), i32),
        lowering.constant(spec.pack_channels(plan.multiplier), f32),
    ]
    if plan.shift:
        found.append(lowering.constant(spec.pack_channels(plan.bias), i32))
    return [*found, lowering.constant(zero_points(plan), i32)] if spec.epilogue.reads_zero_points else found


def start_values(plan: IntegerPlan, taps: Array) -> Array:
    """What accumulators start from: -zx * sum(wq), and the bias when it is not shifted."""
    start = -plan.input.zero_point * taps.astype(np.int64).reshape(taps.shape[0], -1).sum(axis=1)
    if not plan.shift:
        start = start + plan.bias
    return start.astype(np.int32)


def zero_points(plan: IntegerPlan) -> Array:
    """Zero points of the result and of the residual."""
    encodings = (plan.output, plan.residual)
    return np.array([0 if encoding is None else encoding.zero_point for encoding in encodings], np.int32)
