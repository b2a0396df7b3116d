# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that multiply and accumulate: convolutions, linear, matmul.

On quantized tensors they accumulate exactly in int32 and requantize in float32; see
`qcomp.interpreter.reference.contraction` for the formula. A weight's zero points must be 0 there.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    UNKNOWN,
    ActivationAttr,
    NNOp,
    RoleOp,
    Shape,
    Tensor,
    broadcast_shapes,
    int_array,
    ints,
    never_below,
    require,
    require_one_element,
    same_shape,
    shape,
    tensor,
)


class WeightedOp(RoleOp):
    """input and weight, an optional bias [C_out] (float), an optional residual of the result's shape, an activation.

    result = activation(op(input, weight) + bias + residual).
    """

    input = operand_def(TensorType)
    weight = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    residual = opt_operand_def(TensorType)
    result = result_def(TensorType)
    activation = opt_prop_def(ActivationAttr)
    traits = traits_def(Pure())
    REQUIRED: ClassVar = ("input", "weight")
    OPTIONAL: ClassVar = ("bias", "residual")
    WEIGHT_CHANNEL_AXIS: ClassVar[int] = 0
    """The weight's output-channel axis."""

    @property
    def channel_axis(self) -> int:
        """The result's channel axis."""
        return 1

    def verify_(self) -> None:
        result = self.infer_shape()
        channels = result[self.channel_axis]
        if self.bias is not None:
            require(same_shape(shape(self.bias), (channels,)), f"bias must have shape [{channels}]")
        if self.residual is not None:
            require(same_shape(shape(self.residual), result), f"residual must have the result's shape {list(result)}")
        require_one_element(*self.operands)
        super().verify_()


class ConvolutionOp(WeightedOp):
    """Cross-correlation of [N, C, *spatial] with a weight [C_out, C / groups, *kernel].

    stride, padding, dilation have one entry per spatial dimension; padding is on both sides. For uneven padding
    (`padding="same"` with even kernels) `padding` has two per dimension: all begins, then all ends.
    """

    stride = prop_def(DenseArrayBase)
    padding = prop_def(DenseArrayBase)
    dilation = prop_def(DenseArrayBase)
    groups = prop_def(IntegerAttr)
    SPATIAL: ClassVar[int]

    def __init__(
        self,
        value: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None = None,
        *,
        stride: Shape = (),
        padding: Shape = (),
        dilation: Shape = (),
        groups: int = 1,
        residual: SSAValue | None = None,
        activation: ActivationAttr | None = None,
        result_type: Tensor | None = None,
    ):
        rank = self.SPATIAL
        stride, padding, dilation = stride or (1,) * rank, padding or (0,) * rank, dilation or (1,) * rank
        if result_type is None:
            size = convolution_shape(shape(value), shape(weight), stride, padding, dilation, groups)
            result_type = tensor_of(tensor(value).element_type, size)
        super().__init__(
            operands=[value, weight, bias, residual],
            result_types=[result_type],
            properties={
                "stride": int_array(stride),
                "padding": int_array(padding),
                "dilation": int_array(dilation),
                "groups": IntegerAttr(groups, i64),
                "activation": activation,
            },
        )

    @property
    def padding_pairs(self) -> tuple[tuple[int, int], ...]:
        """(begin, end) padding per spatial dimension."""
        return padding_pairs(ints(self.padding), self.SPATIAL)

    def infer_shape(self) -> Shape:
        require(len(shape(self.input)) == self.SPATIAL + 2, f"input must have rank {self.SPATIAL + 2}")
        return convolution_shape(
            shape(self.input), shape(self.weight),
            ints(self.stride), ints(self.padding), ints(self.dilation), self.groups.value.data,
        )  # fmt: skip


def padding_pairs(padding: Shape, spatial: int) -> tuple[tuple[int, int], ...]:
    """(begin, end) per spatial dimension of a padding of one or two entries per dimension."""
    begins, ends = padding[:spatial], padding[spatial:] or padding
    return tuple(zip(begins, ends, strict=True))


