# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of convolutions and linear to contraction kernels; depthwise convolutions have their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from xdsl.dialects.builtin import LocationAttr, f32, i8, i16, i32
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.nn.base import ints
from qcomp.interpreter.reference.integer_plan import IntegerPlan
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Border, Buffer, Layout, no_border
from qcomp.transforms.lower_to_loop.contraction import (
    ContractionKernel,
    Geometry,
    build_contraction,
    contraction_kernel,
)
from qcomp.transforms.lower_to_loop.depthwise import Strided, lower_depthwise
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.halves import patterns
from qcomp.transforms.lower_to_loop.layouts import padding_border
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.stored import parameter_constants, store
from qcomp.transforms.lower_to_loop.through_reals import reals_of
from qcomp.transforms.lower_to_loop.weighted import Task, contraction_task, in_arena, start_values

Place = tuple[tuple[int, ...], Border, tuple[int, int]]
"""The shape and border that a kernel sees, the planes of an image in it and the first one."""
_ONE_PLANE = (1, 0)


@dataclass(frozen=True)
class Sliding:
    """How the kernel of a two-dimensional convolution moves, and its padding."""

    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    border: Border

    @staticmethod
    def of(op: nn.Conv1dOp | nn.Conv2dOp) -> Sliding:
        """Of one in two dimensions, or in one seen as an image of one row."""
        (*_, across), (*_, apart) = ints(op.stride), ints(op.dilation)
        down, below = (ints(op.stride)[0], ints(op.dilation)[0]) if op.SPATIAL == 2 else (1, 1)
        border = (*(0,) * (4 - 2 * op.SPATIAL), *padding_border(op))
        return Sliding((down, across), (below, apart), op.groups.value.data, border)


@lowers(nn.Conv1dOp, nn.Conv2dOp, elements=REALS, symbolic=True)
def lower_convolution(lowering: Lowering, op: nn.Conv1dOp | nn.Conv2dOp) -> None:
    """A convolution over a channels-last buffer whose border holds the padding."""
    x = lowering.channels_last(op.input, padding_border(op), op.location)
    target = lowering.define(op.result, op.location)
    with contraction_task(lowering, op, target) as task:
        x = image_of(lowering, x if task.plan is not None else reals_of(lowering, x, op.location))
        residual = None
        if op.residual is not None and task.residual:
            plain = no_border(len(target.sizes))
            residual = image_of(lowering, lowering.channels_last(op.residual, plain, op.location))
        y = image_of(lowering, task.target)
        weight = task.weight.reshape(*task.weight.shape[:2], *(1,) * (4 - task.weight.ndim), *task.weight.shape[2:])
        sliding = Sliding.of(op)
        if sliding.groups > 1 and sliding.groups == x.sizes[1] == weight.shape[0]:
            have, border = x.layout.border, sliding.border
            origin = (have[0] - border[0], have[2] - border[2])
            spec = Strided(weight.shape[2:], sliding.stride, sliding.dilation, origin, (y.sizes[2], y.sizes[3]))
            lower_depthwise(lowering, task, weight.reshape(weight.shape[0], -1), spec, (x, y, residual), op.location)
            return
        geometry, source = conv_geometry(sliding, x, y, residual, weight.shape)
        rows = geometry.kernel_rows * geometry.runs
        taps = weight.transpose(0, 2, 3, 1).reshape(weight.shape[0], rows, geometry.run)
        outputs = [(y, _flat(geometry, y))] + ([] if residual is None else [(residual, _flat(geometry, residual))])
        name = op.name.removeprefix("nn.")
        call_contraction(lowering, task, geometry, taps, (x, source), outputs, name, op.location)


@lowers(nn.Conv3dOp, elements=REALS, symbolic=True)
def lower_conv3d(lowering: Lowering, op: nn.Conv3dOp) -> None:
    """The planes of an input image lie one after the other: a plane of the kernel is some rows further down."""
    x = lowering.channels_last(op.input, padding_border(op), op.location)
    target = lowering.define(op.result, op.location)
    with contraction_task(lowering, op, target) as task:
        x = x if task.plan is not None else reals_of(lowering, x, op.location)
        outputs = [task.target]
        if op.residual is not None and task.residual:
            outputs.append(lowering.channels_last(op.residual, no_border(5), op.location))
        geometry, source = _conv3d_geometry(op, x, task.target, task.weight.shape)
        taps = task.weight.transpose(0, 2, 3, 4, 1).reshape(len(task.weight), geometry.rows * geometry.runs, -1)
        call_contraction(
            lowering, task, geometry, taps, (x, source), [(y, _planes(y)) for y in outputs], "conv3d", op.location
        )


