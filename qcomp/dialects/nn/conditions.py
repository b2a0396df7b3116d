# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must hold for the sizes of a program's symbols: its guards, and expressions that must not be negative.

Verifiers let pass what some sizes satisfy, such as a slice from ``s - 1`` on; these are the conditions on the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from qcomp.dialects.dim import is_symbolic, smaller
from qcomp.dialects.dims import attribute_size, declared_guards, declared_symbols, sizes_of
from qcomp.dialects.facts import independent
from qcomp.dialects.guard import Guard
from qcomp.dialects.location import describe
from qcomp.dialects.nn.base import ints, shape
from qcomp.dialects.nn.contraction import ConvolutionOp
from qcomp.dialects.nn.indexing import AminOp, ArgOp, GatherOp, ScatterOp
from qcomp.dialects.nn.movement import EmbeddingOp, PadOp, SliceOp
from qcomp.dialects.nn.pooling import AdaptivePoolOp, AmaxOp, PoolOp
from qcomp.dialects.nn.resample import TakeOp
from qcomp.dialects.nn.sampling import GridSampleOp
from qcomp.dialects.nn.writing import IndexCopyOp, InsertSliceOp


def size_conditions(module: ModuleOp) -> list[Guard]:
    """The conditions on sizes that do not follow from the symbols' ranges; none without symbols.

    First the guards of the functions, then what the ops need that does not follow from those before.
    """
    functions = [op for op in module.walk() if isinstance(op, FuncOp)]
    symbols = [symbol for op in functions for symbol in declared_symbols(op)]
    if not symbols:
        return []
    needs: dict[int, Operation] = {}
    for op in module.walk():
        for size in _sizes(op):
            if is_symbolic(size):
                needs.setdefault(size, op)
    guards = [guard for op in functions for guard in declared_guards(op)]
    return independent(symbols, [*guards, *(Guard(size, note=_note(op)) for size, op in needs.items())])


def _note(op: Operation) -> str:
    place = describe(op.location)
    return f"{op.name} at {place}" if place else op.name


def _sizes(op: Operation) -> Iterator[int]:
    for value in op.results:
        kind = value.type
        if isinstance(kind, TensorType):
            yield from sizes_of(cast("TensorType[Attribute]", kind))
    if isinstance(op, SliceOp):
        start, end = op.bounds
        yield from (start, end - start, shape(op.input)[op.dim.value.data] - end)
    if isinstance(op, PadOp):
        yield from (*ints(op.low), *ints(op.high))
    yield from _not_empty(op)
    if isinstance(op, InsertSliceOp):
        base, source = (shape(value)[op.dim.value.data] for value in (op.base, op.source))
        start = attribute_size(op.start)
        yield from (start, base - start - (source - 1) * op.step.value.data - 1)
    if isinstance(op, ConvolutionOp):
        pairs, dilation, kernel = op.padding_pairs, ints(op.dilation), shape(op.weight)[2:]
        for size, (low, high), step, taps in zip(shape(op.input)[2:], pairs, dilation, kernel, strict=True):
            yield size + low + high - step * (taps - 1) - 1
    if isinstance(op, PoolOp):
        sizes, padding = shape(op.input)[-op.SPATIAL :], ints(op.padding)
        windows = zip(sizes, padding, op.dilation_sizes, ints(op.kernel_size), strict=True)
        for size, border, step, taps in windows:
            yield size + 2 * border - step * (taps - 1) - 1


def _not_empty(op: Operation) -> Iterator[int]:
    """Of ops that need an element: torch refuses extremes of no elements; an index needs something to point to."""
    if isinstance(op, AmaxOp | AminOp | ArgOp):
        yield prod(shape(op.input)[axis] for axis in op.axes) - 1
    elif isinstance(op, AdaptivePoolOp):
        yield from (size - 1 for size in shape(op.input)[-op.SPATIAL :])
    elif isinstance(op, GatherOp):
        yield shape(op.input)[op.dim.value.data] - smaller(prod(shape(op.result)), 1)
    elif isinstance(op, TakeOp):
        yield shape(op.input)[op.dim.value.data] - max(ints(op.indices), default=-1) - 1
    elif isinstance(op, GridSampleOp):
        yield from (size - 1 for size in shape(op.input)[2:])
    elif isinstance(op, ScatterOp):
        sizes, dim = shape(op.input), op.dim.value.data
        yield sizes[dim] - smaller(prod(shape(op.source)), 1)
        yield from (a - b for axis, (a, b) in enumerate(zip(sizes, shape(op.source), strict=True)) if axis != dim)
    elif isinstance(op, IndexCopyOp):
        yield shape(op.base)[op.dim.value.data] - smaller(prod(shape(op.source)), 1)
    elif isinstance(op, EmbeddingOp):
        yield shape(op.weight)[0] - smaller(prod(shape(op.result)), 1)
