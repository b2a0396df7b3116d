# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that compute in float32 on quantized tensors: dequantize into a buffer of its own before, quantize after.

That is what an op means on codes: quantize(op(dequantize(operands))).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import LocationAttr, f32, i8
from xdsl.ir import SSAValue

from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import Encoding
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, physical_shape
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import Codes, lower_elementwise
from qcomp.transforms.lower_to_loop.fill import fill_border
from qcomp.transforms.lower_to_loop.tables import has_table, lower_requantize


def reals_of(lowering: Lowering, buffer: Buffer, where: LocationAttr) -> Buffer:
    """`buffer`, or a dequantized copy of it that lies alike."""
    if buffer.encoding is None:
        return buffer
    reals = _scratch(lowering, buffer.sizes, buffer.layout, where)
    if any(buffer.layout.border):
        fill_border(lowering, reals, where)
    lower_elementwise(lowering, [buffer], reals, where, "dequantize", ("dequantize",), lambda b, x: x[0])
    return reals


@contextmanager
def real_result(
    lowering: Lowering, value: SSAValue, where: LocationAttr, layout: Layout | None = None
) -> Generator[Buffer]:
    """A buffer to write the reals of `value` to; quantized afterwards when its type is."""
    with written_in_reals(lowering, lowering.define(value, where, layout), where) as reals:
        yield reals


@contextmanager
def written_in_reals(lowering: Lowering, target: Buffer, where: LocationAttr) -> Generator[Buffer]:
    """`target`, or when it holds codes a buffer of reals that lies alike and is quantized into it afterwards."""
    if target.encoding is None:
        yield target
        return
    reals = _scratch(lowering, target.sizes, target.layout, where)
    yield reals
    lower_elementwise(lowering, [reals], target, where, "quantize", ("quantize",), lambda b, x: x[0])


def recoded(lowering: Lowering, buffer: Buffer, encoding: Encoding | None, where: LocationAttr) -> Buffer:
    """`buffer`, or a copy that lies alike in another encoding (reals for None), for ops that only move.

    Raises QcompError for per-channel encodings.
    """
    if buffer.encoding == encoding:
        if encoding is not None:
            Codes.of(encoding)
        return buffer
    if encoding is None:
        return reals_of(lowering, buffer, where)
    memref = lowering.allocate(memref_of(i8, buffer.physical), where)
    result = Buffer(memref, buffer.sizes, buffer.layout, encoding, i8)
    if has_table(buffer, result):
        lower_requantize(lowering, buffer, result, None, where)
    else:
        lower_elementwise(lowering, [buffer], result, where, "quantize", ("quantize",), lambda b, x: x[0])
    return result


def _scratch(lowering: Lowering, sizes: tuple[int, ...], layout: Layout, where: LocationAttr) -> Buffer:
    memref = lowering.allocate(memref_of(f32, physical_shape(sizes, layout)), where)
    return Buffer(memref, sizes, layout, None, f32)
