# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plan-memory: every buffer of main becomes a part of one arena that the caller gives.

    %b = memref.alloc() : memref<1x58x58x64xi8>
=>
    %b = loop.view %arena {offset = 4096} : memref<N x i8> to memref<1x58x58x64xi8>

Two buffers share bytes when their lifetimes, from first to last use through views, do not overlap, or when a kernel
may write its result over an operand that dies there. Placement is greedy, largest buffer first, at the lowest offset
that is free over its lifetime; the result is compared with the bound: the most bytes alive at one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    i8,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from qcomp.dialects import loop
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
    intervals = place(join(main, lifetimes(main)))
    arena = max((item.offset + item.size for item in intervals), default=0)
    return Plan(intervals, arena + SLACK if intervals else 0, bound(intervals))


def lifetimes(main: FuncOp) -> dict[AllocOp, Interval]:
    """First and last position at which each buffer is used, through views."""
    found: dict[AllocOp, Interval] = {}
    base: dict[SSAValue, AllocOp] = {}
    for position, op in enumerate(main.body.block.ops):
        if isinstance(op, AllocOp):
            kind = op.memref.type
            found[op] = Interval([op], -1, -1, aligned(loop.memref_bytes(kind)))
            base[op.memref] = op
        elif isinstance(op, loop.ViewOp) and op.source in base:
            base[op.result] = base[op.source]
        else:
            for value in op.operands:
                if value in base:
                    interval = found[base[value]]
                    interval.first = position if interval.first < 0 else interval.first
                    interval.last = position
    return {op: interval for op, interval in found.items() if interval.first >= 0}


def join(main: FuncOp, found: dict[AllocOp, Interval]) -> list[Interval]:
    """Join intervals where a call may write its result over an operand that dies there."""
    base = _bases(main)
    for position, op in enumerate(main.body.block.ops):
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
            if new.first == position and old.last == position and new.size == old.size:
                old.last = new.last
                old.buffers += new.buffers
                for buffer in new.buffers:
                    found[buffer] = old
                break
    return list({id(interval): interval for interval in found.values()}.values())


def _bases(main: FuncOp) -> dict[SSAValue, AllocOp]:
    base: dict[SSAValue, AllocOp] = {}
    for op in main.body.block.ops:
        if isinstance(op, AllocOp):
            base[op.memref] = op
        elif isinstance(op, loop.ViewOp) and op.source in base:
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
    main.attributes[BOUND] = IntegerAttr(decided.bound, i64)
    offsets = {buffer: item.offset for item in decided.intervals for buffer in item.buffers}
    dead = [op for op in main.body.block.ops if isinstance(op, AllocOp) and op not in offsets]
    arena = _add_arena(main, decided.arena) if decided.arena else None
    for op, offset in offsets.items():
        assert arena is not None
        view = loop.ViewOp(arena, offset, op.memref.type)
        view.location = op.location
        view.result.name_hint = op.memref.name_hint
        Rewriter.replace_op(op, view)
    for op in dead:
        _erase_unused(op)


def _erase_unused(op: Operation) -> None:
    for use in list(op.results[0].uses):
        _erase_unused(use.operation)
    Rewriter.erase_op(op)


def _add_arena(main: FuncOp, size: int) -> SSAValue:
    block = main.body.block
    arena = block.insert_arg(MemRefType(i8, (size,)), len(block.args))
    arena.name_hint = "arena"
    main.function_type = FunctionType.from_lists([arg.type for arg in block.args], [])
    old = list(main.arg_attrs.data) if main.arg_attrs else [DictionaryAttr({})] * (len(block.args) - 1)
    main.arg_attrs = ArrayAttr([*old, DictionaryAttr({"qcomp.arena": UnitAttr()})])
    return arena
