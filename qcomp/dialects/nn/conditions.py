# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must hold for the sizes of a program's symbols: expressions that must not be negative.

Verifiers let pass what some sizes satisfy, such as a slice from ``s - 1`` on; these are the conditions on the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from qcomp.dialects.binding import never_negative
from qcomp.dialects.dims import declared_symbols, sizes_of
from qcomp.dialects.nn.base import ints, shape
from qcomp.dialects.nn.contraction import ConvolutionOp
from qcomp.dialects.nn.movement import SliceOp
from qcomp.dialects.nn.pooling import PoolOp


def size_conditions(module: ModuleOp) -> list[int]:
    """The expressions over symbols that must be 0 or more and are not always; none without symbols."""
    symbols = [symbol for op in module.walk() if isinstance(op, FuncOp) for symbol in declared_symbols(op)]
    if not symbols:
        return []
    return never_negative([size for op in module.walk() for size in _sizes(op)], symbols)


def _sizes(op: Operation) -> Iterator[int]:
    for value in op.results:
        kind = value.type
        if isinstance(kind, TensorType):
            yield from sizes_of(cast("TensorType[Attribute]", kind))
    if isinstance(op, SliceOp):
        start, end = op.bounds
        yield from (start, end - start, shape(op.input)[op.dim.value.data] - end)
    if isinstance(op, ConvolutionOp):
        pairs, dilation, kernel = op.padding_pairs, ints(op.dilation), shape(op.weight)[2:]
        for size, (low, high), step, taps in zip(shape(op.input)[2:], pairs, dilation, kernel, strict=True):
            yield size + low + high - step * (taps - 1) - 1
    if isinstance(op, PoolOp):
        sizes, padding = shape(op.input)[-op.SPATIAL :], ints(op.padding)
        windows = zip(sizes, padding, op.dilation_sizes, ints(op.kernel_size), strict=True)
        for size, border, step, taps in windows:
            yield size + 2 * border - step * (taps - 1) - 1
