# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations and softmax."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, TensorType, f64, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from qcomp.dialects.nn.base import (
    NNOp,
    RoleOp,
    Shape,
    Tensor,
    int_array,
    ints,
    normalize_axis,
    require,
    same_shape,
    shape,
)


@irdl_op_definition
class BatchNormOp(RoleOp):
    """(x - mean) / sqrt(var + eps) * weight + bias per channel (axis 1), with running statistics.

    `nn.batch_norm %x, %mean, %var weight(%w) bias(%b) {eps = 1.0e-05 : f64} : ...`
    """

    name = "nn.batch_norm"
    input = operand_def(TensorType)
    running_mean = operand_def(TensorType)
    running_var = operand_def(TensorType)
    weight = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    result = result_def(TensorType)
    eps = prop_def(FloatAttr)
    traits = traits_def(Pure())
    REQUIRED: ClassVar = ("input", "running_mean", "running_var")
    OPTIONAL: ClassVar = ("weight", "bias")

    def __init__(
        self, value: SSAValue, running_mean: SSAValue, running_var: SSAValue,
        weight: SSAValue | None, bias: SSAValue | None, eps: float, result_type: Tensor | None = None,
    ):  # fmt: skip
        super().__init__(
            operands=[value, running_mean, running_var, weight, bias],
            result_types=[result_type or value.type],
            properties={"eps": FloatAttr(eps, f64)},
        )

    def infer_shape(self) -> Shape:
        value = shape(self.input)
        require(len(value) >= 2, "input must have rank 2 or more")
        for operand in self.operands[1:]:
            require(same_shape(shape(operand), value[1:2]), f"statistics and parameters must have shape [{value[1]}]")
        return value


@irdl_op_definition
class LayerNormOp(RoleOp):
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`, biased variance."""

    name = "nn.layer_norm"
    input = operand_def(TensorType)
    weight = opt_operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    result = result_def(TensorType)
    normalized_shape = prop_def(DenseArrayBase)
    eps = prop_def(FloatAttr)
    traits = traits_def(Pure())
    REQUIRED: ClassVar = ("input",)
    OPTIONAL: ClassVar = ("weight", "bias")

    def __init__(
        self, value: SSAValue, normalized_shape: Shape, weight: SSAValue | None, bias: SSAValue | None, eps: float,
        result_type: Tensor | None = None,
    ):  # fmt: skip
        super().__init__(
            operands=[value, weight, bias],
            result_types=[result_type or value.type],
            properties={"normalized_shape": int_array(normalized_shape), "eps": FloatAttr(eps, f64)},
        )

    def infer_shape(self) -> Shape:
        value, normalized = shape(self.input), ints(self.normalized_shape)
        require(0 < len(normalized) <= len(value), "normalized_shape must be a suffix of the input's shape")
        require(
            same_shape(value[-len(normalized) :], normalized), "normalized_shape must be a suffix of the input's shape"
        )
        for operand in self.operands[1:]:
            require(same_shape(shape(operand), normalized), f"parameters must have shape {list(normalized)}")
        return value


@irdl_op_definition
class SoftmaxOp(NNOp):
    """exp(x - max) / sum(exp(x - max)) along `dim`; all -inf gives NaN."""

    name = "nn.softmax"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, dim: int, result_type: Tensor | None = None):
        super().__init__(
            operands=[value], result_types=[result_type or value.type], properties={"dim": IntegerAttr(dim, i64)}
        )

    def infer_shape(self) -> Shape:
        normalize_axis(self.dim.value.data, len(shape(self.input)))
        return shape(self.input)


NORMS = (BatchNormOp, LayerNormOp, SoftmaxOp)
