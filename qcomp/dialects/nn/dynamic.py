# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear layer on codes whose scale and zero point are known at run time only."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import ActivationAttr, RoleOp, Shape, require, same_shape, shape, tensor
from qcomp.dialects.quant import code_bits, encoding_of


@irdl_op_definition
class DynamicLinearOp(RoleOp):
    """activation(float32(sum((xq - zero_point) * wq)) * (scale * sw[c]) + bias[c]), the sum an exact integer.

    input: [..., K] plain 8-bit codes; scale f32 and zero_point i32: one number each, or one per row ([..., 1]); weight:
    [N, K] quantized per tensor or along axis 0 with zero points 0; bias: f32 [N]. The result is f32 [..., N].
    """

    name = "nn.dynamic_linear"
    input = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    result = result_def(TensorType)
    activation = opt_prop_def(ActivationAttr)
    traits = traits_def(Pure())
    REQUIRED: ClassVar = ("input", "scale", "zero_point", "weight")
    OPTIONAL: ClassVar = ("bias",)

    def __init__(
        self, value: SSAValue, scale: SSAValue, zero_point: SSAValue, weight: SSAValue, bias: SSAValue | None = None,
        activation: ActivationAttr | None = None,
    ):  # fmt: skip
        kind = tensor_of(f32, (*shape(value)[:-1], shape(weight)[0]))
        super().__init__(
            operands=[value, scale, zero_point, weight, bias],
            result_types=[kind],
            properties={"activation": activation},
        )

    def infer_shape(self) -> Shape:
        value, weight = shape(self.input), shape(self.weight)
        require(len(value) >= 1 and len(weight) == 2, "dynamic_linear takes [..., K] and a weight [N, K]")
        require(
            same_shape(value[-1:], weight[1:]), f"input has {list(value[-1:])} features, the weight takes {weight[1]}"
        )
        return (*value[:-1], weight[0])

    def infer_element(self) -> Attribute:
        return f32

    def verify_(self) -> None:
        element = tensor(self.input).element_type
        require(code_bits(element) == 8, "the input must hold plain 8-bit codes")
        require(tensor(self.result).element_type == f32, "the result must be f32")
        kinds = (tensor(self.scale).element_type, tensor(self.zero_point).element_type)
        require(kinds == (f32, i32), f"scale and zero point must be f32 and i32, are {kinds[0]} and {kinds[1]}")
        self._check_weight()
        value = shape(self.input)
        sizes = shape(self.scale)
        require(
            shape(self.zero_point) == sizes and sizes in ((), (*value[:-1], 1)),
            f"scale {list(sizes)} and zero point {list(shape(self.zero_point))} are not one number, or one per row",
        )
        super().verify_()

    def _check_weight(self) -> None:
        encoding = encoding_of(self.weight.type)
        good = encoding is not None and encoding.width == 8 and encoding.signed and encoding.axis in (None, 0)
        require(
            good and encoding is not None and not encoding.blocks and not encoding.zero_points.any(),
            "the weight must be quantized in signed 8 bits, per tensor or along axis 0, with zero points 0",
        )
        if self.bias is not None:
            channels = shape(self.weight)[0]
            require(shape(self.bias) == (channels,), f"bias must have shape [{channels}]")
            require(tensor(self.bias).element_type == f32, "the bias must be f32")
