# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on scalars and tiles that xDSL's arith dialect does not have.

Elementwise addition, multiplication, shifts, minima and maxima are arith's own, on n-dimensional vectors. Storage is
signless: signedness belongs to the op.
"""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.exceptions import VerifyException

Vector = VectorType[Attribute]


def tile_shape(kind: Attribute) -> tuple[int, ...]:
    """The shape of a tile; () for a scalar."""
    return cast(Vector, kind).get_shape() if isinstance(kind, VectorType) else ()


def tile_element(kind: Attribute) -> Attribute:
    """The element type of a tile or scalar."""
    return cast(Vector, kind).element_type if isinstance(kind, VectorType) else kind


def tile_like(kind: Attribute, element: Attribute) -> Attribute:
    """A tile of the same shape with another element type."""
    return VectorType(element, cast(Vector, kind).get_shape()) if isinstance(kind, VectorType) else element


def _unit(flag: bool) -> UnitAttr | None:
    return UnitAttr() if flag else None


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise VerifyException(message)


_PRODUCTS = (("i8", "i8", "i32"), ("f32", "f32", "f32"), ("f64", "f64", "f64"))


@irdl_op_definition
class ContractOp(IRDLOperation):
    """acc[m..., n...] + sum over g of lhs[m..., g] * rhs[n..., g].

    Integers: i8 operands, each signed or unsigned, into i32, exact. Floats: f32 or f64, g of 1, rounded once or twice
    (a fused multiply-add is allowed).
    """

    name = "loop.contract"
    T: ClassVar = VarConstraint("T", AnyAttr())
    acc = operand_def(T)
    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    result = result_def(T)
    lhs_unsigned = opt_prop_def(UnitAttr)
    rhs_unsigned = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$acc `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, acc: SSAValue, lhs: SSAValue, rhs: SSAValue, lhs_unsigned: bool = False):
        super().__init__(
            operands=[acc, lhs, rhs], result_types=[acc.type], properties={"lhs_unsigned": _unit(lhs_unsigned)}
        )

    def verify_(self) -> None:
        lhs, rhs = cast(Vector, self.lhs.type), cast(Vector, self.rhs.type)
        _require(lhs.get_shape()[-1:] == rhs.get_shape()[-1:] != (), "operands differ in their last dimension")
        expected = (*lhs.get_shape()[:-1], *rhs.get_shape()[:-1])
        _require(tile_shape(self.acc.type) == expected, f"the accumulator must have shape {list(expected)}")
        elements = (str(lhs.element_type), str(rhs.element_type), str(tile_element(self.acc.type)))
        _require(elements in _PRODUCTS, "contracts i8 into i32, f32 into f32 or f64 into f64")
        _require(elements[0] == "i8" or lhs.get_shape()[-1] == 1, "floats contract over 1")


@irdl_op_definition
class MultiplyAddOp(IRDLOperation):
    """acc + lhs * rhs, elementwise: i8 operands, each signed or unsigned, into i32, exact; f32 or f64, fused or not."""

    name = "loop.multiply_add"
    T: ClassVar = VarConstraint("T", AnyAttr())
    acc = operand_def(T)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def(T)
    lhs_unsigned = opt_prop_def(UnitAttr)
    rhs_unsigned = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$acc `,` $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(
        self, acc: SSAValue, lhs: SSAValue, rhs: SSAValue, lhs_unsigned: bool = False, rhs_unsigned: bool = False
    ):
        super().__init__(
            operands=[acc, lhs, rhs],
            result_types=[acc.type],
            properties={"lhs_unsigned": _unit(lhs_unsigned), "rhs_unsigned": _unit(rhs_unsigned)},
        )

    def verify_(self) -> None:
        shapes = {tile_shape(value.type) for value in (self.acc, self.lhs, self.rhs, self.result)}
        _require(len(shapes) == 1, "operands and result must have one shape")
        elements = tuple(str(tile_element(value.type)) for value in (self.lhs, self.rhs, self.acc))
        _require(elements in _PRODUCTS, "multiplies i8 into i32, f32 into f32 or f64 into f64")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """A scalar, or a tile whose shape is a suffix of the result's, repeated over the leading dimensions."""

    name = "loop.broadcast"
    input = operand_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue, result_type: Attribute):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        source, target = tile_shape(self.input.type), tile_shape(self.result.type)
        _require(target[len(target) - len(source) :] == source, "the operand's shape must be a suffix of the result's")
        _require(tile_element(self.input.type) == tile_element(self.result.type), "element types differ")


