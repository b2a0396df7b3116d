# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and writing tensors of any layout at a logical index, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index


@dataclass(frozen=True)
class Seen:
    """What a kernel knows of a tensor: logical sizes, layout, element and signedness; hashable."""

    sizes: tuple[int, ...]
    layout: Layout
    element: str
    unsigned: bool

    @staticmethod
    def of(buffer: Buffer) -> Seen:
        """How `buffer` is seen."""
        return Seen(buffer.sizes, buffer.layout, str(buffer.element), buffer.unsigned)

    @property
    def order(self) -> tuple[int, ...]:
        """Logical dimension of each buffer dimension."""
        dims = tuple(range(len(self.sizes)))
        return (0, *dims[2:], 1) if self.layout.nhwc else dims

    @property
    def origin(self) -> tuple[int, ...]:
        """Where logical index 0 lies, per buffer dimension."""
        return (0, *self.layout.border[::2], 0) if self.layout.nhwc else (0,) * len(self.sizes)

    def dense(self) -> bool:
        """Whether the elements lie without gaps."""
        return not any(self.layout.border)


def place(seen: Seen, indices: Sequence[Index | int]) -> list[Index | int]:
    """The buffer indices of a logical index of the result; size-1 dimensions broadcast, missing ones are dropped."""
    own = indices[len(indices) - len(seen.sizes) :]
    return [
        (Index() if seen.sizes[dim] == 1 else Index.of(own[dim])) + start
        for dim, start in zip(seen.order, seen.origin, strict=True)
    ]


def lane_dimension(seen: Seen, rank: int, dim: int) -> int | None:
    """The buffer dimension along which logical dimension `dim` of a rank-`rank` result runs; None: it broadcasts."""
    own = dim - (rank - len(seen.sizes))
    if own < 0 or seen.sizes[own] == 1:
        return None
    return seen.order.index(own)


def load_lanes(
    b: Builder, memref: SSAValue, seen: Seen, indices: Sequence[Index | int], dim: int,
    shape: tuple[int, ...], valid: int | None,
) -> SSAValue:  # fmt: skip
    """A tile of `shape` (one dimension, or () for a scalar) along logical dimension `dim`, broadcast where needed."""
    lanes = lane_dimension(seen, len(indices), dim) if shape else None
    if lanes is None:
        value = b.load(memref, place(seen, indices))
        return b.broadcast(value, shape) if shape else value
    return b.load(memref, place(seen, indices), shape, (lanes,), None, valid)


def store_lanes(
    b: Builder, value: SSAValue, memref: SSAValue, seen: Seen, indices: Sequence[Index | int], dim: int,
    shape: tuple[int, ...], valid: int | None,
) -> None:  # fmt: skip
    """Write a tile of `shape` along logical dimension `dim`."""
    lanes = lane_dimension(seen, len(indices), dim) if shape else None
    if lanes is None:
        b.store(value, memref, place(seen, indices))
    else:
        b.store(value, memref, place(seen, indices), (lanes,), None, valid)
