# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plan-memory: every buffer of main becomes a part of one arena that the caller gives.

    %b = memref.alloc() : memref<1x58x58x64xi8>
=>
    %b = loop.view %arena {offset = 4096} : memref<N x i8> to memref<1x58x58x64xi8>

Two buffers share bytes when their lifetimes, from first to last use through views, do not overlap, or when a kernel
may write its result over an operand that dies there. Placement is greedy, largest buffer first, at the lowest offset
that is free over its lifetime; the result is compared with the bound: the most bytes alive at one time.

A size that depends on symbols is a number times a polynomial that has no common factor, as 4096 * b is 4096 times b.
Buffers of one polynomial are placed as if it were 1, in a region of their own, and all their offsets are times it: so
a program whose batch is a symbol has the plan that it has for a batch of 1, whatever the batch is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import gcd
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    UnitAttr,
    i8,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from qcomp.dialects import loop
from qcomp.dialects.dim import Dim
from qcomp.dialects.dims import memref_of, size_attribute
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.lower_to_loop.buffers import SLACK
from qcomp.transforms.lower_to_loop.driver import MAY_ALIAS

ALIGNMENT = 64
BOUND = "qcomp.arena_bound"
"""On main: the largest number of bytes alive at one time."""


@dataclass
class Interval:
    """A buffer's lifetime in positions of main, its size, and after planning its offset."""

    buffers: list[AllocOp]
    first: int
    last: int
    size: int
    offset: int = -1
    unit: int = 1
    """What size and offset are multiplied by."""
    start: int = 0
    """Where the region of that unit begins."""

    @property
    def place(self) -> int:
        """Where the buffer begins."""
        return self.start + self.unit * self.offset


@dataclass
class Plan:
    """Offsets of all buffers, the arena's size and the bound."""

    intervals: Sequence[Interval] = field(default_factory=list[Interval])
    arena: int = 0
    bound: int = 0


