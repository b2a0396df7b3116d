# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the codes of a weight are stored, and how a kernel makes reals of them in registers.

Codes that take at most 16 values are stored in four bits, counted from the least code: two places of a row share a
byte, the first in its lower half. A scale holds for `group` places of a row, in one row or in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from qcomp.dialects import loop
from qcomp.dialects.constant import Array
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.builder import Builder
from qcomp.transforms.lower_to_loop.driver import Lowering

_HALF = 16
"""Values of four bits."""


@dataclass(frozen=True)
class Storage:
    """What a kernel's code depends on. nibbles: four bits a code; else `unsigned` or signed bytes.

    run: places of a row; group: places that share a scale; rows: rows with scales of their own, 1 when all share them;
    scaled: whether there are scales, which else are all 1.
    zero: what is taken off every code, in integers. zeros: the element type of zero points that are read: "i8", instead
    of `zero`, or "f32", after it. table: reals of four bits are looked up, `zero` taken off already.
    """

    nibbles: bool
    unsigned: bool
    run: int
    group: int
    rows: int
    zero: int = 0
    zeros: str | None = None
    table: bool = False
    scaled: bool = True

    @property
    def groups(self) -> int:
        """Scales of a row."""
        return self.run // self.group

    @property
    def per_channel(self) -> bool:
        """Whether all weights of a channel have one scale."""
        return self.groups == self.rows == 1

    @property
    def held(self) -> int:
        """Bytes that hold the codes of a group."""
        return -(-self.group // 2) if self.nibbles else self.group

    @property
    def parameters(self) -> list[tuple[str, Attribute]]:
        """Names and element types of the buffers with a value per group."""
        zeros: dict[str, Attribute] = {"i8": i8, "f32": f32}
        found: list[tuple[str, Attribute]] = [("weight_scale", f32)] if self.scaled else []
        return found if self.zeros is None else [*found, ("weight_zero", zeros[self.zeros])]


@dataclass(frozen=True, eq=False)
class StoredWeight:
    """Bytes [channels, rows, groups * held]; parameters [channels, 1 or rows, groups], in the order of `Storage`.

    table: the reals of four bits, where the storage has one.
    """

    storage: Storage
    data: Array
    parameters: list[Array]
    table: Array

    @property
    def without_table(self) -> Storage:
        """The same storage for kernels that look nothing up."""
        if not self.storage.table:
            return self.storage
        return replace(self.storage, table=False, zero=-int(cast(int, self.table[0])))


def store(weight: CodedWeight, lanes: int, halves: bool = True) -> StoredWeight | None:
    """How `weight` [channels, rows, run] is stored; None when floats take no more room.

    lanes: of a register, which may hold a table. halves: four bits may be used.
    """
    _, rows, run = weight.shape
    if not weight.codes.size:
        return None
    both = (weight.scales, weight.zeros)
    group = math.gcd(*(values.run() for values in both))
    by_row = rows > 1 and any(values.varies(1) for values in both)
    least, most = int(cast(int, weight.codes.min())), int(cast(int, weight.codes.max()))
    nibbles, unsigned = halves and most - least < _HALF and group > 1, weight.codes.dtype == np.uint8
    rows = rows if by_row else 1
    scales, zeros = (np.ascontiguousarray(values.every(2, group).whole()[:, :rows]) for values in both)
    base = least if nibbles else 0
    zero, kind, parameters = _zero_points(zeros, base, nibbles or unsigned)
    table: Array = np.arange(_HALF, dtype=np.float32) - np.float32(zero)
    scaled = bool((scales != 1).any())
    held = Storage(nibbles, nibbles or unsigned, run, group, rows, zero, kind, scaled=scaled)
    if nibbles and lanes >= _HALF:
        held = replace(held, zero=0, table=True)
    codes = _packed(weight.codes, held, base) if nibbles else weight.codes
    stored = StoredWeight(held, codes, [scales, *parameters] if scaled else parameters, table)
    size = codes.nbytes + sum(array.nbytes for array in stored.parameters)
    return stored if size < 4 * weight.codes.size else None


def _zero_points(zeros: Array, base: int, unsigned: bool) -> tuple[int, str | None, list[Array]]:
    """The number to take off every code, which counts from `base`, and the element type and array of what is read."""
    if zeros.dtype.kind == "f":
        return -base, "f32", [zeros]
    moved = zeros.astype(np.int64) - base
    first = int(moved.reshape(-1)[0])
    if bool((moved == first).all()):
        return first, None, []
    low, high = (0, 255) if unsigned else (-128, 127)
    if moved.min() < low or moved.max() > high:
        return -base, "f32", [zeros.astype(np.float32)]
    return 0, "i8", [moved.astype(np.uint8 if unsigned else np.int8)]


def _packed(codes: Array, storage: Storage, base: int) -> Array:
    """Two codes a byte, group by group; the upper half of the last byte of an odd group is 0."""
    channels, rows, _ = codes.shape
    places: Array = np.zeros((channels, rows, storage.groups, 2 * storage.held), np.uint8)
    split = codes.reshape(channels, rows, storage.groups, storage.group)
    # Modulo 256, and codes less the least of them are below 16.
    np.subtract(split.view(np.uint8), np.uint8(base % 256), out=places[..., : storage.group])
    pairs = places.reshape(channels, rows, storage.groups * storage.held, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4)


def parameter_constants(
    lowering: Lowering, stored: StoredWeight | None, pack: Callable[[Array], Array]
) -> list[SSAValue]:
    """The buffers of `Storage.parameters`, laid out by `pack`; none for a weight in reals."""
    if stored is None:
        return []
    pairs = zip(stored.parameters, stored.storage.parameters, strict=True)
    found = [lowering.constant(pack(array), element) for array, (_, element) in pairs]
    return [*found, lowering.constant(stored.table, f32)] if stored.storage.table else found


@dataclass(frozen=True)
class Decoder:
    """Makes reals of the codes of one group in tiles of one shape. scale: a tile of that shape, or None where sums are
    scaled; zero: a tile, in i32 or f32, when zero points are read; table: the buffer of it.
    """

    b: Builder
    storage: Storage
    scale: SSAValue | None
    zero: SSAValue | None
    table: SSAValue | None

    def reals(self, tile: SSAValue) -> list[SSAValue]:
        """The tile of reals of a tile of bytes; of nibbles two, that of the first places and that of the second."""
        b = self.b
        wide = b.add(loop.ExtendOp(tile, self.storage.unsigned))
        if not self.storage.nibbles:
            return [self._real(wide)]
        shape = loop.tile_shape(tile.type)
        first = wide if self.table is not None else b.add(arith.AndIOp(wide, b.integer(_HALF - 1, shape)))
        second = b.add(arith.ShRSIOp(wide, b.integer(4, shape)))
        return [self._real(first), self._real(second)]

    def _real(self, code: SSAValue) -> SSAValue:
        """(code - zero) * scale, the difference in integers unless one is none, or both fit a table."""
        b, shape, zero = self.b, loop.tile_shape(code.type), self.zero
        if zero is not None and loop.tile_element(zero.type) == i32:
            code, zero = b.difference(code, zero), None
        elif self.storage.zero:
            code = b.difference(code, b.integer(self.storage.zero, shape))
        real = b.add(loop.ToFloatOp(code) if self.table is None else loop.LookupOp(self.table, code))
        if zero is not None:
            real = b.add(arith.SubfOp(real, zero))
        return real if self.scale is None else b.add(arith.MulfOp(real, self.scale))


def decoder(
    b: Builder, storage: Storage, load: Callable[[str], SSAValue], table: SSAValue | None, scaled: bool = True
) -> Decoder:
    """The decoder of one group. load: the tile of a parameter by its name; table: the buffer of the table, if any."""
    zero = None if storage.zeros is None else load("weight_zero")
    if zero is not None and storage.zeros == "i8":
        zero = b.add(loop.ExtendOp(zero, storage.unsigned))
        zero = zero if table is None else b.add(loop.ToFloatOp(zero))
    return Decoder(b, storage, load("weight_scale") if scaled and storage.scaled else None, zero, table)
