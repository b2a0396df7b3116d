# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cutting a dimension into pieces that fill vector registers."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from qcomp.dialects.dim import is_symbolic


@dataclass(frozen=True)
class Chunk:
    """Elements start..stop in steps of `step`, each step one tile of `shape` (() for scalars).

    `valid`: only so many elements of the tile exist. Sizes may depend on symbols; then a chunk may be empty.
    """

    start: int
    stop: int
    step: int
    shape: tuple[int, ...]
    valid: int | None = None


def chunks(size: int, element: Attribute, lanes: int, byte_wise: bool = True) -> list[Chunk]:
    """`size` elements as full registers and a remainder.

    lanes: 32-bit lanes of a register, 1 for scalar code. byte_wise: bytes may be taken 64 or 32 at a time; otherwise
    16, for ops that widen them.
    """
    if lanes == 1 or size == 1:
        return [Chunk(0, size, 1, ())]
    widths = (4 * lanes, 2 * lanes, lanes) if str(element) == "i8" and byte_wise else (lanes,)
    found: list[Chunk] = []
    start = 0
    for width in widths:
        stop = start + (size - start) // width * width
        if stop != start:
            found.append(Chunk(start, stop, width, (width,)))
        start = stop
    if start != size:
        stop, step = (size, lanes) if is_symbolic(size - start) else (start + 1, 1)
        found.append(Chunk(start, stop, step, (lanes,), size - start))
    return found
