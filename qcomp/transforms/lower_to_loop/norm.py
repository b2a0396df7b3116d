# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of layer norm, row by row over contiguous elements, and of a batch norm that stands alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr, f32, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.interpreter.reference.norm import batch_norm_factor
from qcomp.interpreter.reference.reduction import anchor_of, anchor_places
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index, finish, kernel, real_number, real_type
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import Codes, Compute, codes_in, in_reals, lower_elementwise
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks
from qcomp.transforms.lower_to_loop.partials import sum_in_lanes
from qcomp.transforms.lower_to_loop.reals import Reals
from qcomp.transforms.lower_to_loop.registry import REALS, lowers
from qcomp.transforms.lower_to_loop.through_reals import reals_of


@dataclass(frozen=True)
class LayerNormKernel:
    """All that the code depends on: `rows` rows of `size` elements, eps as a real."""

    rows: int
    size: int
    eps: float
    weight: bool
    bias: bool
    lanes: int
    source_codes: Codes | None
    target_codes: Codes | None


@lowers(nn.LayerNormOp, elements=REALS, symbolic=True)
def lower_layer_norm(lowering: Lowering, op: nn.LayerNormOp) -> None:
    """The normalized dimensions as one row, in row-major order; codes are converted in registers."""
    where = op.location
    size = math.prod(ints(op.normalized_shape))
    source = lowering.row_major(op.input, where)
    rows = math.prod(source.sizes) // max(size, 1)
    affine = [
        reals_of(lowering, lowering.row_major(value, where), where)
        for value in (op.weight, op.bias)
        if value is not None
    ]
    eps = real_number(op.eps.value.data)
    target = lowering.define(op.result, where, Layout(False))
    spec = LayerNormKernel(
        rows, size, eps, op.weight is not None, op.bias is not None, lowering.target.lanes, codes_in(source),
        codes_in(target),
    )  # fmt: skip
    arguments = [lowering.view(source, memref_of(source.element, (rows, size)))]
    arguments += [lowering.view(buffer, memref_of(f32, (size,))) for buffer in affine]
    arguments.append(lowering.view(target, memref_of(target.element, (rows, size))))
    alias = [(len(arguments) - 1, 0)] if source.element == target.element == f32 else []
    lowering.call(spec, "layer_norm", lambda name: _build(spec, name, where), arguments, where, alias)


def _build(spec: LayerNormKernel, name: str, where: LocationAttr) -> FuncOp:
    row = memref_of(f32, (spec.size,))
    x, y = (
        memref_of(f32 if codes is None else i8, (spec.rows, spec.size))
        for codes in (spec.source_codes, spec.target_codes)
    )
    arguments = [("x", x)]
    arguments += [(role, row) for role, given in (("weight", spec.weight), ("bias", spec.bias)) if given]
    arguments.append(("y", y))
    func, b, values = kernel(name, arguments, where)
    use = {hint: value for (hint, _), value in zip(arguments, values, strict=True)}
    in_reals(b, use["x"], spec.source_codes)
    in_reals(b, use["y"], spec.target_codes)
    with b.loop(0, spec.rows, kind="parallel") as nest:
        _row(spec, b, use, nest.index)
    return finish(func)


def _row(spec: LayerNormKernel, b: Builder, use: dict[str, SSAValue], row: Index) -> None:
    """The formulas of `reference.norm.layer_norm`; the loops over a row:

    for i: sum += x[i] - anchor
    for i: squares += (x[i] - mean) * (x[i] - mean)
    for i: y[i] = (x[i] - mean) * inverse * weight[i] + bias[i]
    """
    one = Reals(b, ())
    count = one.number(max(spec.size, 1))

    def apart(index: Index, part: Chunk, centre: SSAValue) -> SSAValue:
        m = Reals(b, part.shape)
        return m.subtract(_load(b, use["x"], (row, index), part), b.broadcast(centre, m.shape))

    def squared(index: Index, part: Chunk) -> SSAValue:
        value = apart(index, part, mean)
        return Reals(b, part.shape).multiply(value, value)

    places = anchor_places([spec.size]) if spec.size else []
    anchor = anchor_of(one, *(b.load(use["x"], [row, place]) for (place,) in places)) if places else count
    shift = one.divide(sum_in_lanes(b, spec.size, lambda index, part: apart(index, part, anchor)), count)
    mean = one.add(anchor, shift)
    variance = one.divide(sum_in_lanes(b, spec.size, squared), count)
    inverse = one.divide(one.number(1.0), one.square_root(one.add(variance, one.number(spec.eps))))
    for part in chunks(spec.size, f32, spec.lanes):
        with b.loop(part.start, part.stop, part.step) as nest:
            m = Reals(b, part.shape)
            value = m.multiply(apart(nest.index, part, mean), b.broadcast(inverse, m.shape))
            if spec.weight:
                value = m.multiply(value, _load(b, use["weight"], (nest.index,), part))
            if spec.bias:
                value = m.add(value, _load(b, use["bias"], (nest.index,), part))
            b.store(value, use["y"], [row, nest.index], (1,) if part.shape else (), None, part.valid)


def _load(b: Builder, memref: SSAValue, where: Sequence[Index], part: Chunk) -> SSAValue:
    return b.load(memref, where, part.shape, (len(where) - 1,) if part.shape else (), None, part.valid)


@lowers(nn.BatchNormOp, elements=REALS, symbolic=True)
def lower_batch_norm(lowering: Lowering, op: nn.BatchNormOp) -> None:
    """(x - mean) * factor + bias, with constants per channel."""
    mean, var = (_constant(lowering, value) for value in (op.running_mean, op.running_var))
    weight, bias = (None if value is None else _constant(lowering, value) for value in (op.weight, op.bias))
    factor = batch_norm_factor(var, weight, op.eps.value.data, numpy_dtype(real_type()))
    source = lowering.operand(op.input)
    shape = (mean.size, *(1 for _ in source.sizes[2:]))
    held = [mean, factor] if bias is None else [mean, factor, bias]
    buffers = [
        Buffer(lowering.constant(array.reshape(shape), f32), shape, Layout(False), None, real_type()) for array in held
    ]
    compute: Compute = lambda b, x: _affine(Reals(b, loop.tile_shape(x[0].type)), x)  # noqa: E731
    target = lowering.define(op.result, op.location)
    name = ("batch_norm", bias is not None)
    lower_elementwise(lowering, [source, *buffers], target, op.location, "batch_norm", name, compute)


def _affine(m: Reals, x: Sequence[SSAValue]) -> SSAValue:
    value = m.multiply(m.subtract(x[0], x[1]), x[2])
    return m.add(value, x[3]) if len(x) > 3 else value


def _constant(lowering: Lowering, value: SSAValue) -> Array:
    array = lowering.array(value)
    if array is None or array.dtype != numpy_dtype(real_type()):
        raise QcompError(
            "batch norm is lowered to loops with constant statistics of its own type only", code="lower",
            hint="run lower-batch-norm or fold-constants first",
        )  # fmt: skip
    return array
