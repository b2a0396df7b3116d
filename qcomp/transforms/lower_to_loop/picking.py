# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of embedding: rows picked by indices that are loaded.

Indices must lie inside the table, as the reference demands. The code never reads outside it: an index beyond either end
is taken for that end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp

from qcomp.dialects import nn
from qcomp.dialects.dims import memref_of
from qcomp.dialects.quant import encoding_of
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout, static_shape
from qcomp.transforms.lower_to_loop.builder import finish, kernel
from qcomp.transforms.lower_to_loop.coded_embedding import clamped_row, indices_of, lower_coded_embedding
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.elementwise import ELEMENTS, IN_LANES
from qcomp.transforms.lower_to_loop.lanes import chunks
from qcomp.transforms.lower_to_loop.packed_embedding import fits, lower_packed_embedding
from qcomp.transforms.lower_to_loop.registry import ALL, lowers
from qcomp.transforms.lower_to_loop.through_reals import recoded


@dataclass(frozen=True)
class EmbeddingKernel:
    """All that the code depends on: a table of `rows` x `size` elements, `count` indices of type `index`."""

    rows: int
    size: int
    count: int
    element: str
    index: str
    lanes: int


@lowers(nn.EmbeddingOp, elements=ALL, symbolic=True)
def lower_embedding(lowering: Lowering, op: nn.EmbeddingOp) -> None:
    """A copy of a row per index; codes of another encoding than the result's are requantized first."""
    where = op.location
    target = lowering.define(op.result, where, Layout(False))
    encoding = encoding_of(op.weight.type)
    if (
        op.weight not in lowering.tied
        or encoding != target.encoding
        or (encoding is not None and not encoding.per_tensor)
    ):
        _from_table(lowering, op, target)
        return
    indices, sizes = indices_of(lowering, op), cast("tuple[int, int]", static_shape(op.weight))
    count = math.prod(indices.sizes)
    picked = lowering.view(indices, memref_of(indices.element, (count,)))
    y = lowering.view(target, memref_of(target.element, (count, sizes[1])))

    def read() -> None:
        packed = lowering.tied.packed(op.weight)
        if packed is not None and fits(packed, target):
            lower_packed_embedding(lowering, packed, sizes, picked, y, where)
        else:
            _from_table(lowering, op, target)

    lowering.later(read)


def _from_table(lowering: Lowering, op: nn.EmbeddingOp, target: Buffer) -> None:
    """Emit the call for a table of its own."""
    where, held = op.location, lowering.coded(op.weight)
    if held is not None and target.encoding is None and lower_coded_embedding(lowering, op, held, target):
        return
    weight = recoded(lowering, lowering.row_major(op.weight, where), target.encoding, where)
    indices = indices_of(lowering, op)
    rows, size = weight.sizes
    count = math.prod(indices.sizes)
    lanes = lowering.target.lanes if str(weight.element) in IN_LANES else 1
    spec = EmbeddingKernel(rows, size, count, str(weight.element), str(indices.element), lanes)
    arguments = [
        weight.value,
        lowering.view(indices, memref_of(indices.element, (count,))),
        lowering.view(target, memref_of(target.element, (count, size))),
    ]
    lowering.call(spec, "embedding", lambda name: _build(spec, name, where), arguments, where)


def _build(spec: EmbeddingKernel, name: str, where: LocationAttr) -> FuncOp:
    element = ELEMENTS[spec.element]
    arguments = [
        ("weight", memref_of(element, (spec.rows, spec.size))),
        ("indices", memref_of(ELEMENTS[spec.index], (spec.count,))),
        ("y", memref_of(element, (spec.count, spec.size))),
    ]
    func, b, (weight, indices, y) = kernel(name, arguments, where)
    with b.loop(0, spec.count, kind="parallel") as nest:
        row = clamped_row(b, b.load(indices, [nest.index]), spec.rows)
        for part in chunks(spec.size, element, spec.lanes):
            with b.loop(part.start, part.stop, part.step) as column:
                over = (1,) if part.shape else ()
                tile = b.load(weight, [row, column.index], part.shape, over, None, part.valid)
                b.store(tile, y, [nest.index, column.index], over, None, part.valid)
    return finish(func)
