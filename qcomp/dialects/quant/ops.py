# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops that move between real numbers and codes. Their numbers: `qcomp.interpreter.reference.quantize`."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, TensorType, f32, f64
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

from qcomp.dialects.quant.encoding import Encoding
from qcomp.dialects.quant.type import UniformQuantizedType, encoding_of

Tensor = TensorType[Attribute]
Recipe = Float32Type | Float64Type


def tensor(value: SSAValue) -> Tensor:
    """The tensor type of `value`."""
    return cast(Tensor, value.type)


def quantized_type(kind: Tensor, encoding: Encoding) -> Tensor:
    """`kind` with its elements quantized by `encoding`."""
    return TensorType(UniformQuantizedType(encoding), kind.get_shape(), kind.encoding)


def expressed_type(kind: Tensor) -> Tensor:
    """The float tensor type that the quantized type `kind` stands for."""
    encoding = encoding_of(kind)
    return kind if encoding is None else TensorType(encoding.expressed, kind.get_shape(), kind.encoding)


def storage_type(kind: Tensor) -> Tensor:
    """The integer tensor type that holds the codes of `kind`; `kind` itself when it is not quantized."""
    encoding = encoding_of(kind)
    return kind if encoding is None else TensorType(encoding.storage, kind.get_shape(), kind.encoding)


def default_recipe(encoding: Encoding) -> Recipe:
    """torch's reciprocal: float64 for per-tensor literals, float32 for per-channel and sub-channel forms."""
    return f64 if encoding.per_tensor else f32


def _check(kind: Tensor, float_kind: Tensor) -> None:
    encoding = encoding_of(kind)
    if encoding is None:
        raise VerifyException(f"expected a quantized tensor type, got {kind}")
    if kind.get_shape() != float_kind.get_shape():
        raise VerifyException(f"shapes differ: {list(kind.get_shape())} and {list(float_kind.get_shape())}")
    if float_kind.element_type != encoding.expressed:
        raise VerifyException(f"elements are {float_kind.element_type}, the type expresses {encoding.expressed}")
    encoding.check_shape(kind.get_shape())


@irdl_op_definition
class ObserveOp(IRDLOperation):
    """A calibrated observer: the value itself, annotated with the encoding it is to be quantized with.

    `insert-qdq` turns it into quantize and dequantize. `recipe` is that of the quantize. A value that is to be rounded
    to a narrower float has that type for an encoding.
    """

    name = "quant.observe"
    T: ClassVar = VarConstraint("T", BaseAttr(TensorType))
    input = operand_def(T)
    result = result_def(T)
    encoding = prop_def(Attribute)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `as` $encoding"

    def __init__(
        self, value: SSAValue, encoding: Encoding | Float16Type | BFloat16Type, recipe: Recipe | None = None
    ):  # fmt: skip
        held = UniformQuantizedType(encoding) if isinstance(encoding, Encoding) else encoding
        super().__init__(
            operands=[value], result_types=[value.type], properties={"encoding": held, "recipe": recipe}
        )  # fmt: skip

    def verify_(self) -> None:
        if isinstance(self.encoding, Float16Type | BFloat16Type):
            return
        if not isinstance(self.encoding, UniformQuantizedType):
            raise VerifyException(f"expected a quantized type, got {self.encoding}")
        kind = tensor(self.input)
        _check(quantized_type(kind, self.encoding.data), kind)


@irdl_op_definition
class QuantizeOp(IRDLOperation):
    """clamp(round_half_even(x * inv) + zero_point, qmin, qmax), `inv` the reciprocal of the scale by `recipe`.

    NaN becomes code 0 (clamped to the range), as in torch on CPU.
    """

    name = "quant.quantize"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, encoding: Encoding, recipe: Recipe | None = None):
        kind = quantized_type(tensor(value), encoding)
        super().__init__(operands=[value], result_types=[kind], properties={"recipe": recipe})

    @property
    def encoding(self) -> Encoding:
        """The encoding of the result."""
        return cast(Encoding, encoding_of(tensor(self.result)))

    @property
    def reciprocal(self) -> Recipe:
        """The recipe in force: the attribute, or torch's default for the encoding."""
        return self.recipe or default_recipe(self.encoding)

    def verify_(self) -> None:
        _check(tensor(self.result), tensor(self.input))


@irdl_op_definition
class DequantizeOp(IRDLOperation):
    """(float(q) - zero_point) * scale, in float32."""

    name = "quant.dequantize"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[expressed_type(tensor(value))])

    @property
    def encoding(self) -> Encoding:
        """The encoding of the operand."""
        return cast(Encoding, encoding_of(tensor(self.input)))

    def verify_(self) -> None:
        _check(tensor(self.input), tensor(self.result))


@irdl_op_definition
class RequantizeOp(IRDLOperation):
    """From one encoding to another: exactly quantize(dequantize(q))."""

    name = "quant.requantize"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, encoding: Encoding, recipe: Recipe | None = None):
        kind = quantized_type(tensor(value), encoding)
        super().__init__(operands=[value], result_types=[kind], properties={"recipe": recipe})

    def verify_(self) -> None:
        source, target = tensor(self.input), tensor(self.result)
        _check(source, expressed_type(source))
        _check(target, expressed_type(source))


@irdl_op_definition
class CastStorageOp(IRDLOperation):
    """The same codes seen as plain integers, or plain integers seen as codes (MLIR's scast)."""

    name = "quant.cast_storage"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue, result_type: Tensor):
        super().__init__(operands=[value], result_types=[result_type])

    def verify_(self) -> None:
        source, target = tensor(self.input), tensor(self.result)
        if (encoding_of(source) is None) == (encoding_of(target) is None):
            raise VerifyException("exactly one of operand and result must be quantized")
        if storage_type(source) != storage_type(target):
            raise VerifyException(f"storage differs: {storage_type(source)} and {storage_type(target)}")
        for kind in (source, target):
            encoding = encoding_of(kind)
            if encoding is not None:
                encoding.check_shape(kind.get_shape())