class _ConversionOp(IRDLOperation):
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def verify_(self) -> None:
        _require(tile_shape(self.input.type) == tile_shape(self.result.type), "shapes differ")
        pair = (str(tile_element(self.input.type)), str(tile_element(self.result.type)))
        _require(pair in self.pairs(), f"{self.name} does not turn {pair[0]} into {pair[1]}")

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """(operand, result) element types that it converts."""
        return ()


@irdl_op_definition
class ExtendOp(_ConversionOp):
    """i8 to i32, by sign or, with `unsigned`, by zeros."""

    name = "loop.extend"
    unsigned = opt_prop_def(UnitAttr)

    def __init__(self, value: SSAValue, unsigned: bool):
        super().__init__(
            operands=[value], result_types=[tile_like(value.type, i32)], properties={"unsigned": _unit(unsigned)}
        )

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return (("i8", "i32"),)


@irdl_op_definition
class ToFloatOp(_ConversionOp):
    """i32 or i64 to f32 or f64, rounded half to even."""

    name = "loop.to_float"

    def __init__(self, value: SSAValue, element: Attribute = f32):
        super().__init__(operands=[value], result_types=[tile_like(value.type, element)])

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return (("i32", "f32"), ("i64", "f32"), ("i32", "f64"), ("i64", "f64"))


@irdl_op_definition
class RoundOp(_ConversionOp):
    """f32 to i32, rounded half to even; saturating at -2^22 and 2^22, NaN becomes `nan` (default 0).

    Codes have at most 16 bits, so the saturation never shows; it makes room for adding zero points and for rounding
    by adding 1.5 * 2^23. `bounded` promises that the operand is a number of magnitude up to 2^22.
    """

    name = "loop.round"
    bounded = opt_prop_def(UnitAttr)
    nan = opt_prop_def(IntegerAttr)

    def __init__(self, value: SSAValue, bounded: bool, nan: int = 0):
        super().__init__(
            operands=[value],
            result_types=[tile_like(value.type, i32)],
            properties={"bounded": _unit(bounded), "nan": IntegerAttr(nan, i64) if nan else None},
        )

    @property
    def nan_result(self) -> int:
        """What NaN becomes."""
        return self.nan.value.data if self.nan is not None else 0

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return (("f32", "i32"),)


@irdl_op_definition
class NarrowOp(_ConversionOp):
    """i32 to i8: clamped to [min, max] (within -128 to 127, or within 0 to 255), then cut to 8 bits."""

    name = "loop.narrow"
    min = prop_def(IntegerAttr)
    max = prop_def(IntegerAttr)

    def __init__(self, value: SSAValue, low: int, high: int):
        super().__init__(
            operands=[value],
            result_types=[tile_like(value.type, IntegerType(8))],
            properties={"min": IntegerAttr(low, i64), "max": IntegerAttr(high, i64)},
        )

    @property
    def bounds(self) -> tuple[int, int]:
        """(min, max)."""
        return self.min.value.data, self.max.value.data

    def verify_(self) -> None:
        low, high = self.bounds
        _require(-128 <= low <= high <= 127 or 0 <= low <= high <= 255, "bounds must fit 8 bits and be ordered")
        super().verify_()

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return (("i32", "i8"),)


@irdl_op_definition
class ClampOp(_ConversionOp):
    """f32 or f64: ``x < min ? min : x``, then ``x > max ? max : x``; NaN and -0.0 stay."""

    name = "loop.clamp"
    min = prop_def(FloatAttr)
    max = prop_def(FloatAttr)

    def __init__(self, value: SSAValue, low: float, high: float):
        element = cast("Float32Type | Float64Type", tile_element(value.type))
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={"min": FloatAttr(low, element), "max": FloatAttr(high, element)},
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """(min, max)."""
        return self.min.value.data, self.max.value.data

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return (("f32", "f32"), ("f64", "f64"))


@irdl_op_definition
class LookupOp(IRDLOperation):
    """table[x] for each byte x, read as unsigned: any function of one 8-bit code, exactly.

    From a table of 16 entries the lowest four bits of an i32 choose.
    """

    name = "loop.lookup"
    table = operand_def(MemRefType)
    input = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$table `[` $input `]` attr-dict `:` type($table) `,` type($input) `->` type($result)"

    def __init__(self, table: SSAValue, value: SSAValue):
        element = cast(MemRefType[Attribute], table.type).element_type
        super().__init__(operands=[table, value], result_types=[tile_like(value.type, element)])

    def verify_(self) -> None:
        kind = cast(MemRefType[Attribute], self.table.type)
        _require(kind.get_shape() in ((16,), (256,)), "a table has 16 or 256 entries")
        index = "i8" if kind.get_shape() == (256,) else "i32"
        _require(str(tile_element(self.input.type)) == index, f"the operand must be {index}")
        _require(self.result.type == tile_like(self.input.type, kind.element_type), "the result holds table entries")
