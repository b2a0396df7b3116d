# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How values and ops are spelled in C. `Isa` is plain scalar C99; an instruction set overrides what it has.

A tile is held in *units*, each one C variable: a scalar here, a vector register in a subclass. `unit_shape` says how
many trailing elements of a tile one unit holds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from xdsl.dialects.arith import IntegerOverflowAttr, IntegerOverflowFlag
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.backend.emit_c.reals import scalar
from qcomp.dialects import loop
from qcomp.errors import QcompError

C_TYPES = {
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "f32": "float", "f64": "double",
    "i1": "int", "index": "ptrdiff_t",
}  # fmt: skip
_INFIX = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
_WHOLE = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}


def c_type(element: Attribute) -> str:
    """The C type of a scalar of type `element`."""
    name = str(element)
    if name not in C_TYPES:
        raise QcompError(f"no C type for {name}", code="emit")
    return C_TYPES[name]


def float_literal(value: float) -> str:
    """An exact float constant."""
    if math.isnan(value):
        return "(0.0f / 0.0f)"
    if math.isinf(value):
        return "(1.0f / 0.0f)" if value > 0 else "(-1.0f / 0.0f)"
    value = struct.unpack("f", struct.pack("f", value))[0]
    text = value.hex() + "f"
    if value == int(value) and abs(value) < 2**24:
        text = f"{value:.1f}f"
    return f"({text})" if text.startswith("-") else text


def double_literal(value: float) -> str:
    """An exact double constant."""
    if not math.isfinite(value):
        return f"(double){float_literal(value)}"
    text = f"{value:.1f}" if value == int(value) and abs(value) < 2**24 else value.hex()
    return f"({text})" if text.startswith("-") else text


def int_literal(value: int) -> str:
    """An integer constant of up to 64 bits."""
    if value in (-(2**31), -(2**63)):
        return f"({value + 1} - 1)"
    return f"({value})" if value < 0 else str(value)


def number_literal(value: float | int, double: bool = False) -> str:
    """An exact constant of the kind of number that `value` is."""
    if isinstance(value, float):
        return double_literal(value) if double else float_literal(value)
    return int_literal(value)


