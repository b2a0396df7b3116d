# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Filling the frame between two boxes of a buffer with one number: borders, and what nn.pad adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.transforms.lower_to_loop.buffers import Buffer
from qcomp.transforms.lower_to_loop.builder import Builder, Index, MemRef, finish, kernel
from qcomp.transforms.lower_to_loop.elementwise import IN_LANES
from qcomp.transforms.lower_to_loop.lanes import chunks

if TYPE_CHECKING:
    from qcomp.transforms.lower_to_loop.driver import Lowering

Box = tuple[tuple[int, int], ...]
"""First and last + 1 index per buffer dimension."""


@dataclass(frozen=True)
class FillKernel:
    """All that the code depends on: what lies in `outer` and not in `inner` becomes `number`."""

    kind: MemRef
    outer: Box
    inner: Box
    number: float | int
    lanes: int

    def slabs(self) -> Iterator[Box]:
        """The frame as boxes that do not overlap: earlier dimensions inside, later ones over the whole length."""
        for dim, ((first, last), (start, stop)) in enumerate(zip(self.outer, self.inner, strict=True)):
            for part in ((first, start), (stop, last)):
                box = (*self.inner[:dim], part, *self.outer[dim + 1 :])
                if all(low != high for low, high in box):
                    yield box


def fill_border(lowering: Lowering, buffer: Buffer, where: LocationAttr) -> None:
    """Emit the call that fills the border of a channels-last `buffer` with real zero."""
    border = buffer.layout.border
    outer = tuple((0, size) for size in buffer.physical)
    sides = [(0, 0), *zip(border[::2], border[1::2], strict=True), (0, 0)]
    inner = tuple((low, last - high) for (_, last), (low, high) in zip(outer, sides, strict=True))
    zero = buffer.encoding.zero_point if buffer.encoding is not None else 0
    fill_frame(lowering, buffer, outer, inner, zero, "fill_border", where)


def fill_frame(
    lowering: Lowering, buffer: Buffer, outer: Box, inner: Box, number: float | int, name: str, where: LocationAttr
) -> None:
    """Emit the call that fills `outer` but for `inner` with a real number, or with a code."""
    lanes = lowering.target.lanes if str(buffer.element) in IN_LANES else 1
    spec = FillKernel(buffer.type, outer, inner, number, lanes)
    lowering.call(spec, name, lambda symbol: _build(spec, symbol, where), [buffer.value], where)


def _build(spec: FillKernel, name: str, where: LocationAttr) -> FuncOp:
    func, b, (place,) = kernel(name, [("y", spec.kind)], where)
    for box in spec.slabs():
        _fill(spec, b, place, box)
    return finish(func)


def _fill(spec: FillKernel, b: Builder, place: SSAValue, box: Box) -> None:
    last = len(box) - 1
    with ExitStack() as stack:
        indices: list[Index] = [stack.enter_context(b.loop(*span)).index for span in box[:-1]]
        for part in chunks(box[-1][1] - box[-1][0], spec.kind.element_type, spec.lanes):
            value = _number(spec, b, part.shape)
            with b.loop(part.start, part.stop, part.step) as nest:
                where = [*indices, nest.index + box[-1][0]]
                b.store(value, place, where, (last,) if part.shape else (), None, part.valid)


def _number(spec: FillKernel, b: Builder, shape: Sequence[int]) -> SSAValue:
    match str(spec.kind.element_type):
        case "f32":
            return b.real(spec.number, shape)
        case "i8":
            return b.byte(int(spec.number), shape)
        case _:
            return b.number(spec.number, shape, spec.kind.element_type)
