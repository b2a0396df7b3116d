# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization whose scale and zero point are computed at run time: operands, not part of a type.

Codes are plain integer tensors here. Scales and zero points broadcast over the values: one number, one per token
([..., 1]), one per channel, or one per group of a reshaped tensor.
Their numbers: `qcomp.interpreter.reference.dynamic`.
"""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    TensorType,
    UnitAttr,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    BaseAttr,
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
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.dims import sizes_of, tensor_of
from qcomp.dialects.quant.encoding import storage_range

Tensor = TensorType[Attribute]


def _tensor(value: SSAValue) -> Tensor:
    return cast(Tensor, value.type)


def _unit(flag: bool) -> UnitAttr | None:
    return UnitAttr() if flag else None


def is_unsigned(kind: Attribute) -> bool:
    """Whether codes stored as `kind` are unsigned."""
    return isinstance(kind, IntegerType) and cast(IntegerType, kind).signedness.data is Signedness.UNSIGNED


def code_bits(kind: Attribute) -> int:
    """The bits of an integer type; 0 for other types."""
    return cast(IntegerType, kind).width.data if isinstance(kind, IntegerType) else 0


def check_code_range(kind: Attribute, low: int, high: int) -> None:
    """Raise VerifyException unless `kind` is an integer type of 8, 16 or 32 bits that holds the codes low to high."""
    _check_storage(kind)
    first, last = storage_range(not is_unsigned(kind), code_bits(kind))
    if not first <= low < high <= last:
        raise VerifyException(f"codes <{low}:{high}> do not fit {kind}")


@irdl_op_definition
class ObserveDynamicOp(IRDLOperation):
    """The value itself, to be quantized by the range that it has at run time. `insert-qdq` puts the ops for that.

    floor: the least scale; symmetric: around 0 (unsigned: around 128), else the range with 0 in it.
    """

    name = "quant.observe_dynamic"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))
    input = operand_def(T)
    result = result_def(T)
    storage = prop_def(Attribute)
    qmin = prop_def(IntegerAttr)
    qmax = prop_def(IntegerAttr)
    floor = prop_def(FloatAttr)
    symmetric = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `as` $storage"

    def __init__(self, value: SSAValue, storage: Attribute, low: int, high: int, floor: float, symmetric: bool = False):
        super().__init__(
            operands=[value],
            result_types=[value.type],
            properties={
                "storage": storage, "qmin": IntegerAttr(low, i64), "qmax": IntegerAttr(high, i64),
                "floor": FloatAttr(floor, f32), "symmetric": _unit(symmetric),
            },
        )  # fmt: skip

    def verify_(self) -> None:
        _require_f32("the value", self.input)
        check_code_range(self.storage, self.qmin.value.data, self.qmax.value.data)


@irdl_op_definition
class ChooseScaleOp(IRDLOperation):
    """The scale of values between low and high, elementwise: max(span / divisor, floor); NaN stays.

    span: max(high, 0) - min(low, 0), or when symmetric the larger of max(high, 0) and -min(low, 0).
    """

    name = "quant.choose_scale"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))
    low = operand_def(T)
    high = operand_def(T)
    result = result_def(T)
    divisor = prop_def(FloatAttr)
    floor = prop_def(FloatAttr)
    symmetric = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$low `,` $high attr-dict `:` type($result)"

    def __init__(self, low: SSAValue, high: SSAValue, divisor: float, floor: float, symmetric: bool = False):
        super().__init__(
            operands=[low, high],
            result_types=[low.type],
            properties={
                "divisor": FloatAttr(divisor, f32), "floor": FloatAttr(floor, f32), "symmetric": _unit(symmetric),
            },
        )  # fmt: skip

    def verify_(self) -> None:
        _require_f32("the range", self.low)
        if not (self.divisor.value.data > 0 and self.floor.value.data > 0):
            raise VerifyException("divisor and floor must be positive")


@irdl_op_definition
class ChooseZeroPointOp(IRDLOperation):
    """The zero point of values between low and high, elementwise, as i32.

    qmin - round(min(low, 0) / scale), clamped. nearest: the same from the end of the range that zero is nearer to, as
    per-token quantization does: qmin - min(low, 0) / scale or qmax - max(high, 0) / scale, clamped, then rounded.
    """

    name = "quant.choose_zero_point"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))
    low = operand_def(T)
    high = operand_def(T)
    scale = operand_def(T)
    result = result_def(TensorType)
    qmin = prop_def(IntegerAttr)
    qmax = prop_def(IntegerAttr)
    nearest = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$low `,` $high `,` $scale attr-dict `:` type($low) `->` type($result)"

    def __init__(
        self, low: SSAValue, high: SSAValue, scale: SSAValue, qmin: int, qmax: int, nearest: bool = False
    ):  # fmt: skip
        super().__init__(
            operands=[low, high, scale],
            result_types=[tensor_of(i32, sizes_of(_tensor(scale)))],
            properties={"qmin": IntegerAttr(qmin, i64), "qmax": IntegerAttr(qmax, i64), "nearest": _unit(nearest)},
        )

    @property
    def bounds(self) -> tuple[int, int]:
        """(qmin, qmax)."""
        return self.qmin.value.data, self.qmax.value.data

    def verify_(self) -> None:
        _require_f32("the range", self.low)
        if self.qmin.value.data >= self.qmax.value.data:
            raise VerifyException("qmin must be below qmax")
        expected = tensor_of(i32, sizes_of(_tensor(self.scale)))
        if self.result.type != expected:
            raise VerifyException(f"zero points have type {self.result.type}, inferred is {expected}")


@irdl_op_definition
class QuantizeDynamicOp(IRDLOperation):
    """trunc(clamp(round_half_even(x * inv) + zero_point, qmin, qmax)), inv = 1 / scale in float32.

    NaN becomes the code `nan`, 0 unless given. recipe f64: the per-token form, in float64 throughout:
    clamp(round_half_even(x * (1 / scale) + zero_point), qmin, qmax). The zero point is i32, or f32 for embeddings.
    """

    name = "quant.quantize_dynamic"
    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    result = result_def(TensorType)
    qmin = prop_def(IntegerAttr)
    qmax = prop_def(IntegerAttr)
    nan = opt_prop_def(IntegerAttr)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $scale `,` $zero_point attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, value: SSAValue, scale: SSAValue, zero_point: SSAValue, storage: Attribute, qmin: int, qmax: int,
        recipe: Float32Type | Float64Type | None = None, nan: int = 0,
    ):  # fmt: skip
        super().__init__(
            operands=[value, scale, zero_point],
            result_types=[tensor_of(storage, sizes_of(_tensor(value)))],
            properties={
                "qmin": IntegerAttr(qmin, i64), "qmax": IntegerAttr(qmax, i64), "recipe": recipe,
                "nan": IntegerAttr(nan, i64) if nan else None,
            },
        )  # fmt: skip

    @property
    def bounds(self) -> tuple[int, int]:
        """(qmin, qmax)."""
        return self.qmin.value.data, self.qmax.value.data

    @property
    def nan_code(self) -> int:
        """The code of NaN, inside the range."""
        low, high = self.bounds
        return min(max(self.nan.value.data if self.nan is not None else 0, low), high)

    def verify_(self) -> None:
        _require_f32("the value", self.input)
        check_code_range(_tensor(self.result).element_type, *self.bounds)
        _check_parameters(self.scale, self.zero_point, _tensor(self.input), _tensor(self.result))


@irdl_op_definition
class DequantizeDynamicOp(IRDLOperation):
    """(float(q) - float(zero_point)) * scale in float32; the zero point is i32 or f32."""

    name = "quant.dequantize_dynamic"
    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $scale `,` $zero_point attr-dict `:` functional-type(operands, results)"

    def __init__(self, value: SSAValue, scale: SSAValue, zero_point: SSAValue):
        kind = tensor_of(f32, sizes_of(_tensor(value)))
        super().__init__(operands=[value, scale, zero_point], result_types=[kind])

    def verify_(self) -> None:
        _require_f32("the result", self.result)
        element = _tensor(self.input).element_type
        _check_storage(element)
        _check_parameters(self.scale, self.zero_point, _tensor(self.result), _tensor(self.input))


def _check_storage(kind: Attribute) -> None:
    if code_bits(kind) not in (8, 16, 32):
        raise VerifyException(f"codes are held as {kind}, not in 8, 16 or 32 bits")


def _require_f32(what: str, value: SSAValue) -> None:
    element = _tensor(value).element_type
    if element != f32:
        raise VerifyException(f"{what} must be f32, is {element}")


def _check_parameters(scale: SSAValue, zero_point: SSAValue, value: Tensor, codes: Tensor) -> None:
    _require_f32("the scale", scale)
    if _tensor(zero_point).element_type not in (i32, f32):
        raise VerifyException(f"the zero point must be i32 or f32, is {_tensor(zero_point).element_type}")
    shape = value.get_shape()
    if codes.get_shape() != shape:
        raise VerifyException(f"shapes differ: {list(shape)} and {list(codes.get_shape())}")
    for name, parameter in (("scale", scale), ("zero point", zero_point)):
        sizes = _tensor(parameter).get_shape()
        tail = shape[len(shape) - len(sizes) :]
        fits = len(sizes) <= len(shape)
        if not fits or any(a not in (1, b) and -1 not in (a, b) for a, b in zip(sizes, tail, strict=True)):
            raise VerifyException(f"a {name} of shape {list(sizes)} does not broadcast over {list(shape)}")