def aligned(size: int) -> int:
    """`size` rounded up to the alignment of buffers."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def plan(main: FuncOp) -> Plan:
    """The memory plan of `main`."""
    joined = join(main, lifetimes(main))
    arena, most = 0, 0
    for unit in dict.fromkeys(item.unit for item in joined):
        region = place([item for item in joined if item.unit == unit])
        for item in region:
            item.start = arena
        arena = arena + unit * max(item.offset + item.size for item in region)
        most = most + unit * bound(region)
    return Plan(joined, arena + SLACK if joined else 0, most)


def scaled(size: int) -> tuple[int, int]:
    """(number, polynomial) whose product is `size`, the number rounded up to the alignment."""
    if not isinstance(size, Dim):
        return aligned(size), 1
    common = reduce(gcd, (factor for _, factor in size.terms))
    return aligned(common), size // common


def lifetimes(main: FuncOp) -> dict[AllocOp, Interval]:
    """First and last position at which each buffer is used, through views.

    Positions count all ops, those in regions after the op that holds them. A buffer from outside a loop that is used in
    it is alive all through the loop.
    """
    found: dict[AllocOp, Interval] = {}
    base: dict[SSAValue, AllocOp] = {}
    spans = _loops(main)
    for position, op in enumerate(main.body.walk()):
        if isinstance(op, AllocOp):
            kind = op.memref.type
            size, unit = scaled(loop.memref_bytes(kind))
            found[op] = Interval([op], -1, -1, size, unit=unit)
            base[op.memref] = op
        elif isinstance(op, loop.ViewOp | loop.PartOp) and op.source in base:
            base[op.result] = base[op.source]
        else:
            for value in op.operands:
                if value in base:
                    interval = found[base[value]]
                    first, last = _span(op, base[value], spans) or (position, position)
                    interval.first = first if interval.first < 0 else min(first, interval.first)
                    interval.last = max(last, interval.last)
    return {op: interval for op, interval in found.items() if interval.first >= 0}


def _loops(main: FuncOp) -> dict[Operation, tuple[int, int]]:
    """First and last position of the loops of main."""
    position = {op: place for place, op in enumerate(main.body.walk())}
    found = [op for op in position if isinstance(op, loop.WhileOp | loop.ForOp)]
    return {op: (position[op], max(position[inner] for inner in op.walk())) for op in found}


def _span(op: Operation, buffer: AllocOp, spans: dict[Operation, tuple[int, int]]) -> tuple[int, int] | None:
    """The positions of the outermost loop around `op` that does not hold `buffer`."""
    found: tuple[int, int] | None = None
    around = op.parent_op()
    while around is not None and not around.is_ancestor(buffer):
        found = spans[around] if around in spans else found
        around = around.parent_op()
    return found


def join(main: FuncOp, found: dict[AllocOp, Interval]) -> list[Interval]:
    """Join intervals where a call may write its result over an operand that dies there."""
    base = _bases(main)
    for position, op in enumerate(main.body.walk()):
        pairs = op.attributes.get(MAY_ALIAS) if isinstance(op, CallOp) else None
        if pairs is None:
            continue
        flat = ints(pairs)
        if len(flat) % 2 or not all(0 <= index < len(op.operands) for index in flat):
            raise QcompError.at(op, f"{MAY_ALIAS} should be pairs of operands", code="plan-memory")
        allowed = list(zip(flat[::2], flat[1::2], strict=True))
        for result, operand in allowed:
            into, source = base.get(op.operands[result]), base.get(op.operands[operand])
            if into is None or source is None or found[into] is found[source]:
                continue
            # The kernel may read the same buffer through another operand, which it must not write over.
            readers = [index for index, value in enumerate(op.operands) if base.get(value) is source]
            if any((result, reader) not in allowed for reader in readers):
                continue
            new, old = found[into], found[source]
            if new.first == position and old.last == position and (new.size, new.unit) == (old.size, old.unit):
                old.last = new.last
                old.buffers += new.buffers
                for buffer in new.buffers:
                    found[buffer] = old
                break
    return list({id(interval): interval for interval in found.values()}.values())


def _bases(main: FuncOp) -> dict[SSAValue, AllocOp]:
    base: dict[SSAValue, AllocOp] = {}
    for op in main.body.walk():
        if isinstance(op, AllocOp):
            base[op.memref] = op
        elif isinstance(op, loop.ViewOp | loop.PartOp) and op.source in base:
            base[op.result] = base[op.source]
    return base


def place(intervals: list[Interval]) -> list[Interval]:
    """Give every interval the lowest offset that is free over its lifetime, largest first."""
    placed: list[Interval] = []
    for item in sorted(intervals, key=lambda one: (-one.size, one.first, one.last)):
        taken = sorted(
            (other.offset, other.offset + other.size)
            for other in placed
            if other.first <= item.last and item.first <= other.last
        )
        offset = 0
        for low, high in taken:
            if offset + item.size <= low:
                break
            offset = max(offset, high)
        item.offset = offset
        placed.append(item)
    return placed


def bound(intervals: Sequence[Interval]) -> int:
    """The most bytes alive at one position."""
    changes: dict[int, int] = {}
    for item in intervals:
        changes[item.first] = changes.get(item.first, 0) + item.size
        changes[item.last + 1] = changes.get(item.last + 1, 0) - item.size
    alive, most = 0, 0
    for position in sorted(changes):
        alive += changes[position]
        most = max(most, alive)
    return most


@dataclass(frozen=True)
class PlanMemoryPass(QcompPass):
    """Put all buffers into one arena given by the caller."""

    name = "plan-memory"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        main = next((f for f in op.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == "main"), None)
        if main is None:
            raise QcompError.at(
                op.body.block.first_op or op,
                "the module has no function main",
                code="plan-memory",
                hint="run lower-to-loop first",
            )
        _apply(main, plan(main))


def _apply(main: FuncOp, decided: Plan) -> None:
    main.attributes[BOUND] = size_attribute(decided.bound)
    offsets = {buffer: item.place for item in decided.intervals for buffer in item.buffers}
    dead = [op for op in main.body.walk() if isinstance(op, AllocOp) and op not in offsets]
    arena = _add_arena(main, decided.arena) if decided.arena != 0 else None
    for op, offset in offsets.items():
        assert arena is not None
        view = loop.ViewOp(arena, offset, op.memref.type)
        view.location = op.location
        view.result.name_hint = op.memref.name_hint
        sizes = list(op.dynamic_sizes)
        Rewriter.replace_op(op, view)
        for value in sizes:
            if isinstance(value.owner, loop.SizeOp) and not value.uses:
                Rewriter.erase_op(value.owner)
    for op in dead:
        _erase_unused(op)


def _erase_unused(op: Operation) -> None:
    for use in list(op.results[0].uses):
        _erase_unused(use.operation)
    Rewriter.erase_op(op)


def _add_arena(main: FuncOp, size: int) -> SSAValue:
    block = main.body.block
    arena = block.insert_arg(memref_of(i8, (size,)), len(block.args))
    arena.name_hint = "arena"
    main.function_type = FunctionType.from_lists([arg.type for arg in block.args], [])
    old = list(main.arg_attrs.data) if main.arg_attrs else [DictionaryAttr({})] * (len(block.args) - 1)
    main.arg_attrs = ArrayAttr([*old, DictionaryAttr({"qcomp.arena": UnitAttr()})])
    return arena
