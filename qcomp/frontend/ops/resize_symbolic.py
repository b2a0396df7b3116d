# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resizing where sizes depend on symbols: the places and weights that are constants otherwise, computed by ops.

The steps are those of `qcomp.interpreter.reference.resampling`, in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import larger
from qcomp.frontend.builder import Builder, dtype_of, shape_of
from qcomp.frontend.ops.counting import places
from qcomp.frontend.ops.operands import difference, product, quotient, total, unary
from qcomp.frontend.ops.shape import reshape_to


def resampled(
    b: Builder, value: SSAValue, sizes: Sequence[int], scales: Sequence[float | None], align: bool, mode: str
) -> SSAValue:
    """`value` with its last dimensions resampled to `sizes`, the last one first.

    mode: nearest, exact, linear or cubic.
    """
    for axis, (size, scale) in reversed(list(enumerate(zip(sizes, scales, strict=True), 2))):
        old = shape_of(value)[axis]
        if mode in ("linear", "cubic"):
            if size != old or scale not in (None, 1.0):
                weighted = _linear if mode == "linear" else _cubic
                value = weighted(b, value, axis, _sources(b, old, size, scale, align), old)
        elif mode == "nearest" and scale is not None and scale == int(scale) and size == old * int(scale):
            value = _repeated(b, value, axis, int(scale))
        elif size != old or scale not in (None, 1.0):
            start = b.scalar(0.5 if mode == "exact" else 0.0, "float32")
            place = product(b, total(b, b.cast(places(b, size), "float32"), start), _ratio(b, old, size, scale, False))
            value = _picked(b, value, axis, _below(b, b.cast(unary(b, "floor", place), "int64"), old))
    return value


def _ratio(b: Builder, old: int, size: int, scale: float | None, align: bool) -> SSAValue:
    """How many elements of the input lie between two of the result, a float32."""
    if align:
        # Without a second element the only place is 0, whatever the distance.
        return quotient(b, b.scalar(old - 1, "float32"), b.scalar(larger(size - 1, 1), "float32"))
    if scale is not None and scale > 0:
        return b.scalar(float(np.float32(1.0 / scale)), "float32")
    return quotient(b, b.scalar(old, "float32"), b.scalar(larger(size, 1), "float32"))


def _sources(b: Builder, old: int, size: int, scale: float | None, align: bool) -> SSAValue:
    """Where elements of the result lie in the input."""
    ratio, place = _ratio(b, old, size, scale, align), b.cast(places(b, size), "float32")
    if align:
        return product(b, ratio, place)
    return difference(b, product(b, ratio, total(b, place, b.scalar(0.5, "float32"))), b.scalar(0.5, "float32"))


def _linear(b: Builder, value: SSAValue, axis: int, source: SSAValue, old: int) -> SSAValue:
    """Two neighbours, weighted."""
    source = b.add(nn.ClampOp.of(source, 0.0, math.inf))
    first = _below(b, b.cast(source, "int64"), old)
    second = _below(b, total(b, first, 1), old)
    share = b.add(nn.ClampOp.of(difference(b, source, b.cast(first, "float32")), 0.0, 1.0))
    rest = difference(b, b.scalar(1.0, "float32"), share)
    return _sum(b, value, axis, [(first, rest), (second, share)])


def _sum(b: Builder, value: SSAValue, axis: int, taps: Sequence[tuple[SSAValue, SSAValue]]) -> SSAValue:
    """Elements at places along `axis` times their weights, added one after the other."""
    dtype, rank = dtype_of(value), len(shape_of(value))
    parts = [
        b.add(nn.MulOp(_picked(b, value, axis, index), b.cast(_spread(b, weight, axis, rank), dtype)))
        for index, weight in taps
    ]
    return total(b, *parts)


_CUBIC = -0.75
"""torch's coefficient of cubic convolution."""


def _cubic(b: Builder, value: SSAValue, axis: int, source: SSAValue, old: int) -> SSAValue:
    """Four neighbours; beyond the ends the last element counts."""
    whole = unary(b, "floor", source)
    t = b.add(nn.ClampOp.of(difference(b, source, whole), 0.0, 1.0))
    first, a = b.cast(whole, "int64"), _CUBIC

    def near(x: SSAValue) -> SSAValue:
        return total(b, product(b, difference(b, product(b, x, a + 2), a + 3), x, x), 1.0)

    def far(x: SSAValue) -> SSAValue:
        inner = total(b, product(b, difference(b, product(b, x, a), 5 * a), x), 8 * a)
        return difference(b, product(b, inner, x), 4 * a)

    weights = [far(total(b, t, 1.0)), near(t), near(difference(b, 1.0, t)), far(difference(b, 2.0, t))]
    zero = b.scalar(0, "int64")
    indices = [_below(b, b.add(nn.MaximumOp(total(b, first, step), zero)), old) for step in (-1, 0, 1, 2)]
    return _sum(b, value, axis, list(zip(indices, weights, strict=True)))


def _below(b: Builder, index: SSAValue, size: int) -> SSAValue:
    """Indices, the last element for those beyond it."""
    return b.add(nn.MinimumOp(index, b.scalar(size - 1, "int64")))


def _spread(b: Builder, line: SSAValue, axis: int, rank: int) -> SSAValue:
    """A line as a tensor of `rank` dimensions that runs along `axis`."""
    return reshape_to(b, line, (*(1,) * axis, shape_of(line)[0], *(1,) * (rank - axis - 1)))


def _picked(b: Builder, value: SSAValue, axis: int, index: SSAValue) -> SSAValue:
    return b.add(nn.GatherOp(value, _spread(b, index, axis, len(shape_of(value))), axis))


def _repeated(b: Builder, value: SSAValue, axis: int, times: int) -> SSAValue:
    """Each element several times in a row."""
    sizes = shape_of(value)
    wide = b.expand(
        reshape_to(b, value, (*sizes[: axis + 1], 1, *sizes[axis + 1 :])),
        (*sizes[: axis + 1], times, *sizes[axis + 1 :]),
    )
    return reshape_to(b, wide, (*sizes[:axis], sizes[axis] * times, *sizes[axis + 1 :]))


