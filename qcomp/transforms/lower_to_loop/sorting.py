# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of argsort: a merge sort from below, along a dimension, of row-major buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from qcomp.dialects import loop, nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import memref_of
from qcomp.dialects.element import is_float
from qcomp.transforms.lower_to_loop.along import Places, at, in_order, indices_over, run
from qcomp.transforms.lower_to_loop.buffers import Buffer, Layout
from qcomp.transforms.lower_to_loop.builder import Builder, Index
from qcomp.transforms.lower_to_loop.driver import Lowering
from qcomp.transforms.lower_to_loop.held import algebra, as_held
from qcomp.transforms.lower_to_loop.registry import ALL, lowers


@lowers(nn.ArgsortOp, elements=ALL, symbolic=True)
def lower_argsort(lowering: Lowering, op: nn.ArgsortOp) -> None:
    """Merge sort from below: runs of 1, 2, 4 ... indices are merged from one line into another and back."""
    where, dim, descending = op.location, op.dim.value.data, bool(op.descending.value.data)
    source, element = in_order(lowering, lowering.row_major(op.input, where), op, "max")
    target = lowering.define(op.result, where, Layout(False))
    size = source.sizes[dim]
    line = (size,)
    scratch = Buffer(lowering.allocate(memref_of(i64, line), where), line, Layout(False), None, i64)
    widths = [] if is_symbolic(size) else [1 << step for step in range(max(size - 1, 0).bit_length())]

    def body(b: Builder, values: Sequence[SSAValue]) -> None:
        x, other, y = values
        with ExitStack() as stack:
            places = indices_over(b, stack, source.sizes, (dim,))

            def in_y(index: Index | int) -> tuple[SSAValue, Places]:
                return y, at(places, dim, index)

            def in_scratch(index: Index | int) -> tuple[SSAValue, Places]:
                return other, [index]

            lines = [in_y, in_scratch]
            now = len(widths) % 2
            with b.loop(0, size) as nest:
                b.store(b.add(arith.IndexCastOp(b.value(nest.index), i64)), *lines[now](nest.index))
            merge = _Merge(b, element, descending, size, lambda row: b.load(x, at(places, dim, row)))
            if is_symbolic(size):
                merge.all_runs(in_y, in_scratch)
            for width in widths:
                merge.runs(width, lines[now], lines[1 - now])
                now = 1 - now

    run(lowering, op, "argsort", (dim, descending, str(element)), [source, scratch, target], body)


Line = Callable[[Index | int], tuple[SSAValue, Places]]
_DOUBLINGS = 40
"""More than the binary digits of any size."""


class _Merge:
    def __init__(
        self, b: Builder, element: Attribute, descending: bool, size: int, element_at: Callable[[Index], SSAValue]
    ):
        self.b, self.element, self.descending, self.size = b, element, descending, size
        self.element_at = element_at
        self.m = algebra(b, (), element)

    def runs(self, width: int, source: Line, target: Line) -> None:
        """Merge all pairs of neighbouring runs of `width` indices."""
        with self.b.loop(0, self.size, 2 * width) as pair:
            end = pair.index + 2 * width
            self._pair(self.b.count(pair.index), self._number(width), (pair.index, end), source, target)

    def all_runs(self, first: Line, second: Line) -> None:
        """Merge runs of 1, 2, 4 ... from one line to the other and back, until one run is all of a size that depends
        on symbols; merging one run copies it, so the result is in `first`."""
        b = self.b
        with b.loop(0, _DOUBLINGS, carry=[self._number(1), self._number(0)]) as nest:
            width, steps = nest.carried
            more = self._select("lt", width, self._number(self.size), self._number(1), self._number(0))
            nest.carry(b.add(arith.AddiOp(width, width)), b.add(arith.AddiOp(steps, more)))
        rounds = b.apply((AffineExpr.symbol(0) + 1) // 2, [b.add(arith.IndexCastOp(nest.results[1], IndexType()))])
        with b.loop(0, rounds, carry=[self._number(1)]) as nest:
            width = nest.carried[0]
            twice = b.add(arith.AddiOp(width, width))
            self._runs(width, first, second)
            self._runs(twice, second, first)
            nest.carry(b.add(arith.AddiOp(twice, twice)))

    def _runs(self, width: SSAValue, source: Line, target: Line) -> None:
        """Merge runs of a width that is computed; most of the pairs begin beyond the end."""
        b = self.b
        twice = b.add(arith.IndexCastOp(b.add(arith.AddiOp(width, width)), IndexType()))
        with b.loop(0, (self.size + 1) // 2) as pair:
            low = Index(((b.add(arith.MuliOp(b.value(pair.index), twice)), 1),))
            self._pair(b.count(low), width, (low, low + Index(((twice, 1),))), source, target)

    def _pair(
        self, low: SSAValue, width: SSAValue, span: tuple[Index, Index], source: Line, target: Line
    ) -> None:  # fmt: skip
        """Merge one pair of runs from `low` on, whose result lies in `span`."""
        b = self.b
        middle = self._end(low, width)
        high = self._end(middle, width)
        with b.loop(span[0], [span[1], self.size], carry=[low, middle]) as nest:
            left, right = nest.carried
            chosen, step = self._choose(source, left, right, middle, high)
            b.store(chosen, *target(nest.index))
            back = b.add(arith.SubiOp(self._number(1), step))
            nest.carry(b.add(arith.AddiOp(left, back)), b.add(arith.AddiOp(right, step)))

    def _choose(
        self, source: Line, left: SSAValue, right: SSAValue, middle: SSAValue, high: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The index that comes next, and 1 when it is of the right run."""
        b = self.b
        first, second = (b.load(*source(self._row(place))) for place in (left, right))
        before = self._before(self._value(second), self._value(first))
        zero, one = self._number(0), self._number(1)
        taken = self._select("lt", right, high, before, zero)
        taken = self._select("ge", left, middle, one, taken)
        return self._select("ne", taken, zero, second, first), taken

    def _before(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """1 when x comes before y and is no equal of it: NaN is the largest."""
        zero, one = self._number(0), self._number(1)
        if not is_float(self.element):
            return self._select("gt" if self.descending else "lt", x, y, one, zero)
        if self.descending:
            of_numbers = self._select("gt", x, y, one, zero)
            return self._select("ne", x, x, self._select("ne", y, y, zero, one), of_numbers)
        of_numbers = self._select("lt", x, y, one, zero)
        return self._select("ne", y, y, self._select("ne", x, x, zero, one), of_numbers)

    def _value(self, index: SSAValue) -> SSAValue:
        return as_held(self.b, self.element_at(self._row(index)), self.element)

    def _row(self, place: SSAValue) -> Index:
        last = self.b.add(arith.MinSIOp(place, self._number(self.size - 1)))
        return Index(((self.b.add(arith.IndexCastOp(last, IndexType())), 1),))

    def _end(self, low: SSAValue, width: SSAValue) -> SSAValue:
        far = self.b.add(arith.AddiOp(low, width))
        return self.b.add(arith.MinSIOp(far, self._number(self.size)))

    def _select(self, predicate: str, x: SSAValue, y: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self.b.add(loop.SelectOp(self.b.add(loop.CompareOp(predicate, x, y)), yes, no))

    def _number(self, value: int) -> SSAValue:
        return self.b.count(value)
