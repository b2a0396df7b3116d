# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of transposed convolutions: a plain convolution for every phase of the stride.

Result elements whose index is r modulo the stride read only the taps k with dilation * k = r + padding modulo the
stride. Taken in ascending order of the input they are a kernel of their own, which moves by one input element per
result element: no product with a zero is ever made. The kernels are those of convolutions; they write every
stride-th element.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from xdsl.dialects.builtin import LocationAttr

from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.errors import QcompError
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.buffers import Border, Buffer, no_border
from qcomp.transforms.lower_to_loop.contraction import Geometry
from qcomp.transforms.lower_to_loop.convolution import Place, call_contraction, image_of
from qcomp.transforms.lower_to_loop.depthwise import Strided, lower_depthwise
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.phases import Phase, spatial_phases, transposed_border
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import reals_of
from qcomp.transforms.lower_to_loop.weighted import Task, contraction_task

_WHOLE = Phase(0, 1, 1, (0,), 1, 0)
"""A spatial dimension that is not there."""


@lowers(*nn.TRANSPOSED, elements=REALS, symbolic=True)
def lower_transposed(lowering: Lowering, op: nn.ConvTransposeOp) -> None:
    """A convolution per phase over a channels-last buffer with a border of real zeros."""
    if lowering.array(op.weight) is None:
        raise QcompError("weight must be a constant", code="lower")
    where, border = op.location, transposed_border(op)
    x = lowering.channels_last(op.input, border, where)
    target = lowering.define(op.result, where)
    with contraction_task(lowering, op, target) as task:
        x = x if task.plan is not None else reals_of(lowering, x, where)
        outputs = [task.target]
        if op.residual is not None and task.residual:
            outputs.append(lowering.channels_last(op.residual, no_border(len(target.sizes)), where))
        weight = task.weight.reshape(*task.weight.shape[:2], *(1,) * (5 - task.weight.ndim), *task.weight.shape[2:])
        groups = op.groups.value.data
        depthwise = groups > 1 and groups == x.sizes[1] == len(weight) and op.SPATIAL < 3
        found = [[_WHOLE]] * (3 - op.SPATIAL) + spatial_phases(op)
        for parts in product(*found):
            taps = _taps(weight, parts)
            if depthwise:
                _depthwise(lowering, task, taps, parts[1:], (x, border), outputs, where)
            else:
                _dense(lowering, task, taps, parts, (x, groups), outputs, op)


def _taps(weight: Array | CodedWeight, parts: Sequence[Phase]) -> Array | CodedWeight:
    """The kernel of one phase; zeros when it reads nothing."""
    if not all(part.taps for part in parts):
        return np.zeros((*weight.shape[:2], *(part.length for part in parts)), weight.dtype)
    return weight[(slice(None), slice(None), *np.ix_(*(part.taps for part in parts)))]


def _dense(
    lowering: Lowering, task: Task, kernel: Array | CodedWeight, parts: Sequence[Phase], source: tuple[Buffer, int],
    outputs: Sequence[Buffer], op: nn.ConvTransposeOp,
) -> None:  # fmt: skip
    x, groups = source
    (n, pitch, rows, columns, pixel), have = _volume(x)
    outer, down, across = parts
    whole = across.spacing == 1 and groups == 1
    runs = 1 if whole else across.length
    group = kernel.shape[1]
    first = (have[0] + outer.origin) * rows + have[2] + down.origin
    geometry = Geometry(
        n, down.count, across.count, len(kernel) // groups, groups, down.length, runs,
        across.length * pixel if whole else group, across.spacing * pixel, down.spacing, (1, 1), pixel, group,
        (first, (have[4] + across.origin) * pixel), outer.count, outer.length, rows, outer.spacing * rows,
    )  # fmt: skip
    taps = kernel.transpose(0, 2, 3, 4, 1).reshape(len(kernel), geometry.rows * runs, -1)
    places = [(buffer, _place(buffer, parts)) for buffer in outputs]
    seen = (x, (n, pitch * rows, columns * pixel))
    steps = (outer.step, down.step, across.step)
    call_contraction(lowering, task, geometry, taps, seen, places, op.name.removeprefix("nn."), op.location, steps)


def _volume(buffer: Buffer) -> tuple[tuple[int, ...], Border]:
    """The sizes and border of a channels-last buffer as one of three spatial dimensions."""
    n, *rest = buffer.physical
    missing = 4 - len(rest)
    return (n, *(1,) * missing, *rest), (*(0,) * (2 * missing), *buffer.layout.border)


def _place(buffer: Buffer, parts: Sequence[Phase]) -> Place:
    """A buffer as images of all planes, the border and the first plane moved to the first element of the phase."""
    (n, pitch, rows, columns, channels), border = _volume(buffer)
    front, top, left = (side + part.first for side, part in zip(border[::2], parts, strict=True))
    return (n * pitch, rows, columns, channels), (top, 0, left, 0), (pitch, front)


def _depthwise(
    lowering: Lowering, task: Task, kernel: Array | CodedWeight, parts: Sequence[Phase], source: tuple[Buffer, Border],
    outputs: Sequence[Buffer], where: LocationAttr,
) -> None:  # fmt: skip
    down, across = parts
    x = image_of(lowering, source[0])
    y, *rest = (image_of(lowering, buffer) for buffer in outputs)
    origin = (x.layout.border[0] + down.origin, x.layout.border[2] + across.origin)
    strided = Strided(
        (down.length, across.length), (1, 1), (down.spacing, across.spacing), origin, (down.count, across.count),
        (down.first, across.first), (down.step, across.step),
    )  # fmt: skip
    images = (x, y, rest[0] if rest else None)
    lower_depthwise(lowering, task, kernel.reshape(len(kernel), -1), strided, images, where)