def _conv3d_geometry(
    op: nn.Conv3dOp, x: Buffer, y: Buffer, weight: tuple[int, ...]
) -> tuple[Geometry, tuple[int, int, int]]:
    batch, channels, depth, height, width = y.sizes
    _, group, planes, kernel_rows, kernel_columns = weight
    n, pitch, rows, columns, pixel = x.physical
    down, *stride = ints(op.stride)
    below, row_step, column_step = ints(op.dilation)
    groups, border, have = op.groups.value.data, padding_border(op), x.layout.border
    whole = column_step == 1 and groups == 1
    first = (have[0] - border[0]) * rows + have[2] - border[2]
    geometry = Geometry(
        batch, height, width, channels // groups, groups, kernel_rows, 1 if whole else kernel_columns,
        kernel_columns * pixel if whole else group, column_step * pixel, row_step, (stride[0], stride[1]), pixel,
        group, (first, (have[4] - border[4]) * pixel), depth, planes, down * rows, below * rows,
    )  # fmt: skip
    return geometry, (n, pitch * rows, columns * pixel)


def _planes(buffer: Buffer) -> Place:
    """A buffer of three spatial dimensions as images of all planes, and where an image's own planes lie."""
    n, pitch, rows, columns, channels = buffer.physical
    front, _, *border = buffer.layout.border
    return (n * pitch, rows, columns, channels), tuple(border), (pitch, front)


def image_of(lowering: Lowering, buffer: Buffer) -> Buffer:
    """A channels-last buffer of one spatial dimension as images of one row; images as they are."""
    if len(buffer.sizes) == 4:
        return buffer
    n, channels, size = buffer.sizes
    view = lowering.view(buffer, memref_of(buffer.element, (n, 1, buffer.physical[1], channels)))
    layout = Layout(True, (0, 0, *buffer.layout.border))
    return Buffer(view, (n, channels, 1, size), layout, buffer.encoding, buffer.element)


@lowers(nn.LinearOp, elements=REALS, symbolic=True)
def lower_linear(lowering: Lowering, op: nn.LinearOp) -> None:
    """A linear as a convolution of one run: each row of the input is a pixel."""
    where = op.location
    x = lowering.row_major(op.input, where)
    target = lowering.define(op.result, where, Layout(False))
    with contraction_task(lowering, op, target) as task:
        x = x if task.plan is not None else reals_of(lowering, x, where)
        residual = lowering.row_major(op.residual, where) if op.residual is not None and task.residual else None
        channels, run = task.weight.shape
        rows = math.prod(x.sizes[:-1])
        geometry = Geometry(1, 1, rows, channels, 1, 1, 1, run, 0, 0, (1, 1), run, 0, (0, 0))
        place: Place = ((1, 1, rows, channels), NO_BORDER, _ONE_PLANE)
        outputs = [(task.target, place)] + ([] if residual is None else [(residual, place)])
        source, taps = (x, (1, 1, rows * run)), task.weight[:, None, :]
        call_contraction(lowering, task, geometry, taps, source, outputs, "linear", where)


def conv_geometry(
    sliding: Sliding, x: Buffer, y: Buffer, residual: Buffer | None, weight: tuple[int, ...]
) -> tuple[Geometry, tuple[int, int, int]]:
    """The loop nest of a convolution, and how it sees its input: [N, rows, columns * channels]."""
    batch, channels, height, width = y.sizes
    _, group, kernel_rows, kernel_columns = weight
    n, rows, columns, pixel = x.physical
    groups, stride, border = sliding.groups, sliding.stride, sliding.border
    row_step, column_step = sliding.dilation
    have = x.layout.border
    whole = column_step == 1 and groups == 1
    flat = (kernel_rows, kernel_columns, *stride) == (1, 1, 1, 1) and not any(
        any(buffer.layout.border) for buffer in (x, y, residual) if buffer is not None
    )
    if flat:
        if is_symbolic(batch):
            height, width, rows, columns = 1, height * width, 1, rows * columns
        else:
            batch, height, width, n, rows, columns = 1, 1, batch * height * width, 1, 1, n * rows * columns
    geometry = Geometry(
        batch, height, width, channels // groups, groups, kernel_rows, 1 if whole else kernel_columns,
        kernel_columns * pixel if whole else group, column_step * pixel, row_step, stride, pixel,
        group, (have[0] - border[0], (have[2] - border[2]) * pixel),
    )  # fmt: skip
    return geometry, (n, rows, columns * pixel)


