# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Filling borders with real zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, finish, kernel
from qcomp.transforms.lower_to_loop.lanes import Chunk, chunks

if TYPE_CHECKING:
    from qcomp.transforms.lower_to_loop.driver import Lowering


def fill_border(lowering: Lowering, buffer: Buffer, where: LocationAttr) -> None:
    """Emit the call that fills the border of `buffer`."""
    zero = buffer.encoding.zero_point if buffer.encoding is not None else 0
    lanes = lowering.target.lanes

    def build(name: str) -> FuncOp:
        func, b, (place,) = kernel(name, [("y", buffer.type)], where)
        _fill(b, place, buffer, zero, chunks(buffer.physical[3], buffer.element, lanes))
        return finish(func)

    key = ("fill", buffer.type, buffer.layout, zero, lanes)
    lowering.call(key, "fill_border", build, [buffer.value], where)


def _fill(b: Builder, place: SSAValue, buffer: Buffer, zero: int, parts: Sequence[Chunk]) -> None:
    n, rows, columns, _ = buffer.physical
    top, bottom, left, right = buffer.layout.border
    rectangles = [
        (0, top, 0, columns),
        (rows - bottom, rows, 0, columns),
        (top, rows - bottom, 0, left),
        (top, rows - bottom, columns - right, columns),
    ]
    is_float = str(buffer.element) == "f32"
    for first, last, start, stop in rectangles:
        if first == last or start == stop:
            continue
        with b.loop(0, n) as image, b.loop(first, last) as row, b.loop(start, stop) as column:
            for part in parts:
                shape = part.shape
                value = b.real(0.0, shape) if is_float else b.byte(zero, shape)
                with b.loop(part.start, part.stop, part.step) as channel:
                    place_at = [image.index, row.index, column.index, channel.index]
                    b.store(value, place, place_at, (3,) if shape else (), None, part.valid)
