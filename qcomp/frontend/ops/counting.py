# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of places along dimensions whose size depends on symbols, where a static size has a constant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.frontend.builder import Builder
from qcomp.frontend.ops.operands import compare, difference
from qcomp.frontend.ops.shape import reshape_to


def has_symbols(sizes: Sequence[int]) -> bool:
    """Whether one of `sizes` depends on symbols."""
    return any(map(is_symbolic, sizes))


def places(b: Builder, size: int, start: int = 0) -> SSAValue:
    """start, start + 1, ...: `size` of them in int64; a constant where `size` is a number."""
    if is_symbolic(size) or is_symbolic(start):
        return b.add(nn.ArangeOp(start, size))
    return b.constant(np.arange(start, start + size, dtype=np.int64), "int64")


def triangle_mask(b: Builder, rows: int, columns: int, diagonal: int, below: bool) -> SSAValue:
    """bool [rows, columns]: true on the diagonal and on one side of it."""
    if not has_symbols((rows, columns, diagonal)):
        apart = np.arange(columns)[None] - np.arange(rows)[:, None]
        return b.constant(apart <= diagonal if below else apart >= diagonal, "bool")
    apart = difference(b, places(b, columns), reshape_to(b, places(b, rows), (rows, 1)))
    return compare(b, "le" if below else "ge", apart, diagonal)
