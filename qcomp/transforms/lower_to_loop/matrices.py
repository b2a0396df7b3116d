# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over batches of matrices, which the kernels of matmul share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from qcomp.dialects.dim import is_symbolic
from qcomp.transforms.lower_to_loop.builder import Builder, Index
from qcomp.transforms.lower_to_loop.tiles import Tile, regions

ROWS = 8
"""How many rows of a strip are summed together."""
Strip = Callable[[Index, Index, int, int | None], None]
"""Emits rows of one register of columns, from its (row, column, number of rows, valid lanes or None for all)."""


def strips(b: Builder, lanes: int, rows: int, columns: tuple[int, int], valid: int | None, emit: Strip) -> None:
    """Columns [first, last) a register at a time, or what is left of one in which `valid` lanes count."""
    first, last = columns
    step = lanes if valid is None or is_symbolic(valid) else last - first
    with b.loop(first, last, step, kind="parallel") as column:
        for region in regions(Tile(1, ROWS, 1), 1, rows):
            with b.loop(region.left, region.right, region.columns, kind="parallel") as row:
                emit(row.index, column.index, region.columns, valid)


def batch_loops(b: Builder, stack: ExitStack, sizes: Sequence[int]) -> list[Index]:
    """Open loops over batch dimensions."""
    return [
        stack.enter_context(b.loop(0, size, kind="parallel")).index if size != 1 else Index() for size in sizes
    ]  # fmt: skip


def own_batch(sizes: tuple[int, ...], batch: Sequence[Index]) -> list[Index | int]:
    """The batch indices of an operand with these batch sizes."""
    return [0 if size == 1 else index for size, index in zip(sizes, batch, strict=True)]


def flat(sizes: tuple[int, ...], batch: Sequence[Index]) -> Index:
    """Which matrix of an operand with these batch sizes it is, in row-major order."""
    found = Index()
    for size, index in zip(sizes, own_batch(sizes, batch), strict=True):
        found = found * size + index
    return found