def _flat(geometry: Geometry, buffer: Buffer) -> Place:
    """The shape and border in which a kernel of `geometry` sees an output or residual."""
    n, rows, columns, channels = buffer.physical
    top, bottom, left, right = buffer.layout.border
    if rows - top - bottom != geometry.height or columns - left - right != geometry.width:
        lead = n if is_symbolic(geometry.batch) else 1
        return (lead, 1, rows * columns * (1 if is_symbolic(n) else n), channels), NO_BORDER, _ONE_PLANE
    return buffer.physical, buffer.layout.border, _ONE_PLANE


def call_contraction(
    lowering: Lowering, task: Task, geometry: Geometry, taps: Array | CodedWeight,
    source: tuple[Buffer, tuple[int, int, int]], outputs: Sequence[tuple[Buffer, Place]], name: str,
    where: LocationAttr, steps: tuple[int, int, int] = (1, 1, 1),
) -> None:  # fmt: skip
    """Emit the call. outputs: the result, and a residual for the epilogue; steps: from one element to the next."""
    (x, seen), (y, place), plan = source, outputs[0], task.plan
    residual = outputs[1] if len(outputs) > 1 else None
    held = None if residual is None else residual[1]
    stored = store(taps, lowering.target.lanes) if isinstance(taps, CodedWeight) else None
    values = taps if not isinstance(taps, CodedWeight) else taps.reals() if stored is None else stored.data
    spec = contraction_kernel(
        lowering.target, geometry, task.epilogue, x.unsigned, seen, place[:2], None if held is None else held[:2],
        None if stored is None else stored.storage, partial(lowering.tied.vectors, task.source),
    )  # fmt: skip
    spec = replace(spec, output_planes=place[2], residual_planes=_ONE_PLANE if held is None else held[2])
    spec = replace(spec, spread=steps, half=task.half)
    element = i8 if plan is not None else f32
    x = in_arena(lowering, x, geometry.run, where)
    arguments = [lowering.view(x, memref_of(element, seen))]
    weights = [packed_weight(lowering, spec, values, element if stored is None else i8)]
    weights += parameter_constants(lowering, stored, spec.pack_weight)
    if task.source is not None:
        lowering.tied.note(task.source, spec, weights, stored)
    arguments += weights
    arguments += channel_constants(lowering, task.bias, plan, spec, values)
    alias: list[tuple[int, int]] = []
    if residual is not None and plan is not None:
        arguments.append(lowering.view(residual[0], memref_of(i8, residual[1][0])))
        if residual[1] == place:
            alias.append((len(arguments), len(arguments) - 1))
    arguments.append(lowering.view(y, memref_of(y.element, place[0])))
    lowering.call(spec, name, lambda symbol: build_contraction(spec, symbol, where), arguments, where, alias)


def packed_weight(lowering: Lowering, spec: ContractionKernel, taps: Array, element: Attribute) -> SSAValue:
    """The constant buffer of weights of `element`, or of the 16-bit floats that they came from."""
    packed = patterns(spec.pack_weight(taps), spec.half)
    return lowering.constant(packed, element if spec.half is None else i16)


def channel_constants(
    lowering: Lowering, bias: Array | None, plan: IntegerPlan | None, spec: ContractionKernel, taps: Array
) -> list[SSAValue]:
    """The constant buffers: start, and for integers multiplier and bias per output channel, scales, zero points."""
    if plan is None:
        start = np.zeros(taps.shape[0], np.float32) if bias is None else bias
        return [lowering.constant(spec.pack_channels(start), f32)]
    found = [
        lowering.constant(spec.pack_channels(start_values(plan, taps)), i32),
        lowering.constant(spec.pack_channels(plan.multiplier), f32),
    ]
    if plan.bias is not None:
        found.append(lowering.constant(spec.pack_channels(plan.bias), f32))
    return found + spec.epilogue.constants(lowering, plan)
