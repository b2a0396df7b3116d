# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads, stores, look-ups, views and buffers.

An element of a tile lies at a base, which the indices give, plus an offset that depends on its place in the tile only:
so a tile is a strided window of the buffer, or a gather at base + a fixed grid when the bases are a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.loop import (
    ConstantOp,
    LoadOp,
    LookupOp,
    PartOp,
    SizeOp,
    StoreOp,
    ViewOp,
    element_bytes,
    memref_bytes,
    tile_element,
    tile_shape,
)
from qcomp.errors import QcompError
from qcomp.interpreter.loop.runtime import PADDING, Array, padded
from qcomp.interpreter.loop.writer import Writer

MemRef = MemRefType[Attribute]


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a row-major buffer."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True)
class Window:
    """The elements of a buffer that one access moves: `shape` elements at `strides` (in elements) from the base."""

    op: LoadOp | StoreOp
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(op: LoadOp | StoreOp) -> Window:
        kind, _, _, over, steps, valid = op.access
        if not isinstance(kind.layout, NoneAttr) or DYNAMIC_INDEX in kind.get_shape():
            raise QcompError.at(op, f"buffers are row-major and static, got {kind}", code="unsupported-op")
        shape = tile_shape(op.tile)
        if valid is not None:
            shape = (*shape[:-1], valid)
        places = row_major(kind.get_shape())
        return Window(op, shape, tuple(places[dim] * step for dim, step in zip(over, steps, strict=True)))

    def grid(self) -> Array:
        """The offset of each element from the base."""
        grids = [np.arange(size) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        return sum(np.ix_(*grids), np.zeros((1,) * len(grids), np.int64)) if grids else np.zeros((), np.int64)

    def checker(self) -> Bounds:
        """The check of this access."""
        kind, _, _, over, steps, _ = self.op.access
        size = element_bytes(kind.element_type)
        sizes, strides = kind.get_shape(), row_major(kind.get_shape())
        lowest, highest = [0] * len(sizes), [0] * len(sizes)
        for count, dim, step in zip(self.shape, over, steps, strict=True):
            (highest if step > 0 else lowest)[dim] += (count - 1) * step
        slack = 0 if isinstance(self.op, StoreOp) else PADDING - 1
        ends = tuple(zip(lowest, highest, strict=True))
        return Bounds(self, sizes, ends, tuple(stride * size for stride in strides), slack)


@dataclass(frozen=True)
class Bounds:
    """Checks that an access stays inside its buffer, dimension by dimension; reads may run over by `slack` bytes."""

    window: Window
    sizes: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    byte_strides: tuple[int, ...]
    slack: int

    def __call__(self, *indices: int | Array) -> None:
        over = 0
        for index, size, (first, last), stride in zip(indices, self.sizes, self.ends, self.byte_strides, strict=True):
            low = int(np.min(index)) if isinstance(index, np.ndarray) else index
            high = int(np.max(index)) if isinstance(index, np.ndarray) else index
            over += max(0, high + last - size + 1) * stride
            if low + first < 0 or over > self.slack:
                self._fail(indices)

    def _fail(self, indices: tuple[int | Array, ...]) -> None:
        spans: list[str] = []
        for index, (first, last) in zip(indices, self.ends, strict=True):
            low, high = int(np.min(index)) + first, int(np.max(index)) + last
            spans.append(f"{low}" if low == high else f"{low}..{high}")
        word = "store to" if isinstance(self.window.op, StoreOp) else "load from"
        text = f"{word} [{', '.join(spans)}] lies outside a buffer of shape {list(self.sizes)}"
        raise QcompError.at(self.window.op, text, code="out-of-bounds")


def _base(w: Writer, op: LoadOp | StoreOp, window: Window) -> tuple[str, bool]:
    """The expression of the base, in elements, and whether it is a batch; writes the check."""
    kind, indices, operands, *_ = op.access
    exprs = w.expressions(indices, operands)
    if w.checked:
        w.line(f"{w.constant(window.checker())}({', '.join(exprs)})")
    strides = row_major(kind.get_shape())
    terms = [f"{expr} * {stride}" for expr, stride in zip(exprs, strides, strict=True) if expr != "0"]
    return " + ".join(terms) or "0", w.is_batched(*operands)


def _window(w: Writer, buffer: SSAValue, window: Window, base: str) -> str:
    element = cast(MemRef, buffer.type).element_type
    size = element_bytes(element)
    strides = tuple(stride * size for stride in window.strides)
    return f"nd({window.shape}, {w.dtype(element)}, {w.read(buffer)}, ({base}) * {size}, {strides})"


def _gather(w: Writer, buffer: SSAValue, window: Window, base: str) -> str:
    """The elements at a batch of bases."""
    if not window.shape:
        return f"{w.elements(buffer)}[{base}]"
    ones = ", 1" * len(window.shape)
    return f"{w.elements(buffer)}[({base}).reshape(-1{ones}) + {w.constant(window.grid())}]"


def load(w: Writer, op: LoadOp) -> None:
    window = Window.of(op)
    base, batch = _base(w, op, window)
    if batch or not window.shape:
        text = _gather(w, op.memref, window, base)
    else:
        text = _window(w, op.memref, window, base) + ".copy()"
    full = tile_shape(op.tile)
    w.assign(op.result, text if window.shape == full else f"widened({text}, {full[-1]})")


def store(w: Writer, op: StoreOp) -> None:
    window = Window.of(op)
    base, batch = _base(w, op, window)
    value = w.read(op.value)
    if window.shape != tile_shape(op.tile):
        value += f"[..., :{window.shape[-1]}]"
    if not batch and w.is_batched(op.value):
        value = f"sole({value}, {w.constant(op)})"
    if batch or not window.shape:
        target = _gather(w, op.memref, window, base)
        w.line(f"{target} = {value}")
        if batch and w.checked:
            w.line(f"written({target}, {value}, {w.constant(op)})")
    else:
        w.line(f"{_window(w, op.memref, window, base)}[...] = {value}")


def lookup(w: Writer, op: LookupOp) -> None:
    place = "view(u8)" if str(tile_element(op.input.type)) == "i8" else "__and__(15)"
    w.assign(op.result, f"{w.elements(op.table)}[{w.read(op.input)}.{place}]")


def constant(w: Writer, op: ConstantOp) -> None:
    buffer = padded(op.value.array)
    buffer.flags.writeable = False
    w.assign(op.result, w.constant(buffer))


def view(w: Writer, op: ViewOp) -> None:
    w.assign(op.result, f"{w.read(op.source)}[{op.bytes_before}:]")


def part(w: Writer, op: PartOp) -> None:
    kind = op.result.type
    w.assign(op.result, f"{w.read(op.source)}[{w.read(op.index)} * {memref_bytes(kind)}:]")


def alloc(w: Writer, op: memref.AllocOp) -> None:
    kind = op.memref.type
    if op.dynamic_sizes or op.symbol_operands or DYNAMIC_INDEX in kind.get_shape():
        raise QcompError.at(op, "buffers have static shapes", code="unsupported-op")
    w.assign(op.memref, f"allocate({memref_bytes(kind)})")


def size(w: Writer, op: SizeOp) -> None:
    if is_symbolic(op.size):
        raise QcompError.at(op, f"the size {op.size} is not known", code="dynamic-shape")
    w.assign(op.result, str(op.size))


def dealloc(w: Writer, op: memref.DeallocOp) -> None:
    """Nothing: Python frees it."""


RULES = {
    LoadOp: load,
    StoreOp: store,
    LookupOp: lookup,
    ConstantOp: constant,
    ViewOp: view,
    SizeOp: size,
    PartOp: part,
    memref.AllocOp: alloc,
    memref.DeallocOp: dealloc,
}
