# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on reals that arith and math lack, or define otherwise than torch: comparison and choice of tiles, the
larger and the smaller, powers of two, conversion towards zero, neutral lanes, sums and maxima across the lanes.

Each is one IEEE operation or a fixed sequence of them, so every level gives the same bits.
"""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import DimAttr, attribute_size, size_attribute
from qcomp.dialects.loop.compute import tile_element, tile_like, tile_shape

PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")
REDUCTIONS = ("add", "max")
_TILES = ("f32", "f64", "i32")
i1 = IntegerType(1)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise VerifyException(message)


@irdl_op_definition
class CompareOp(IRDLOperation):
    """Elementwise comparison of f32, f64, i32 or i64 (signed): `eq`, `ne`, `lt`, `le`, `gt` or `ge`, as C's operators.

    With a NaN only `ne` holds.
    """

    name = "loop.compare"
    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def()
    predicate = prop_def(StringAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(
            operands=[lhs, rhs],
            result_types=[tile_like(lhs.type, i1)],
            properties={"predicate": StringAttr(predicate)},
        )

    def verify_(self) -> None:
        _require(self.predicate.data in PREDICATES, f"the predicate must be one of {', '.join(PREDICATES)}")
        _require(str(tile_element(self.lhs.type)) in ("f32", "f64", "i32", "i64"), "compares f32, f64, i32 or i64")
        _require(self.result.type == tile_like(self.lhs.type, i1), "the result must be i1 in the operands' shape")


@irdl_op_definition
class SelectOp(IRDLOperation):
    """Elementwise ``condition ? yes : no``."""

    name = "loop.select"
    T: ClassVar = VarConstraint("T", AnyAttr())
    condition = operand_def()
    yes = operand_def(T)
    no = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `,` $yes `,` $no attr-dict `:` type($condition) `,` type($result)"

    def __init__(self, condition: SSAValue, yes: SSAValue, no: SSAValue):
        super().__init__(operands=[condition, yes, no], result_types=[yes.type])

    def verify_(self) -> None:
        _require(self.condition.type == tile_like(self.result.type, i1), "the condition must be i1 in the shape")


class _ExtremeOp(IRDLOperation):
    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        _require(str(tile_element(self.result.type)) in ("f32", "f64"), "takes f32 or f64")


@irdl_op_definition
class MaximumOp(_ExtremeOp):
    """``lhs > rhs ? lhs : rhs``, NaN if either is: torch's maximum, where arith's orders the zeros."""

    name = "loop.maximum"


@irdl_op_definition
class MinimumOp(_ExtremeOp):
    """``lhs < rhs ? lhs : rhs``, NaN if either is."""

    name = "loop.minimum"


@irdl_op_definition
class RemainderOp(_ExtremeOp):
    """What is left of lhs when whole multiples of rhs are taken off towards zero: C's fmod, exact. NaN for rhs 0."""

    name = "loop.remainder"


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """value * 2^exponent in f32 or f64, rounded once; the exponent is a whole number, NaN gives NaN.

    Promised: |exponent| <= 200, in f64 1200, and the value is 0, infinite, NaN or of magnitude between 2^-20 and 2^20.
    """

    name = "loop.scale"
    T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(T)
    exponent = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value `,` $exponent attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, exponent: SSAValue):
        super().__init__(operands=[value, exponent], result_types=[value.type])

    def verify_(self) -> None:
        _require(str(tile_element(self.result.type)) in ("f32", "f64"), "scales f32 or f64")


@irdl_op_definition
class TruncateOp(IRDLOperation):
    """f32 or f64 to i32 or i64, towards zero; saturating, NaN becomes 0."""

    name = "loop.truncate"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, element: Attribute):
        super().__init__(operands=[value], result_types=[tile_like(value.type, element)])

    def verify_(self) -> None:
        _require(tile_shape(self.input.type) == tile_shape(self.result.type), "shapes differ")
        pair = (str(tile_element(self.input.type)), str(tile_element(self.result.type)))
        _require(pair[0] in ("f32", "f64") and pair[1] in ("i32", "i64"), "turns f32 or f64 into i32 or i64")


@irdl_op_definition
class AngleOp(IRDLOperation):
    """An angle in f32 or f64 modulo pi/2: part "rest" is what is left, between -pi/4 and pi/4, rounded (in f64 within a
    unit in the last place), part "quadrant" (0, 1, 2 or 3) how many right angles were taken off, modulo 4. NaN for NaN
    and infinities.
    """

    name = "loop.angle"
    T: ClassVar = VarConstraint("T", AnyAttr())
    input = operand_def(T)
    result = result_def(T)
    part = prop_def(StringAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$part `,` $input attr-dict `:` type($result)"

    def __init__(self, part: str, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type], properties={"part": StringAttr(part)})

    def verify_(self) -> None:
        _require(self.part.data in ("rest", "quadrant"), 'the part must be "rest" or "quadrant"')
        _require(str(tile_element(self.result.type)) in ("f32", "f64"), "angles are f32 or f64")


@irdl_op_definition
class FillOp(IRDLOperation):
    """The tile, but from place `first` of its last dimension on the elements are `value`: f32, f64 or i32."""

    name = "loop.fill"
    T: ClassVar = VarConstraint("T", AnyAttr())
    input = operand_def(T)
    result = result_def(T)
    first = prop_def(IntegerAttr | DimAttr)
    value = prop_def(FloatAttr | IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, value: SSAValue, first: int, number: float | int):
        element = tile_element(value.type)
        real = isinstance(element, Float32Type | Float64Type)
        fill = FloatAttr(float(number), element) if real else IntegerAttr(int(number), i32)
        super().__init__(
            operands=[value], result_types=[value.type], properties={"first": size_attribute(first), "value": fill}
        )

    @property
    def number(self) -> float | int:
        """What the elements become."""
        return self.value.value.data

    @property
    def kept(self) -> int:
        """How many elements stay."""
        return attribute_size(self.first)

    def verify_(self) -> None:
        shape = tile_shape(self.result.type)
        inside = is_symbolic(self.kept) or 0 <= self.kept < (shape or (0,))[-1]
        _require(bool(shape) and inside, "first must be inside the last dimension")
        element = tile_element(self.result.type)
        _require(str(element) in _TILES and self.value.type == element, "fills f32, f64 or i32 with its like")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """A tile of 2^k f32, f64 or i32 to one, halving: element i takes in element i + n/2 until one is left.

    kind "add": ``a + b``, integers wrap; "max": ``b > a ? b : a``, NaN if either is.
    """

    name = "loop.reduce"
    input = operand_def(VectorType)
    result = result_def()
    kind = prop_def(StringAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind `,` $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, kind: str, value: SSAValue):
        super().__init__(
            operands=[value], result_types=[tile_element(value.type)], properties={"kind": StringAttr(kind)}
        )

    def verify_(self) -> None:
        kind = cast(VectorType[Attribute], self.input.type)
        sizes = kind.get_shape()
        _require(self.kind.data in REDUCTIONS, f"the kind must be one of {', '.join(REDUCTIONS)}")
        _require(len(sizes) == 1 and sizes[0] & (sizes[0] - 1) == 0, "reduces a vector of 2^k elements")
        _require(str(kind.element_type) in _TILES, "reduces f32, f64 or i32")
        _require(self.result.type == kind.element_type, "the result has the type of an element")