class Isa:
    """Scalar C99."""

    includes: Sequence[str] = ()

    def unit_shape(self, value: SSAValue) -> tuple[int, ...]:
        """Trailing dimensions of a tile that one unit holds; () means one element."""
        return ()

    def unit_type(self, value: SSAValue) -> str:
        """The C type of a unit of `value`."""
        return c_type(loop.tile_element(value.type))

    def units(self, value: SSAValue) -> int:
        """How many units hold `value`."""
        shape = loop.tile_shape(value.type)
        held = self.unit_shape(value)
        if held and shape[len(shape) - len(held) :] != held:
            raise QcompError(f"tile {value.type} does not fit registers of {list(held)}", code="emit")
        return math.prod(shape[: len(shape) - len(held)])

    def load(self, value: SSAValue, address: str, strides: Sequence[int | str], valid: int | str | None) -> str:
        """One unit read from `address`; `strides` are the element strides of the unit's dimensions."""
        return f"*({address})"

    def store(
        self, value: SSAValue, unit: str, address: str, strides: Sequence[int | str], valid: int | str | None
    ) -> str:
        """The statement that writes one unit."""
        return f"*({address}) = {unit};"

    def constant(self, op: Operation, value: SSAValue) -> str:
        """One unit of an arith.constant."""
        return self.splat(value, scalar_constant(op))

    def splat(self, value: SSAValue, scalar: str) -> str:
        """One unit with every element equal to the C scalar `scalar`."""
        return scalar

    def broadcast(self, op: loop.BroadcastOp, unit: str) -> str:
        """One unit of the result from the scalar `unit`."""
        return self.splat(op.result, unit)

    def contract(self, op: loop.ContractOp, acc: str, lhs: str, rhs: str) -> str:
        """acc + lhs * rhs for one unit each."""
        return self.multiply_add(op, acc, lhs, rhs)

    def multiply_add(self, op: loop.ContractOp | loop.MultiplyAddOp, acc: str, lhs: str, rhs: str) -> str:
        """acc + lhs * rhs for one unit each."""
        if str(loop.tile_element(op.acc.type)) in ("f32", "f64"):
            return f"{acc} + {lhs} * {rhs}"
        return f"{acc} + {_widen(lhs, op.lhs_unsigned is not None)} * {_widen(rhs, op.rhs_unsigned is not None)}"

    def elementwise(self, op: Operation, units: Sequence[str]) -> str:
        """One unit of the result of an elementwise op from one unit of each operand."""
        text = scalar(op, units, c_type)
        if text is not None:
            return text
        return self.unary(op, *units) if len(units) == 1 else self.binary(op, *units[:2])

    def combine(self, op: loop.ReduceOp, first: str, second: str) -> str:
        """One step of a reduction on scalars."""
        real = str(op.result.type) in ("f32", "f64")
        if op.kind.data == "add":
            return f"{first} + {second}" if real else _wrapping(op, first, "+", second)
        return f"{second} > {first}{f' || {second} != {second}' if real else ''} ? {second} : {first}"

    def fill(self, op: loop.FillOp, unit: str, kept: int | str | None) -> str:
        """One unit of `loop.fill`; only for units that are registers."""
        raise QcompError.at(op, "is not emitted as C", code="emit")

    def reduce(self, op: loop.ReduceOp, unit: str) -> str:
        """The scalar that a register is reduced to; only for units that are registers."""
        raise QcompError.at(op, "is not emitted as C", code="emit")

    def unary(self, op: Operation, unit: str) -> str:
        """One unit of the result of a unary loop op."""
        match op:
            case loop.ExtendOp():
                return _widen(unit, op.unsigned is not None)
            case loop.ToFloatOp():
                return f"({c_type(loop.tile_element(op.result.type))}){unit}"
            case loop.RoundOp():
                bounded = op.bounded is not None
                return f"round_bounded({unit})" if bounded else f"round_saturated({unit}, {op.nan_result})"
            case loop.NarrowOp():
                low, high = (int_literal(bound) for bound in op.bounds)
                return f"(int8_t)({unit} < {low} ? {low} : {unit} > {high} ? {high} : {unit})"
            case loop.WidenHalfOp():
                return f"widen_{op.half}({unit})"
            case loop.NarrowHalfOp():
                return f"narrow_{op.half}({unit})"
            case loop.ClampOp():
                return _clamped(op, unit)
            case _:
                raise QcompError.at(op, "is not emitted as C", code="emit")

    def lookup(self, op: loop.LookupOp, table: str, unit: str) -> str:
        """One unit of table entries."""
        small = str(loop.tile_element(op.input.type)) == "i32"
        return f"{table}[{unit} & 15]" if small else f"{table}[(uint8_t){unit}]"

    def binary(self, op: Operation, lhs: str, rhs: str) -> str:
        """One unit of the result of a binary arith op."""
        if op.name in _INFIX:
            return f"{lhs} {_INFIX[op.name]} {rhs}"
        if op.name in _WHOLE:
            return _wrapping(op, lhs, _WHOLE[op.name], rhs)
        match op.name:
            case "arith.maxsi":
                return f"({lhs} > {rhs} ? {lhs} : {rhs})"
            case "arith.minsi":
                return f"({lhs} < {rhs} ? {lhs} : {rhs})"
            case "arith.maxui":
                return f"((uint8_t){lhs} > (uint8_t){rhs} ? {lhs} : {rhs})"
            case "arith.minui":
                return f"((uint8_t){lhs} < (uint8_t){rhs} ? {lhs} : {rhs})"
            case "arith.shli":
                bits = str(loop.tile_element(op.results[0].type))[1:]
                return f"(int{bits}_t)((uint{bits}_t){lhs} << {rhs})"
            case _:
                raise QcompError.at(op, "is not emitted as C", code="emit")


def _clamped(op: loop.ClampOp, text: str) -> str:
    double = str(loop.tile_element(op.result.type)) == "f64"
    low, high = ((double_literal if double else float_literal)(bound) for bound in op.bounds)
    if op.bounds[0] > -math.inf:
        text = f"({text} < {low} ? {low} : {text})"
    return text if op.bounds[1] == math.inf else f"clamp_above{'_f64' if double else ''}({text}, {high})"


def _wrapping(op: Operation, lhs: str, sign: str, rhs: str) -> str:
    """Integer arithmetic that wraps; overflow is undefined in C, so plainly only where `nsw` promises there is none."""
    kind = str(loop.tile_element(op.results[0].type))
    flags = op.properties.get("overflowFlags")
    promised = isinstance(flags, IntegerOverflowAttr) and IntegerOverflowFlag.NSW in flags.data
    if promised or kind not in ("i32", "i64"):
        return f"{lhs} {sign} {rhs}"
    bits = kind[1:]
    return f"(int{bits}_t)((uint{bits}_t){lhs} {sign} (uint{bits}_t){rhs})"


def _widen(unit: str, unsigned: bool) -> str:
    return f"(int32_t)(uint8_t){unit}" if unsigned else f"(int32_t){unit}"


def scalar_constant(op: Operation) -> str:
    """The C literal of an arith.constant; tiles must be splats."""
    value, double = op.properties["value"], str(loop.tile_element(op.results[0].type)) == "f64"
    if isinstance(value, DenseIntOrFPElementsAttr):
        first = value.get_values()[0]
        if isinstance(first, float):
            return (double_literal if double else float_literal)(first)
        return int_literal(int(first))  # pyright: ignore[reportArgumentType]
    if isinstance(value, FloatAttr):
        return (double_literal if double else float_literal)(value.value.data)
    if isinstance(value, IntegerAttr):
        return int_literal(value.value.data)
    raise QcompError.at(op, f"constant {value} is not emitted as C", code="emit")


def is_tile(value: SSAValue) -> bool:
    """Whether `value` is a tile rather than a scalar."""
    return isinstance(value.type, VectorType)
