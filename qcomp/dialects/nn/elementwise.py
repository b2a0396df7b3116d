# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise nn ops: unary functions, clamp, cast, and binary arithmetic with broadcasting."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, StringAttr, TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Commutative, Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    ActivationAttr,
    NNOp,
    Shape,
    Tensor,
    broadcast_shapes,
    parameter,
    require,
    require_one_element,
    shape,
    tensor,
)
from qcomp.dialects.quant import Recipe


class UnaryOp(NNOp):
    """One tensor in, one of the same shape out. On quantized tensors: exactly quantize(f(dequantize(x)))."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, result_type: Tensor | None = None, **properties: Attribute | None):
        super().__init__(operands=[value], result_types=[result_type or value.type], properties=properties)

    def infer_shape(self) -> Shape:
        return shape(self.input)


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(x, 0); keeps NaN and -0.0."""

    name = "nn.relu"


@irdl_op_definition
class ClampOp(UnaryOp):
    """``x < min ? min : x``, then ``x > max ? max : x``: keeps NaN; min > max gives max. relu6, hardtanh, clip."""

    name = "nn.clamp"
    min = prop_def(FloatAttr)
    max = prop_def(FloatAttr)

    @staticmethod
    def of(
        value: SSAValue, low: float = -math.inf, high: float = math.inf, result_type: Tensor | None = None
    ) -> ClampOp:
        """Clamp `value` to [low, high]."""
        return ClampOp(value, result_type, min=parameter(low, value), max=parameter(high, value))

    @property
    def bounds(self) -> tuple[float, float]:
        """(min, max)."""
        return self.min.value.data, self.max.value.data

    def verify_(self) -> None:
        require(not any(math.isnan(bound) for bound in self.bounds), "clamp bounds must not be NaN")
        super().verify_()


@irdl_op_definition
class LeakyReluOp(UnaryOp):
    """x > 0 ? x : x * negative_slope."""

    name = "nn.leaky_relu"
    negative_slope = prop_def(FloatAttr)


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + exp(-x))."""

    name = "nn.sigmoid"


@irdl_op_definition
class TanhOp(UnaryOp):
    """Hyperbolic tangent."""

    name = "nn.tanh"


@irdl_op_definition
class SiluOp(UnaryOp):
    """x * sigmoid(x)."""

    name = "nn.silu"


@irdl_op_definition
class GeluOp(UnaryOp):
    """torch's gelu; `approximate` is "none" (erf) or "tanh"."""

    name = "nn.gelu"
    approximate = prop_def(StringAttr)

    def verify_(self) -> None:
        require(self.approximate.data in ("none", "tanh"), 'approximate must be "none" or "tanh"')
        super().verify_()


@irdl_op_definition
class HardswishOp(UnaryOp):
    """x * clamp(x + 3, 0, 6) / 6."""

    name = "nn.hardswish"


@irdl_op_definition
class HardsigmoidOp(UnaryOp):
    """clamp(x + 3, 0, 6) / 6."""

    name = "nn.hardsigmoid"


@irdl_op_definition
class ExpOp(UnaryOp):
    """e to the x."""

    name = "nn.exp"


@irdl_op_definition
class SqrtOp(UnaryOp):
    """Square root."""

    name = "nn.sqrt"


@irdl_op_definition
class RsqrtOp(UnaryOp):
    """1 / sqrt(x)."""

    name = "nn.rsqrt"


@irdl_op_definition
class NegOp(UnaryOp):
    """-x."""

    name = "nn.neg"


@irdl_op_definition
class AbsOp(UnaryOp):
    """|x|."""

    name = "nn.abs"


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function."""

    name = "nn.erf"


@irdl_op_definition
class CastOp(UnaryOp):
    """The same values in another plain element type, by torch's `.to(dtype)`."""

    name = "nn.cast"

    def infer_element(self) -> Attribute:
        return tensor(self.result).element_type


class BinaryOp(NNOp):
    """Two tensors of one element type, broadcast. On quantized tensors: exactly quantize(f(dequantize(a), ...))."""

    TAKES_TRUTH_VALUES: ClassVar[bool] = False
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    activation = opt_prop_def(ActivationAttr)
    recipe = opt_prop_def(Float32Type | Float64Type)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        result_type: Tensor | None = None,
        activation: ActivationAttr | None = None,
        recipe: Recipe | None = None,
    ):
        inferred = tensor_of(tensor(lhs).element_type, broadcast_shapes(shape(lhs), shape(rhs)))
        super().__init__(
            operands=[lhs, rhs],
            result_types=[result_type or inferred],
            properties={"activation": activation, "recipe": recipe},
        )

    def infer_shape(self) -> Shape:
        return broadcast_shapes(shape(self.lhs), shape(self.rhs))

    def verify_(self) -> None:
        require_one_element(self.lhs, self.rhs)
        truth = tensor(self.lhs).element_type == i1 and not self.TAKES_TRUTH_VALUES
        require(not truth, "no arithmetic on truth values: nn.binary has and, or, xor")
        super().verify_()


@irdl_op_definition
class AddOp(BinaryOp):
    """lhs + rhs."""

    name = "nn.add"
    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class SubOp(BinaryOp):
    """lhs - rhs."""

    name = "nn.sub"


@irdl_op_definition
class MulOp(BinaryOp):
    """lhs * rhs."""

    name = "nn.mul"
    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class DivOp(BinaryOp):
    """lhs / rhs; true division."""

    name = "nn.div"


@irdl_op_definition
class MaximumOp(BinaryOp):
    """The larger; NaN if either is NaN."""

    name = "nn.maximum"
    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class MinimumOp(BinaryOp):
    """The smaller; NaN if either is NaN."""

    name = "nn.minimum"
    traits = traits_def(Pure(), Commutative())


UNARY = (
    ReluOp, ClampOp, LeakyReluOp, SigmoidOp, TanhOp, SiluOp, GeluOp, HardswishOp, HardsigmoidOp,
    ExpOp, SqrtOp, RsqrtOp, NegOp, AbsOp, ErfOp, CastOp,
)  # fmt: skip
BINARY = (AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp)
