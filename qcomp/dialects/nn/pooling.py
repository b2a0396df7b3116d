# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from qcomp.dialects.nn.base import UNKNOWN, NNOp, Shape, Tensor, int_array, ints, normalize_axis, require, shape, tensor

UNARY_FORMAT = "$input attr-dict `:` type($input) `->` type($result)"


class Pool2dOp(NNOp):
    """A window that slides over [N, C, H, W] or [C, H, W]."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    kernel_size = prop_def(DenseArrayBase)
    stride = prop_def(DenseArrayBase)
    padding = prop_def(DenseArrayBase)
    ceil_mode = prop_def(BoolAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = UNARY_FORMAT

    @property
    def dilation_sizes(self) -> Shape:
        """Distance between window elements, per spatial dimension."""
        return (1, 1)

    def infer_shape(self) -> Shape:
        value = shape(self.input)
        require(len(value) in (3, 4), "input must have rank 3 or 4")
        kernel, stride, padding = ints(self.kernel_size), ints(self.stride), ints(self.padding)
        counts = {len(item) for item in (kernel, stride, padding, self.dilation_sizes)}
        require(counts == {2}, "kernel_size, stride, padding and dilation need 2 entries")
        require(min(self.dilation_sizes) >= 1, "dilation must be at least 1")
        ceil = bool(self.ceil_mode.value.data)
        sizes = [
            pooled_size(value[axis - 2], kernel[axis], stride[axis], padding[axis], self.dilation_sizes[axis], ceil)
            for axis in range(2)
        ]
        return (*value[:-2], *sizes)


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Windows along one dimension; in ceil mode the last one must start inside the input or its left padding."""
    require(kernel >= 1 and stride >= 1 and 0 <= padding <= kernel // 2, "kernel, stride >= 1, padding <= kernel / 2")
    if size == UNKNOWN:
        return UNKNOWN
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    require(room >= 0, "window is larger than the padded input")
    count = -(-room // stride) + 1 if ceil_mode else room // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


@irdl_op_definition
class MaxPool2dOp(Pool2dOp):
    """The largest element of each window; padding never wins."""

    name = "nn.max_pool2d"
    dilation = prop_def(DenseArrayBase)

    def __init__(
        self, value: SSAValue, kernel_size: Shape, stride: Shape, padding: Shape = (0, 0), dilation: Shape = (1, 1),
        ceil_mode: bool = False, result_type: Tensor | None = None,
    ):  # fmt: skip
        sizes = [
            pooled_size(shape(value)[i - 2], kernel_size[i], stride[i], padding[i], dilation[i], ceil_mode)
            for i in range(2)
        ]
        super().__init__(
            operands=[value],
            result_types=[result_type or TensorType(tensor(value).element_type, (*shape(value)[:-2], *sizes))],
            properties={
                "kernel_size": int_array(kernel_size), "stride": int_array(stride), "padding": int_array(padding),
                "dilation": int_array(dilation), "ceil_mode": BoolAttr.from_bool(ceil_mode),
            },
        )  # fmt: skip

    @property
    def dilation_sizes(self) -> Shape:
        return ints(self.dilation)


@irdl_op_definition
class AvgPool2dOp(Pool2dOp):
    """The mean of each window. `divisor_override` replaces the count; `count_include_pad` counts padding."""

    name = "nn.avg_pool2d"
    count_include_pad = prop_def(BoolAttr)
    divisor_override = opt_prop_def(IntegerAttr)

    def __init__(
        self, value: SSAValue, kernel_size: Shape, stride: Shape, padding: Shape = (0, 0), ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None, result_type: Tensor | None = None,
    ):  # fmt: skip
        sizes = [
            pooled_size(shape(value)[i - 2], kernel_size[i], stride[i], padding[i], 1, ceil_mode) for i in range(2)
        ]
        super().__init__(
            operands=[value],
            result_types=[result_type or TensorType(tensor(value).element_type, (*shape(value)[:-2], *sizes))],
            properties={
                "kernel_size": int_array(kernel_size), "stride": int_array(stride), "padding": int_array(padding),
                "ceil_mode": BoolAttr.from_bool(ceil_mode), "count_include_pad": BoolAttr.from_bool(count_include_pad),
                "divisor_override": None if divisor_override is None else IntegerAttr(divisor_override, i64),
            },
        )  # fmt: skip

    def verify_(self) -> None:
        require(
            self.divisor_override is None or self.divisor_override.value.data != 0, "divisor_override must not be 0"
        )
        super().verify_()


@irdl_op_definition
class AdaptiveAvgPool2dOp(NNOp):
    """The mean over windows [floor(i * in / out), ceil((i + 1) * in / out)) that cover the input."""

    name = "nn.adaptive_avg_pool2d"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    output_size = prop_def(DenseArrayBase)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = UNARY_FORMAT

    def __init__(self, value: SSAValue, output_size: Shape, result_type: Tensor | None = None):
        inferred = TensorType(tensor(value).element_type, (*shape(value)[:-2], *output_size))
        super().__init__(
            operands=[value],
            result_types=[result_type or inferred],
            properties={"output_size": int_array(output_size)},
        )

    def infer_shape(self) -> Shape:
        size = ints(self.output_size)
        require(len(shape(self.input)) in (3, 4), "input must have rank 3 or 4")
        require(len(size) == 2 and min(size) >= 1, "output_size needs 2 entries >= 1")
        return (*shape(self.input)[:-2], *size)


class ReduceOp(NNOp):
    """A reduction over `dim` (all dimensions when empty)."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(DenseArrayBase)
    keepdim = prop_def(BoolAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = UNARY_FORMAT

    def __init__(self, value: SSAValue, dim: Sequence[int], keepdim: bool, result_type: Tensor | None = None):
        inferred = TensorType(tensor(value).element_type, reduced_shape(shape(value), tuple(dim), keepdim))
        super().__init__(
            operands=[value],
            result_types=[result_type or inferred],
            properties={"dim": int_array(dim), "keepdim": BoolAttr.from_bool(keepdim)},
        )

    @property
    def axes(self) -> Shape:
        """The reduced dimensions, counted from 0, in ascending order."""
        rank = len(shape(self.input))
        dims = ints(self.dim)
        return tuple(sorted(normalize_axis(axis, rank) for axis in dims)) if dims else tuple(range(rank))

    def infer_shape(self) -> Shape:
        return reduced_shape(shape(self.input), ints(self.dim), bool(self.keepdim.value.data))


def reduced_shape(value: Shape, dim: Shape, keepdim: bool) -> Shape:
    """`value` with the dimensions `dim` (all when empty) reduced to 1 or removed."""
    axes = {normalize_axis(axis, len(value)) for axis in dim} if dim else set(range(len(value)))
    require(len(axes) == len(dim) or not dim, "a dimension is reduced twice")
    return tuple(1 if axis in axes else size for axis, size in enumerate(value) if keepdim or axis not in axes)


@irdl_op_definition
class MeanOp(ReduceOp):
    """Arithmetic mean."""

    name = "nn.mean"


@irdl_op_definition
class SumOp(ReduceOp):
    """Sum."""

    name = "nn.sum"


@irdl_op_definition
class AmaxOp(ReduceOp):
    """Largest element; NaN if there is one."""

    name = "nn.amax"


POOLING = (MaxPool2dOp, AvgPool2dOp, AdaptiveAvgPool2dOp, MeanOp, SumOp, AmaxOp)
