# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building loop-level functions: index expressions as Python arithmetic, loops as `with` blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    VectorType,
    f32,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from qcomp.dialects import loop
from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import is_symbolic, symbols_of
from qcomp.dialects.dims import DimAttr, declare_symbols, memref_of, sizes_of
from qcomp.dialects.element import is_integer

MemRef = MemRefType[Attribute]
_NO_OVERFLOW = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])


_real: ContextVar[Float32Type | Float64Type] = ContextVar("real", default=f32)


def real_type() -> Float32Type | Float64Type:
    """What f32 stands for in kernels, which are written for it: f64 while an op on f64 is lowered."""
    return _real.get()


@contextmanager
def doubled() -> Generator[None]:
    """While open, kernels are made for f64 wherever they say f32."""
    token = _real.set(f64)
    try:
        yield
    finally:
        _real.reset(token)


def real_number(value: float) -> float:
    """`value` as a real of the kernels holds it."""
    return float(np.float32(value)) if real_type() == f32 else float(value)


def real_buffer(kind: MemRef) -> MemRef:
    """A buffer of f32 as one of the reals of the kernels."""
    return memref_of(real_type(), sizes_of(kind)) if kind.element_type == f32 else kind


@dataclass(frozen=True)
class Index:
    """A linear expression over loop variables."""

    terms: tuple[tuple[SSAValue, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(value: Index | int) -> Index:
        """`value` as an expression; a size may depend on symbols."""
        return value if isinstance(value, Index) else Index((), value)

    def __add__(self, other: Index | int) -> Index:
        other = Index.of(other)
        merged = dict(self.terms)
        for value, factor in other.terms:
            merged[value] = merged.get(value, 0) + factor
        return Index(
            tuple((value, factor) for value, factor in merged.items() if factor != 0), self.constant + other.constant
        )

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((value, old * factor) for value, old in self.terms if factor != 0), self.constant * factor)

    __rmul__ = __mul__

    def __sub__(self, other: Index | int) -> Index:
        return self + Index.of(other) * -1


def affine_map(expressions: Sequence[Index | int]) -> tuple[AffineMap, list[SSAValue]]:
    """The affine map over symbols of several expressions, and its operands."""
    operands: list[SSAValue] = []
    results: list[AffineExpr] = []
    for expression in expressions:
        expression = Index.of(expression)
        total: AffineExpr | None = None
        for value, factor in expression.terms:
            if value not in operands:
                operands.append(value)
            symbol = AffineExpr.symbol(operands.index(value))
            term = symbol if factor == 1 else symbol * factor
            total = term if total is None else total + term
        if total is None:
            total = AffineExpr.constant(expression.constant)
        elif expression.constant:
            total = total + expression.constant
        results.append(total)
    return AffineMap(0, len(operands), tuple(results)), operands


@dataclass
class Nest:
    """An open loop: its variable, the values carried in, and after the block the values that come out."""

    index: Index
    carried: Sequence[SSAValue]
    yielded: Sequence[SSAValue] = ()
    results: Sequence[SSAValue] = field(default_factory=list[SSAValue])

    def carry(self, *values: SSAValue) -> None:
        """Set the values for the next iteration."""
        self.yielded = values


Conversion = Callable[["Builder", SSAValue], SSAValue]


class Builder:
    """Appends ops to the innermost open block."""

    def __init__(self, block: Block):
        self._blocks = [block]
        self.conversions: dict[SSAValue, tuple[Conversion, Conversion]] = {}
        """What tiles of a buffer go through when they are loaded, and before they are stored."""
        self._sizes: dict[int, SSAValue] = {}
        self._last_size: Operation | None = None

    def add(self, op: Operation) -> SSAValue:
        """Append `op`; its only result."""
        self.do(op)
        return op.results[0]

    def do(self, op: Operation) -> None:
        """Append `op`."""
        self._blocks[-1].add_op(op)

    @contextmanager
    def loop(
        self,
        low: Index | int | Sequence[Index | int],
        high: Index | int | Sequence[Index | int],
        step: int = 1,
        carry: Sequence[SSAValue] = (),
        kind: str | None = None,
    ) -> Generator[Nest]:
        """A loop from the largest of `low` to the least of `high`."""
        lows = low if isinstance(low, Sequence) else [low]
        highs = high if isinstance(high, Sequence) else [high]
        block = Block(arg_types=[IndexType(), *(value.type for value in carry)])
        nest = Nest(Index(((block.args[0], 1),)), block.args[1:])
        self._blocks.append(block)
        yield nest
        block.add_op(loop.YieldOp(*nest.yielded))
        self._blocks.pop()
        lower, upper = affine_map(self._known(lows)), affine_map(self._known(highs))
        op = loop.ForOp(*lower, *upper, step, carry, Region(block), kind)
        self.do(op)
        nest.results = op.outputs

    @contextmanager
    def unless_empty(self, size: int) -> Generator[None]:
        """A block that runs unless `size`, which may depend on symbols, is 0."""
        if not is_symbolic(size):
            yield
            return
        with self.loop(0, [1, size]):
            yield

    def size(self, size: int) -> SSAValue:
        """A size that depends on symbols as an index, computed once at the start."""
        if size not in self._sizes:
            op = loop.SizeOp(size)
            first = self._blocks[0].first_op
            if self._last_size is not None:
                self._blocks[0].insert_op_after(op, self._last_size)
            elif first is not None:
                self._blocks[0].insert_op_before(op, first)
            else:
                self._blocks[0].add_op(op)
            self._last_size, self._sizes[size] = op, op.result
        return self._sizes[size]

    def _known(self, expressions: Sequence[Index | int]) -> list[Index | int]:
        """`expressions` with symbolic constants as values."""
        found: list[Index | int] = []
        for item in map(Index.of, expressions):
            constant = item.constant
            found.append(Index(item.terms) + Index(((self.size(constant), 1),)) if is_symbolic(constant) else item)
        return found

    def apply(self, expression: AffineExpr, operands: Sequence[SSAValue]) -> Index:
        """An affine expression that is not linear (floordiv, mod) over `operands` as a value of its own."""
        map_attr = AffineMapAttr(AffineMap(0, len(operands), (expression,)))
        return Index(((self.add(ApplyOp(operands, map_attr)), 1),))

    def times(self, expression: Index | int, size: int) -> Index:
        """An index expression times a size that may depend on symbols."""
        if not is_symbolic(size):
            return Index.of(expression) * size
        if Index.of(expression) == Index():
            return Index()
        return Index(((self.add(arith.MuliOp(self.value(expression), self.value(size))), 1),))

    def value(self, expression: Index | int) -> SSAValue:
        """An index expression as an SSA value."""
        expression = Index.of(expression)
        if len(expression.terms) == 1 and expression.terms[0][1] == 1 and expression.constant == 0:
            return expression.terms[0][0]
        mapping, operands = affine_map(self._known([expression]))
        return self.add(ApplyOp(operands, AffineMapAttr(mapping)))

    def load(
        self,
        memref: SSAValue,
        indices: Sequence[Index | int],
        shape: Sequence[int] = (),
        over: Sequence[int] = (),
        steps: Sequence[int] | None = None,
        valid: int | None = None,
    ) -> SSAValue:
        """A scalar, or a tile of `shape` whose dimensions lie on the buffer dimensions `over`."""
        element = _memref(memref).element_type
        kind = VectorType(element, shape) if shape else element
        mapping, operands = affine_map(self._known(indices))
        properties = loop.access_properties(mapping, over, steps, valid)
        tile = self.add(loop.LoadOp.build(operands=[memref, operands], result_types=[kind], properties=properties))
        return self.conversions[memref][0](self, tile) if memref in self.conversions else tile

    def store(
        self,
        value: SSAValue,
        memref: SSAValue,
        indices: Sequence[Index | int],
        over: Sequence[int] = (),
        steps: Sequence[int] | None = None,
        valid: int | None = None,
    ) -> None:
        """Write a scalar or a tile."""
        if memref in self.conversions:
            value = self.conversions[memref][1](self, value)
        mapping, operands = affine_map(self._known(indices))
        properties = loop.access_properties(mapping, over, steps, valid)
        self.do(loop.StoreOp.build(operands=[value, memref, operands], properties=properties))

    def sum(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """lhs + rhs of integers known not to overflow."""
        return self.add(arith.AddiOp(lhs, rhs, overflow=_NO_OVERFLOW))

    def difference(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """lhs - rhs of integers known not to overflow."""
        return self.add(arith.SubiOp(lhs, rhs, overflow=_NO_OVERFLOW))

    def broadcast(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` repeated over leading dimensions; unchanged when it has the shape already."""
        if loop.tile_shape(value.type) == tuple(shape):
            return value
        return self.add(loop.BroadcastOp(value, VectorType(loop.tile_element(value.type), shape)))

    def integer(self, number: int, shape: Sequence[int] = (), element: Attribute = i32) -> SSAValue:
        """An i32 (or i8) constant, as a tile of `shape` when that is given."""
        scalar = self.add(arith.ConstantOp(IntegerAttr(number, element)))  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownArgumentType]
        return self.broadcast(scalar, shape) if shape else scalar

    def byte(self, code: int, shape: Sequence[int] = ()) -> SSAValue:
        """A code as a signless byte."""
        return self.integer(code - 256 if code > 127 else code, shape, i8)

    def number(self, value: float, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A constant of any element type, as a tile of `shape` when that is given."""
        if is_integer(element):
            return self.integer(int(value), shape, element)
        scalar = self.add(arith.ConstantOp(FloatAttr(float(value), cast(Float32Type | Float64Type, element))))
        return self.broadcast(scalar, shape) if shape else scalar

    def count(self, number: Index | int, element: Attribute = i64) -> SSAValue:
        """An index or a size as an integer of `element`."""
        if isinstance(number, int) and not is_symbolic(number):
            return self.integer(number, (), element)
        return self.add(arith.IndexCastOp(self.value(number), element))

    def real_count(self, number: Index | int, shape: Sequence[int] = ()) -> SSAValue:
        """An index or a size as the nearest real, as a tile of `shape` when that is given."""
        if isinstance(number, int) and not is_symbolic(number):
            return self.real(real_number(number), shape)
        return self.broadcast(self.add(loop.ToFloatOp(self.count(number), real_type())), shape)

    def real(self, number: float, shape: Sequence[int] = ()) -> SSAValue:
        """A constant of the reals of kernels, as a tile of `shape` when that is given."""
        scalar = self.add(arith.ConstantOp(FloatAttr(float(number), real_type())))
        return self.broadcast(scalar, shape) if shape else scalar


def _memref(value: SSAValue) -> MemRef:
    return cast(MemRef, value.type)


def kernel(
    name: str, arguments: Sequence[tuple[str, MemRef]], where: LocationAttr
) -> tuple[FuncOp, Builder, list[SSAValue]]:
    """An empty private function over buffers, a builder for its body, and its arguments."""
    kinds = [real_buffer(kind) for _, kind in arguments]
    block = Block(arg_types=kinds)
    for value, (hint, _) in zip(block.args, arguments, strict=True):
        value.name_hint = hint
    func = FuncOp(name, FunctionType.from_lists(kinds, []), Region(block), visibility="private")
    func.location = where
    return func, Builder(block), list(block.args)


def finish(func: FuncOp) -> FuncOp:
    """Close the body of a kernel, and declare the symbols that its arguments and its body speak of."""
    func.body.block.add_op(ReturnOp())
    sizes = [size for value in func.body.block.args for size in sizes_of(_memref(value))]
    sizes += [held.data for op in func.walk() for held in op.properties.values() if isinstance(held, DimAttr)]
    declare_symbols(func, [Symbol(name) for name in symbols_of(sizes)])
    return func
