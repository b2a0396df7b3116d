# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of places along dimensions whose size depends on symbols, where a static size has a constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import choose, compare, difference
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


def has_symbols(sizes: Sequence[int]) -> bool:
    """Whether one of `sizes` depends on symbols."""
    return any(map(is_symbolic, sizes))


def places(b: Builder, size: int, start: int = 0) -> SSAValue:
    """start, start + 1, ...: `size` of them in int64; a constant where `size` is a number."""
    if is_symbolic(size) or is_symbolic(start):
        return b.add(nn.ArangeOp(start, size))
    b.room(size)
    return b.constant(np.arange(start, start + size, dtype=np.int64), "int64")


def triangle_mask(b: Builder, rows: int, columns: int, diagonal: int, below: bool) -> SSAValue:
    """bool [rows, columns]: true on the diagonal and on one side of it."""
    if not has_symbols((rows, columns, diagonal)):
        b.room(rows, columns)
        apart = np.arange(columns)[None] - np.arange(rows)[:, None]
        return b.constant(apart <= diagonal if below else apart >= diagonal, "bool")
    apart = difference(b, places(b, columns), reshape_to(b, places(b, rows), (rows, 1)))
    return compare(b, "le" if below else "ge", apart, diagonal)


@op("tril.default", "triu.default")
def triangle(b: Builder, node: Node) -> Result:
    """What lies below or above a diagonal; 0 elsewhere."""
    value, diagonal = b.tensor(node, "self"), b.integer(node, "diagonal", 0)
    rows, columns = shape_of(value)[-2:]
    kept = triangle_mask(b, rows, columns, diagonal, below="tril" in node.target)
    return choose(b, kept, value, b.scalar(0, dtype_of(value)), dtype_of(value))


@op("one_hot.default")
def one_hot(b: Builder, node: Node) -> Result:
    """1 where the number of the class is the index."""
    value, classes = b.tensor(node, "self"), b.integer(node, "num_classes", -1)
    if classes < 0:
        raise QcompError(
            "the number of classes depends on data", code="data-dependent", hint="give one_hot num_classes"
        )
    numbers = places(b, classes)
    wide = reshape_to(b, b.cast(value, "int64"), (*shape_of(value), 1))
    return b.cast(compare(b, "eq", wide, numbers), "int64")