def convolution_shape(
    value: Shape, weight: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Shape:
    """The result's shape: floor((size + pads - dilation * (kernel - 1) - 1) / stride) + 1 per spatial dimension."""
    spatial = len(value) - 2
    require(spatial >= 1 and len(weight) == len(value), f"weight of rank {len(weight)} for input of rank {len(value)}")
    require(len(stride) == len(dilation) == spatial, f"stride and dilation need {spatial} entries")
    require(len(padding) in (spatial, 2 * spatial), f"padding needs {spatial} or {2 * spatial} entries")
    require(min(stride) >= 1 and min(dilation) >= 1 and min(padding) >= 0, "stride, dilation >= 1 and padding >= 0")
    require(groups >= 1 and weight[0] % groups == 0, f"{weight[0]} output channels do not divide into {groups} groups")
    require(
        value[1] in (UNKNOWN, weight[1] * groups), f"{value[1]} input channels, the weight takes {weight[1]} x {groups}"
    )
    sizes: list[int] = []
    pairs = padding_pairs(padding, spatial)
    for axis, (begin, end) in enumerate(pairs):
        size = value[axis + 2]
        if size == UNKNOWN:
            sizes.append(UNKNOWN)
            continue
        room = size + begin + end - dilation[axis] * (weight[axis + 2] - 1) - 1
        require(never_below(room, 0), f"kernel is larger than the padded input in dimension {axis + 2}")
        sizes.append(room // stride[axis] + 1)
    return (value[0], weight[0], *sizes)


@irdl_op_definition
class Conv1dOp(ConvolutionOp):
    """1-d convolution."""

    name = "nn.conv1d"
    SPATIAL: ClassVar[int] = 1


@irdl_op_definition
class Conv2dOp(ConvolutionOp):
    """2-d convolution."""

    name = "nn.conv2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class Conv3dOp(ConvolutionOp):
    """3-d convolution."""

    name = "nn.conv3d"
    SPATIAL: ClassVar[int] = 3


@irdl_op_definition
class LinearOp(WeightedOp):
    """[..., K] times a weight [N, K], transposed: [..., N]."""

    name = "nn.linear"

    def __init__(
        self,
        value: SSAValue,
        weight: SSAValue,
        bias: SSAValue | None = None,
        *,
        residual: SSAValue | None = None,
        activation: ActivationAttr | None = None,
        result_type: Tensor | None = None,
    ):
        inferred = tensor_of(tensor(value).element_type, (*shape(value)[:-1], shape(weight)[0]))
        super().__init__(
            operands=[value, weight, bias, residual],
            result_types=[result_type or inferred],
            properties={"activation": activation},
        )

    @property
    def channel_axis(self) -> int:
        return -1

    def infer_shape(self) -> Shape:
        value, weight = shape(self.input), shape(self.weight)
        require(len(value) >= 1 and len(weight) == 2, "linear takes [..., K] and a weight [N, K]")
        require(
            same_shape(value[-1:], weight[1:]), f"input has {list(value[-1:])} features, the weight takes {weight[1]}"
        )
        return (*value[:-1], weight[0])


@irdl_op_definition
class MatmulOp(NNOp):
    """torch.matmul of operands of rank >= 2: batch dimensions broadcast."""

    name = "nn.matmul"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: Tensor | None = None):
        inferred = tensor_of(tensor(lhs).element_type, matmul_shape(shape(lhs), shape(rhs)))
        super().__init__(operands=[lhs, rhs], result_types=[result_type or inferred])

    def infer_shape(self) -> Shape:
        return matmul_shape(shape(self.lhs), shape(self.rhs))

    def verify_(self) -> None:
        require_one_element(self.lhs, self.rhs)
        super().verify_()


def matmul_shape(lhs: Shape, rhs: Shape) -> Shape:
    """[..., M, K] times [..., K, N]: [..., M, N]."""
    require(len(lhs) >= 2 and len(rhs) >= 2, "matmul takes operands of rank 2 or more")
    require(same_shape(lhs[-1:], rhs[-2:-1]), f"matmul of {list(lhs)} and {list(rhs)}: inner dimensions differ")
    return (*broadcast_shapes(lhs[:-2], rhs[:-2]), *lhs[-2:-1], *rhs[-1:])


CONVOLUTIONS = (Conv1dOp, Conv2dOp, Conv3dOp)
CONTRACTIONS = (*CONVOLUTIONS, LinearOp, MatmulOp)
