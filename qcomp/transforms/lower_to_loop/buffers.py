# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tensors lie in buffers.

Images inside a program lie channels last, [N, H, W, C] ([N, L, C], [N, D, H, W, C]), with a border wide enough for the
padding of every consumer; the border holds real zero (the zero point), so padding costs the consumer nothing.
Everything else, and what the caller passes, is row-major. Which tensors are images `layouts` decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerType, MemRefType, TensorType, bf16, f16, f32, f64, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import ui8, ui16
from qcomp.dialects.nn.base import UNKNOWN, shape, tensor
from qcomp.dialects.quant import Encoding, encoding_of
from qcomp.errors import QcompError

MemRef = MemRefType[Attribute]
Border = tuple[int, ...]
"""Elements before and after each spatial dimension: top, bottom, left, right."""
NO_BORDER: Border = (0, 0, 0, 0)
SLACK = 64
"""Bytes that reads may run over the end of a buffer."""


@dataclass(frozen=True)
class Layout:
    """Channels last with a border (`nhwc`), or row-major."""

    nhwc: bool
    border: Border = NO_BORDER


@dataclass
class Buffer:
    """A tensor in memory: the memref value in main that holds it, its logical shape and how it lies there."""

    value: SSAValue
    sizes: tuple[int, ...]
    layout: Layout
    encoding: Encoding | None
    element: Attribute
    views: dict[MemRef, SSAValue] = field(default_factory=dict[MemRef, SSAValue])

    @property
    def physical(self) -> tuple[int, ...]:
        """The sizes of the buffer's dimensions."""
        return physical_shape(self.sizes, self.layout)

    @property
    def type(self) -> MemRef:
        """The memref type with those sizes."""
        return memref_of(self.element, self.physical)

    @property
    def row_major(self) -> bool:
        """Whether memory order is the logical row-major order, without gaps."""
        if not self.layout.nhwc:
            return True
        _, channels, *spatial = self.sizes
        return not any(self.layout.border) and (channels == 1 or math.prod(spatial) == 1)

    @property
    def unsigned(self) -> bool:
        """Whether bytes are read as unsigned."""
        return self.encoding is not None and not self.encoding.signed


def physical_shape(sizes: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """The buffer's dimensions for a tensor of `sizes`."""
    if not layout.nhwc:
        return sizes
    n, c, *spatial = sizes
    sides = zip(spatial, layout.border[::2], layout.border[1::2], strict=True)
    return (n, *(size + low + high for size, low, high in sides), c)


def no_border(rank: int) -> Border:
    """The border of width 0 of a channels-last tensor of that rank."""
    return (0,) * (2 * (rank - 2))


def storage_element(value: SSAValue) -> Attribute:
    """The signless element type that a buffer for `value` has. Raises QcompError for types the loop level lacks."""
    encoding = encoding_of(value.type)
    if encoding is not None:
        if encoding.width == 8:
            return i8
        raise QcompError(f"{encoding.width}-bit codes are not lowered to loops", code="lower")
    element = tensor(value).element_type
    if element in (f32, f64, i8, i16, i32, i64):
        return element
    if element == ui8 or element == IntegerType(1):
        return i8
    if element in (ui16, f16, bf16):
        return i16
    raise QcompError(f"tensors of {element} are not lowered to loops", code="lower")


def lies_as_itself(value: SSAValue) -> bool:
    """Whether a tensor is quantized, or of f32, bool, or an integer of 8, 32 or 64 bits: what all kernels know."""
    element = tensor(value).element_type
    return encoding_of(value.type) is not None or element in (f32, i8, ui8, i32, i64, IntegerType(1))


def static_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of `value`, which may depend on symbols. Raises QcompError when a dimension is not known."""
    if not isinstance(value.type, TensorType):
        raise QcompError(f"values of type {value.type} are not lowered to loops", code="lower")
    sizes = shape(value)
    if UNKNOWN in sizes:
        text = "x".join("?" if size == UNKNOWN else str(size) for size in sizes)
        raise QcompError(f"dynamic shape {text} is not lowered to loops", code="lower", hint="specialize it")
    return sizes
