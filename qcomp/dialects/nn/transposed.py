# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed convolutions."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, prop_def

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    UNKNOWN,
    ActivationAttr,
    Shape,
    Tensor,
    int_array,
    ints,
    never_below,
    require,
    shape,
    tensor,
)
from qcomp.dialects.nn.contraction import WeightedOp


class ConvTransposeOp(WeightedOp):
    """Each element of [N, C, *spatial] times a kernel, added up in the result at `stride` from its neighbours'.

    The weight is [C_out, C / groups, *kernel], as that of a convolution: torch's [C, C_out / groups, *kernel] with the
    channels of each group exchanged. So axis 0 of every weight is the output channel.
    """

    stride = prop_def(DenseArrayBase)
    padding = prop_def(DenseArrayBase)
    output_padding = prop_def(DenseArrayBase)
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
        output_padding: Shape = (),
        dilation: Shape = (),
        groups: int = 1,
        residual: SSAValue | None = None,
        activation: ActivationAttr | None = None,
        result_type: Tensor | None = None,
    ):
        ones, zeros = (1,) * self.SPATIAL, (0,) * self.SPATIAL
        steps = (stride or ones, padding or zeros, output_padding or zeros, dilation or ones)
        if result_type is None:
            size = transposed_shape(shape(value), shape(weight), *steps, groups)
            result_type = tensor_of(tensor(value).element_type, size)
        names = ("stride", "padding", "output_padding", "dilation")
        super().__init__(
            operands=[value, weight, bias, residual],
            result_types=[result_type],
            properties={
                **{name: int_array(sizes) for name, sizes in zip(names, steps, strict=True)},
                "groups": IntegerAttr(groups, i64),
                "activation": activation,
            },
        )

    def infer_shape(self) -> Shape:
        require(len(shape(self.input)) == self.SPATIAL + 2, f"input must have rank {self.SPATIAL + 2}")
        return transposed_shape(
            shape(self.input), shape(self.weight), ints(self.stride), ints(self.padding), ints(self.output_padding),
            ints(self.dilation), self.groups.value.data,
        )  # fmt: skip


def transposed_shape(
    value: Shape, weight: Shape, stride: Shape, padding: Shape, output_padding: Shape, dilation: Shape, groups: int
) -> Shape:
    """(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1 per spatial dimension."""
    spatial = len(value) - 2
    require(len(weight) == len(value), f"weight of rank {len(weight)} for input of rank {len(value)}")
    every = (stride, padding, output_padding, dilation)
    require(all(len(item) == spatial for item in every), f"attributes need {spatial} entries")
    require(min(stride) >= 1 and min(dilation) >= 1 and min(padding) >= 0, "stride, dilation >= 1 and padding >= 0")
    require(
        all(0 <= extra < max(a, b) for extra, a, b in zip(output_padding, stride, dilation, strict=True)),
        "output_padding must be smaller than stride or dilation",
    )
    require(groups >= 1 and weight[0] % groups == 0, f"{weight[0]} output channels do not divide into {groups} groups")
    require(
        value[1] in (UNKNOWN, weight[1] * groups), f"{value[1]} input channels, the weight takes {weight[1]} x {groups}"
    )
    sizes: list[int] = []
    for axis in range(spatial):
        reach = dilation[axis] * (weight[axis + 2] - 1) + output_padding[axis] + 1 - 2 * padding[axis]
        size = UNKNOWN if value[axis + 2] == UNKNOWN else (value[axis + 2] - 1) * stride[axis] + reach
        require(size == UNKNOWN or never_below(size, 1), f"padding leaves nothing of dimension {axis + 2}")
        sizes.append(size)
    return (value[0], weight[0], *sizes)


@irdl_op_definition
class ConvTranspose1dOp(ConvTransposeOp):
    """1-d transposed convolution."""

    name = "nn.conv_transpose1d"
    SPATIAL: ClassVar[int] = 1


@irdl_op_definition
class ConvTranspose2dOp(ConvTransposeOp):
    """2-d transposed convolution."""

    name = "nn.conv_transpose2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class ConvTranspose3dOp(ConvTransposeOp):
    """3-d transposed convolution."""

    name = "nn.conv_transpose3d"
    SPATIAL: ClassVar[int] = 3


TRANSPOSED = (ConvTranspose1dOp, ConvTranspose2dOp, ConvTranspose3dOp)
