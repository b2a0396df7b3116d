# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of one 8-bit code: a table of 256 bytes, or two comparisons where the table only cuts codes off.

The table is a constant argument, so all look-ups of one shape are one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr, f32, i8
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import loop
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import Encoding, Recipe
from qcomp.interpreter.reference.quantize import requantize
from qcomp.transforms.lower_to_loop.access import Seen, load_lanes, store_lanes
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, physical_shape
from qcomp.transforms.lower_to_loop.builder import Builder, finish, kernel
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import iterate, lane_choice


@dataclass(frozen=True)
class TableKernel:
    """All that the code of a look-up depends on. bounds: (lowest, highest) code when the table is just a clamp."""

    source: Seen
    target: Seen
    bounds: tuple[int, int] | None
    lanes: int


def lower_table(
    lowering: Lowering, source: Buffer, target: Buffer, table: Array, where: LocationAttr, name: str
) -> None:
    """Emit the call that maps the codes of `source` by `table`, which starts at the smallest code of the storage."""
    spec = _flattened(
        TableKernel(Seen.of(source), Seen.of(target), _clamp_bounds(source, table), lowering.target.lanes)
    )
    arguments = [_argument(lowering, source, spec.source), _argument(lowering, target, spec.target)]
    if spec.bounds is None:
        arguments.insert(1, lowering.constant(_by_byte(table, source), i8))
    alike = source.type == target.type and source.layout == target.layout
    alias = [(len(arguments) - 1, 0)] if alike else []
    lowering.call(spec, name, lambda symbol: _build(spec, symbol, where), arguments, where, alias)


def lower_requantize(
    lowering: Lowering, source: Buffer, target: Buffer, recipe: Recipe | None, where: LocationAttr
) -> None:
    """Emit the call that turns codes of one per-tensor encoding into another's."""
    assert source.encoding is not None and target.encoding is not None
    table = requantize(every_code(source.encoding), source.encoding, target.encoding, recipe)
    lower_table(lowering, source, target, table, where, "requantize")


def every_code(encoding: Encoding) -> Array:
    """All 256 storage values of an 8-bit encoding, the smallest first."""
    return np.arange(256, dtype=np.uint8) if not encoding.signed else np.arange(-128, 128).astype(np.int8)


def has_table(source: Buffer, target: Buffer) -> bool:
    """Whether a function from `source` to `target` is a table."""
    encodings = (source.encoding, target.encoding)
    return all(encoding is not None and encoding.per_tensor and encoding.width == 8 for encoding in encodings)


def _by_byte(table: Array, source: Buffer) -> Array:
    """The table by the unsigned value of the byte that holds a code."""
    return np.ascontiguousarray(table if source.unsigned else np.roll(table, 128)).view(np.int8)


def _clamp_bounds(source: Buffer, table: Array) -> tuple[int, int] | None:
    assert source.encoding is not None
    codes = every_code(source.encoding).astype(np.int64)
    low, high = int(table.min()), int(table.max())
    signed = table.dtype == np.int8
    return (low, high) if signed != source.unsigned and (table == codes.clip(low, high)).all() else None


def _flattened(spec: TableKernel) -> TableKernel:
    source, target = spec.source, spec.target
    if (source.sizes, source.layout) != (target.sizes, target.layout) or not target.dense():
        return spec
    size = (math.prod(target.sizes),)
    flat = [replace(seen, sizes=size, layout=Layout(False)) for seen in (source, target)]
    return replace(spec, source=flat[0], target=flat[1])


def _argument(lowering: Lowering, buffer: Buffer, seen: Seen) -> SSAValue:
    return lowering.view(buffer, memref_of(i8, physical_shape(seen.sizes, seen.layout)))


def _build(spec: TableKernel, name: str, where: LocationAttr) -> FuncOp:
    kinds = [memref_of(i8, physical_shape(seen.sizes, seen.layout)) for seen in (spec.source, spec.target)]
    arguments = [("x", kinds[0]), ("y", kinds[1])]
    if spec.bounds is None:
        arguments.insert(1, ("table", memref_of(i8, (256,))))
    func, b, values = kernel(name, arguments, where)
    wide = all(_lies_in_lanes(seen, spec.target) for seen in (spec.source, spec.target))
    for indices, dim, part in iterate(b, spec.target, spec.lanes, i8 if wide else f32):
        codes = load_lanes(b, values[0], spec.source, indices, dim, part.shape, part.valid)
        if spec.bounds is None:
            result = b.add(loop.LookupOp(values[1], codes))
        else:
            result = _cut(b, codes, spec.source.unsigned, spec.bounds, part.shape)
        store_lanes(b, result, values[-1], spec.target, indices, dim, part.shape, part.valid)
    return finish(func)


def _lies_in_lanes(seen: Seen, target: Seen) -> bool:
    """Whether the lanes' elements are neighbours; tiles that are not are gathered 16 at a time."""
    dim = lane_choice(target)
    return dim is None or seen.order[-1] == dim


def _cut(b: Builder, codes: SSAValue, unsigned: bool, bounds: tuple[int, int], shape: Sequence[int]) -> SSAValue:
    lowest, highest = (0, 255) if unsigned else (-128, 127)
    if bounds[0] > lowest:
        codes = b.add((arith.MaxUIOp if unsigned else arith.MaxSIOp)(codes, b.byte(bounds[0], shape)))
    if bounds[1] < highest:
        codes = b.add((arith.MinUIOp if unsigned else arith.MinSIOp)(codes, b.byte(bounds[1], shape)))
    return codes
