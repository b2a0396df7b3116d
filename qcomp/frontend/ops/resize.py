# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resizing: one dimension after the other, the last one first, as torch does it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import FIX, is_symbolic, times_real
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.counting import has_symbols
from qcomp.frontend.ops.resize_symbolic import resampled
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.table import op
from qcomp.interpreter.reference import resampling

Scale = float | None


def _plan(b: Builder, node: Node, spatial: int) -> tuple[SSAValue, list[int], list[Scale]]:
    """The input, the new sizes of its last dimensions, and the scale factors given for them."""
    value = b.tensor(node, "input" if node.argument("input") is not None else "self")
    old = shape_of(value)[2:]
    if len(old) != spatial or 0 in old:
        raise QcompError(f"resizing of {list(shape_of(value))}", code="malformed-graph")
    scales = _scales(b, node, spatial)
    size = node.argument("output_size")
    if size is None and None in scales:
        raise QcompError("resizing without size and scale", code="malformed-graph")
    if size is not None:
        return value, list(b.sizes(node, "output_size", spatial)), scales
    return value, [_scaled(one, by) for one, by in zip(old, scales, strict=True) if by is not None], scales


def _scaled(size: int, by: float) -> int:
    """floor(size * by). Raises QcompError as `times_real`."""
    if not is_symbolic(size):
        return floor(size * by)
    return times_real(size, by)


def _scales(b: Builder, node: Node, spatial: int) -> list[Scale]:
    given = node.argument("scale_factors")
    if isinstance(given, tuple):
        factors = [float(one) for one in given if isinstance(one, int | float)]
        if len(factors) != spatial:
            raise QcompError("scale_factors must be numbers, one per dimension", code="malformed-graph")
        return list(factors)
    names = ("scales",) if spatial == 1 else ("scales_d", "scales_h", "scales_w")[-spatial:]
    return [None if node.argument(name) is None else b.real(node, name) for name in names]


def _spatial(node: Node) -> int:
    return int(re.findall(r"(\d)d", node.target)[0])


@op(*(f"{kind}{n}d.{form}" for kind in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)
      for form in ("default", "vec")))  # fmt: skip
def upsample_nearest(b: Builder, node: Node) -> Result:
    """Elements as they are."""
    value, sizes, scales = _plan(b, node, _spatial(node))
    exact = "exact" in node.target
    if has_symbols((*shape_of(value)[2:], *sizes)):
        return resampled(b, value, sizes, scales, False, "exact" if exact else "nearest")
    for axis, (size, scale) in reversed(list(enumerate(zip(sizes, scales, strict=True), 2))):
        places = resampling.nearest(shape_of(value)[axis], size, scale, exact)
        if list(places) != list(range(shape_of(value)[axis])):
            value = b.add(nn.TakeOp(value, axis, [int(place) for place in places]))
    return value


_LINEAR = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "_upsample_bilinear2d_aa")
_CUBIC = ("upsample_bicubic2d", "_upsample_bicubic2d_aa")


@op(*(f"{name}.{form}" for name in (*_LINEAR, *_CUBIC) for form in ("default", "vec")))
@in_float32
def upsample_weighted(b: Builder, node: Node) -> Result:
    """Weighted sums of neighbours, linear or cubic, with antialiasing or without."""
    value, sizes, scales = _plan(b, node, _spatial(node))
    return resized(b, node, value, sizes, scales)


def resized(b: Builder, node: Node, value: SSAValue, sizes: Sequence[int], scales: Sequence[Scale]) -> SSAValue:
    """`value` with its last dimensions resampled to `sizes`."""
    dtype = dtype_of(value)
    if not dtype.startswith(("float", "bfloat")):
        raise QcompError(f"resizing of {dtype} with weights is not supported", code="unsupported-dtype")
    mode, align = "cubic" if "cubic" in node.target else "linear", b.flag(node, "align_corners")
    kind = np.float64 if dtype == "float64" else np.float32
    if has_symbols((*shape_of(value)[2:], *sizes)):
        smooth = node.target.partition(".")[2].partition(".")[0].endswith("_aa")
        if smooth:
            raise QcompError("antialiased resizing of symbolic sizes is not supported", code="dynamic-shape", hint=FIX)
        return resampled(b, value, sizes, scales, align, mode)
    for axis, (size, scale) in reversed(list(enumerate(zip(sizes, scales, strict=True), 2))):
        old = shape_of(value)[axis]
        if node.target.partition(".")[2].partition(".")[0].endswith("_aa"):
            indices, weights = resampling.smoothed(old, size, scale, align, kind, mode)
        else:
            taps = resampling.cubic if mode == "cubic" else resampling.linear
            indices, weights = taps(old, size, scale, align, kind)
        if size == old and (weights.max(axis=1) == 1).all():
            continue  # every element is itself
        held = b.cast(b.constant(weights), dtype)
        value = b.add(nn.ResampleOp(value, b.constant(indices), held, axis))
    return value
