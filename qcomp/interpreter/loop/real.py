# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop dialect's operations on reals: comparison, choice, extremes, powers of two, reductions across lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.loop import (
    AngleOp,
    CompareOp,
    FillOp,
    MaximumOp,
    MinimumOp,
    NarrowHalfOp,
    ReduceOp,
    RemainderOp,
    ScaleOp,
    SelectOp,
    TruncateOp,
    WidenHalfOp,
    tile_shape,
)
from qcomp.errors import QcompError
from qcomp.interpreter.loop.runtime import Array
from qcomp.interpreter.loop.writer import Writer
from qcomp.interpreter.reference.angle import quadrant, remaining_angle
from qcomp.interpreter.reference.elementwise import cast_to, maximum, minimum
from qcomp.interpreter.reference.narrow_floats import narrow, widen

_OPERATORS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LARGEST_EXPONENT = {"float32": 200, "float64": 1200}
_LARGEST, _SMALLEST = 2.0**20, 2.0**-20


def compare(w: Writer, op: CompareOp) -> None:
    w.assign(op.result, f"{w.read(op.lhs)} {_OPERATORS[op.predicate.data]} {w.read(op.rhs)}")


def select(w: Writer, op: SelectOp) -> None:
    w.assign(op.result, f"np.where({', '.join(w.read(value) for value in op.operands)})")


def extreme(w: Writer, op: MaximumOp | MinimumOp) -> None:
    function = w.constant(maximum if isinstance(op, MaximumOp) else minimum)
    w.assign(op.result, f"{function}({w.read(op.lhs)}, {w.read(op.rhs)})")


def remainder(w: Writer, op: RemainderOp) -> None:
    w.assign(op.result, f"np.fmod({w.read(op.lhs)}, {w.read(op.rhs)})")


def scale(w: Writer, op: ScaleOp) -> None:
    w.assign(op.result, f"{w.constant(scaled)}({w.read(op.value)}, {w.read(op.exponent)}, {w.constant(op)})")


def truncate(w: Writer, op: TruncateOp) -> None:
    w.assign(op.result, f"{w.constant(cast_to)}(np.asarray({w.read(op.input)}), {w.dtype(op.result.type)})")


def half(w: Writer, op: WidenHalfOp | NarrowHalfOp) -> None:
    function = widen_patterns if isinstance(op, WidenHalfOp) else narrow_to_patterns
    w.assign(op.result, f"{w.constant(function)}({w.read(op.input)}, {w.constant(op.half)})")


def angle(w: Writer, op: AngleOp) -> None:
    function = w.constant(remaining_angle if op.part.data == "rest" else quadrant)
    w.assign(op.result, f"{function}({w.read(op.input)})")


def fill(w: Writer, op: FillOp) -> None:
    w.assign(op.result, f"{w.constant(filled)}({w.read(op.input)}, {op.kept}, {w.constant(op.number)})")


def reduce(w: Writer, op: ReduceOp) -> None:
    lanes = tile_shape(op.input.type)[0]
    combine = np.add if op.kind.data == "add" else _larger
    w.assign(op.result, f"{w.constant(halved)}({w.read(op.input)}, {lanes}, {w.constant(combine)})")


def scaled(value: Any, exponent: Any, op: Operation) -> Array:
    """value * 2^exponent, rounded once. Raises QcompError when what `loop.scale` promises is broken."""
    size = np.abs(value)
    usual = (size >= _SMALLEST) & (size <= _LARGEST) | (size == 0) | np.isinf(value) | np.isnan(value)
    number = ~np.isnan(exponent)
    largest = _LARGEST_EXPONENT[np.asarray(value).dtype.name]
    whole = (np.abs(exponent) <= largest) & (np.rint(exponent) == exponent) | ~number
    if not np.all(usual & whole):
        raise QcompError.at(op, "loop.scale promises moderate operands and whole exponents", code="broken-promise")
    result = np.ldexp(value, np.where(number, exponent, 0).astype(np.int32))
    return np.where(number, result, result.dtype.type(np.nan))


def widen_patterns(value: Any, element: Attribute) -> Array:
    """i16 patterns as float32."""
    return widen(np.asarray(value).view(numpy_dtype(element)), element)


def narrow_to_patterns(value: Any, element: Attribute) -> Array:
    """float32 as i16 patterns."""
    return narrow(np.asarray(value), element).view(np.int16)


def filled(value: Array, first: int, number: float | int) -> Array:
    """`value` with `number` from place `first` of the last dimension on."""
    result = value.copy()
    result[..., first:] = number
    return result


def halved(value: Array, lanes: int, combine: Callable[[Array, Array], Array]) -> Array:
    """The last dimension of `value`, of size `lanes`, reduced by halving."""
    while lanes > 1:
        lanes //= 2
        value = combine(value[..., :lanes], value[..., lanes : 2 * lanes])
    return value[..., 0]


def _larger(first: Array, second: Array) -> Array:
    return maximum(second, first)


RULES = {
    CompareOp: compare, RemainderOp: remainder, SelectOp: select, MaximumOp: extreme, MinimumOp: extreme,
    ScaleOp: scale, AngleOp: angle, TruncateOp: truncate, FillOp: fill, ReduceOp: reduce,
    WidenHalfOp: half, NarrowHalfOp: half,
}  # fmt: skip
