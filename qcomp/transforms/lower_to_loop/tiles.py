# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which register tile a contraction uses: the one with the least estimated time over the whole output.

A tile is rows x columns of output pixels times `vectors` registers of output channels. Per step of the inner loop it
issues rows * columns * vectors multiply-adds, one broadcast load per pixel and one load per vector; it needs an
accumulator per pair, the vectors and one pixel in registers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from qcomp.backend.target import Target
from qcomp.dialects.dim import is_symbolic

_LOAD_COST = 0.6
"""Cost of a load relative to a multiply-add, when loads bound the loop."""
_EPILOGUE = 7.0
"""Ops per accumulator between the inner loop and the store."""
_LOOP = 24.0
"""Fixed cost of starting a tile."""


@dataclass(frozen=True)
class Tile:
    """Output pixels (rows x columns) and registers of channels computed together."""

    rows: int
    columns: int
    vectors: int


@dataclass(frozen=True)
class Region:
    """A rectangle of output pixels covered by tiles of one size."""

    top: int
    bottom: int
    left: int
    right: int
    rows: int
    columns: int


_HARDLY = 1.03
"""How much more time a contraction may take for weights that another one has packed."""
_WAITING, _UNCACHED = 2, 1 << 20
"""Up to so many pixels, and from so many weights (or groups of four) on, a contraction waits for memory."""
_CONFLICT = 1.6
"""How much slower the inner loop is when the pixels of a tile evict one another from the first-level cache."""


def choose_tile(
    target: Target, height: int, width: int, channels: int, steps: int, pixel_bytes: int = 0, unpacking: float = 0.0,
    packed: int | None = None,
) -> Tile:  # fmt: skip
    """The tile for an output of height x width pixels and `channels`, with `steps` inner iterations.

    pixel_bytes: distance of the input of neighbouring output pixels. unpacking: cost of making reals of a register of
    weights, in multiply-adds. packed: the `vectors` of another contraction with the same weights, which are stored
    once where a tile of so many takes hardly longer.
    """
    if target.lanes == 1:
        return Tile(1, 1, 1)
    blocks = -(-channels // target.lanes)
    candidates = [
        Tile(rows, columns, vectors)
        for vectors in ((1, 2, 3, 4, 6, 8) if not unpacking else _compact(blocks))
        if vectors <= blocks
        for rows, columns in _pixels(nominal(height), nominal(width))
        if rows * columns * vectors + vectors + 1 <= target.registers - 1
    ]
    room = _conflict_free(target, pixel_bytes)

    def cost(tile: Tile) -> float:
        """The time of an output; where its width depends on symbols, of outputs of usual widths, each for a pixel."""
        part = is_symbolic(width)
        sizes = [(nominal(height), usual) for usual in (_USUAL if part else (width,))]
        work = (blocks, steps, room, unpacking)
        return sum(_cost(tile, h, w, work, part) / (w if part else 1) for h, w in sizes)

    def best(tiles: list[Tile]) -> Tile:
        return min(tiles, key=lambda tile: (cost(tile), tile.rows, -tile.columns))

    found = best(candidates)
    alike = [tile for tile in candidates if tile.vectors == packed]
    if not alike:
        return found
    # A few pixels wait for weights that no cache holds, whatever the tile.
    waits = nominal(height) * nominal(width) <= _WAITING and channels * steps >= _UNCACHED
    shared = best(alike)
    return shared if waits or cost(shared) <= _HARDLY * cost(found) else found


def _compact(blocks: int) -> list[int]:
    """Registers of channels that a tile of codes may have: what pads the last tile is an eighth of them at most."""
    return [vectors for vectors in range(1, 9) if 8 * (-blocks % vectors) <= blocks]


def _conflict_free(target: Target, pixel_bytes: int) -> int:
    """How many pixels that far apart stay in the first-level cache beside the weights that stream through it."""
    sets = target.cache_way_bytes // math.gcd(target.cache_way_bytes, max(pixel_bytes, 1))
    return max(sets, 1) * (target.cache_ways - 2)


def _pixels(height: int, width: int) -> Iterator[tuple[int, int]]:
    for columns in range(1, min(width, 28) + 1):
        yield 1, columns
    for rows in range(2, min(height, 14) + 1):
        if width <= 14:
            yield rows, width


def _cost(tile: Tile, height: int, width: int, work: tuple[int, int, int, float], parts: bool) -> float:
    """The time of an output; work: blocks, steps, room and unpacking; parts: its width is cut as a symbolic one is."""
    blocks, steps, room, unpacking = work
    total = 0.0
    for vectors, count in ((tile.vectors, blocks // tile.vectors), (blocks % tile.vectors, 1)):
        if not vectors or not count:
            continue
        for region in _regions(cuts(height, tile.rows), cuts(width, tile.columns, parts)):
            pixels = region.rows * region.columns
            tiles = (region.bottom - region.top) * (region.right - region.left) // pixels
            # Dependent chains: a multiply-add has a latency of 4 cycles and two can start per two cycles.
            step = max(pixels * vectors, (pixels + vectors) * _LOAD_COST, 4.0)
            step *= _CONFLICT if pixels > room else 1.0
            step += vectors * unpacking
            total += count * tiles * (steps * step + pixels * vectors * _EPILOGUE + _LOOP)
    return total


_USUAL = (1, 7, 16, 32, 56, 112)
"""Widths that a symbolic one stands for."""
NOMINAL = 64
"""What a symbolic number of pixels is taken for where a tile is chosen."""


def nominal(size: int) -> int:
    """A number in place of a size that depends on symbols, for choices that only speed depends on."""
    return NOMINAL if is_symbolic(size) else size


def regions(tile: Tile, height: int, width: int) -> list[Region]:
    """The output cut into rectangles: full tiles, and what remains on the right and at the bottom."""
    return _regions(cuts(height, tile.rows), cuts(width, tile.columns))


Cut = tuple[int, int, int]
"""start, stop, step"""


def _regions(bands: Iterator[Cut], strips: Iterator[Cut]) -> list[Region]:
    pairs = product(bands, strips)
    return [Region(top, bottom, left, right, band, strip) for (top, bottom, band), (left, right, strip) in pairs]


def cuts(size: int, step: int, parts: bool | None = None) -> Iterator[Cut]:
    """Parts that cover `size` elements, each a multiple of its step.

    parts: what full steps leave over is done by halves or thirds of a step and so on, in the end one by one; by default
    where `size` is symbolic. Else it is one step.
    """
    start = 0
    parts = is_symbolic(size) if parts is None else parts
    for width in _divisors(step) if parts else (step, size % step):
        stop = size // max(width, 1) * width if parts or not start else size
        if stop != start:
            yield start, stop, width
        start = stop


def _divisors(step: int) -> list[int]:
    """From `step` down to 1, each a divisor of the one before."""
    found = [step]
    while found[-1] > 1:
        found.append(found[-1] // next(prime for prime in range(2, found[-1] + 1) if found[-1] % prime == 0))
    return found
