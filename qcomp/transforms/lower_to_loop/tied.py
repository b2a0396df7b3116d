# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that several ops read: stored once.

Linears of different numbers of rows like different tiles. The one with the most rows decides how the weight lies; the
others take a tile that reads it where that costs next to nothing.

A table of embeddings may be a weight, too, as in tied language models. The linear reads all of it for each call, the
embedding a row for each index. So it lies as the linear packs it, and the embedding finds its rows there
(`packed_embedding`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.constant import Array
from qcomp.dialects.nn.base import shape
from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.tiles import choose_tile, nominal

if TYPE_CHECKING:
    from qcomp.transforms.lower_to_loop.contraction import ContractionKernel
    from qcomp.transforms.lower_to_loop.driver import Lowering
    from qcomp.transforms.lower_to_loop.stored import Storage, StoredWeight


@dataclass(frozen=True)
class PackedTable:
    """A table as a contraction packs it: its kernel, and the constant buffers of weights and their parameters.

    storage: of codes, without a table of reals. across: whether rows are what the contraction sums over, not channels.
    """

    spec: ContractionKernel
    buffers: Sequence[SSAValue]
    storage: Storage | None
    across: bool


class TiedTables:
    """The tables of a function that are weights of contractions, too, and what these made of them."""

    def __init__(self, lowering: Lowering):
        self._lowering = lowering
        self._users: dict[Hashable, set[tuple[int, int, int]]] = {}
        self._tables: dict[SSAValue, tuple[SSAValue, bool]] = {}
        self._packed: dict[SSAValue, PackedTable] = {}
        ops = list(lowering.source.walk())
        tables = dict.fromkeys(op.weight for op in ops if isinstance(op, nn.EmbeddingOp))
        weights = {weight: turned for op in ops for weight, turned in self._use(op)}
        for weight, turned in weights.items():
            for table in tables:
                across = _same(lowering, table, weight, turned)
                if across is not None:
                    self._tables.setdefault(weight, (table, across))
        self._shared = {table for table, _ in self._tables.values()}

    def __contains__(self, table: SSAValue) -> bool:
        return table in self._shared

    def note(
        self, weight: SSAValue, spec: ContractionKernel, buffers: Sequence[SSAValue], stored: StoredWeight | None = None
    ) -> None:
        """Take down how the contraction with that operand packs it, if it is a table; the first one counts."""
        if weight in self._tables:
            table, across = self._tables[weight]
            storage = None if stored is None else stored.without_table
            self._packed.setdefault(table, PackedTable(spec, buffers, storage, across))

    def vectors(self, weight: SSAValue | None, dot: int, unpacking: float) -> int | None:
        """The registers of channels that lie together for the sake of the op with the most rows; None without others.

        dot: neighbours that are multiplied together; unpacking: as for `choose_tile`.
        """
        users = set[tuple[int, int, int]]() if weight is None else self._users.get(self._key(weight), set())
        if len(users) < 2:
            return None
        rows, channels, run = max(users)
        steps, distance = -(-run // dot), run * (4 if dot == 1 else 1)
        return choose_tile(self._lowering.target, 1, rows, channels, steps, distance, unpacking).vectors

    def _use(self, op: Operation) -> Iterator[tuple[SSAValue, bool]]:
        """The operand that a contraction packs, and whether its channels are columns."""
        if isinstance(op, nn.LinearOp | nn.DynamicLinearOp):
            weight, x, turned = op.weight, op.input, False
        elif isinstance(op, nn.MatmulOp):
            weight, x, turned = op.rhs, op.lhs, True
        else:
            return
        if _raw(self._lowering, weight) is None:
            return
        rows, sizes = nominal(math.prod(shape(x)[:-1])), shape(weight)
        channels, run = sizes[::-1] if turned else sizes
        self._users.setdefault(self._key(weight), set()).add((rows, channels, run))
        yield weight, turned

    def _key(self, weight: SSAValue) -> Hashable:
        held = _raw(self._lowering, weight)
        codes = held.codes if isinstance(held, CodedWeight) else held
        return weight if codes is None else (codes.ctypes.data, codes.shape, codes.strides)

    def packed(self, table: SSAValue) -> PackedTable | None:
        """How a table is packed; None when no contraction was lowered that has it."""
        return self._packed.get(table)


def _raw(lowering: Lowering, value: SSAValue) -> Array | CodedWeight | None:
    """The contents of a constant matrix, 16-bit floats that are cast as they are; None for other values."""
    half = lowering.half(value)
    if half is not None:
        return half.array
    found = lowering.coded(value)
    if found is None and isinstance(value.owner, nn.ConstantOp):
        found = value.owner.array
    return found if found is not None and found.ndim == 2 else None


def _same(lowering: Lowering, table: SSAValue, weight: SSAValue, turned: bool) -> bool | None:
    """Whether rows of `table` are what a contraction sums over; None when it is not its weight."""
    one, other = _raw(lowering, table), _raw(lowering, weight)
    if one is None or other is None:
        return None
    for across in (False, True):
        if _equal(one, other.transpose(1, 0) if turned != across else other):
            return across
    return None


def _equal(one: Array | CodedWeight, other: Array | CodedWeight) -> bool:
    if isinstance(one, CodedWeight) and isinstance(other, CodedWeight):
        if not _equal(one.codes, other.codes):
            return False
        both = ((one.scales, other.scales), (one.zeros, other.zeros))
        return all(a.repeats == b.repeats and np.array_equal(a.values, b.values) for a, b in both)
    if isinstance(one, CodedWeight) or isinstance(other, CodedWeight) or one.shape != other.shape:
        return False
    if one.dtype != other.dtype:
        return False
    if one.ctypes.data == other.ctypes.data and one.strides == other.strides:
        return True
    # By bits: -0.0 is not 0.0, and NaN is itself.
    kind = f"u{one.dtype.itemsize}"
    return all(bool((a.view(kind) == b.view(kind)).all()) for a, b in zip(_bands(one), _bands(other), strict=True))


def _bands(array: Array) -> Iterator[Array]:
    """A matrix in bands of rows: the first difference ends a comparison."""
    for begin in range(0, len(array), 256):
        yield np.ascontiguousarray(array[begin : begin + 256])
