# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, TensorType, UnitAttr, i64
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
from xdsl.traits import Pure

from qcomp.dialects.dim import ceil_divide, is_symbolic, smaller
from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    UNKNOWN,
    NNOp,
    Shape,
    Tensor,
    int_array,
    ints,
    never_below,
    normalize_axis,
    require,
    shape,
    tensor,
)

UNARY_FORMAT = "$input attr-dict `:` type($input) `->` type($result)"


class PoolOp(NNOp):
    """A window that slides over [N, C, *spatial] or [C, *spatial]."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    kernel_size = prop_def(DenseArrayBase)
    stride = prop_def(DenseArrayBase)
    padding = prop_def(DenseArrayBase)
    ceil_mode = prop_def(BoolAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = UNARY_FORMAT
    SPATIAL: ClassVar[int]

    @property
    def dilation_sizes(self) -> Shape:
        """Distance between window elements, per spatial dimension."""
        return (1,) * self.SPATIAL

    def infer_shape(self) -> Shape:
        value = shape(self.input)
        require(
            len(value) in (self.SPATIAL + 1, self.SPATIAL + 2),
            f"input must have rank {self.SPATIAL + 1} or {self.SPATIAL + 2}",
        )
        kernel, stride, padding = ints(self.kernel_size), ints(self.stride), ints(self.padding)
        counts = {len(item) for item in (kernel, stride, padding, self.dilation_sizes)}
        require(counts == {self.SPATIAL}, f"kernel_size, stride, padding and dilation need {self.SPATIAL} entries")
        require(min(self.dilation_sizes) >= 1, "dilation must be at least 1")
        return pooled_shape(value, kernel, stride, padding, self.dilation_sizes, bool(self.ceil_mode.value.data))


def pooled_shape(value: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool) -> Shape:
    """The shape of the result of a window that slides over the last dimensions of `value`."""
    first = len(value) - len(kernel)
    windows = zip(value[first:], kernel, stride, padding, dilation, strict=True)
    return (*value[:first], *(pooled_size(*window, ceil_mode) for window in windows))


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Windows along one dimension; in ceil mode the last one must start inside the input or its left padding."""
    require(kernel >= 1 and stride >= 1 and 0 <= padding <= kernel // 2, "kernel, stride >= 1, padding <= kernel / 2")
    if size == UNKNOWN:
        return UNKNOWN
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    require(never_below(room, 0), "window is larger than the padded input")
    count = ceil_divide(room, stride) + 1 if ceil_mode else room // stride + 1
    if is_symbolic(count) and ceil_mode:
        # A stride that is short enough never leads beyond the input.
        reach = dilation * (kernel - 1) + 1
        count = count if stride + padding <= reach else smaller(count, ceil_divide(size + padding, stride))
    elif ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


class ExtremePoolOp(PoolOp):
    """About the largest element of each window; padding never wins."""

    dilation = prop_def(DenseArrayBase)
    ELEMENT: ClassVar[Attribute | None] = None
    """What the result holds, unless it is elements of the input."""

    def __init__(
        self, value: SSAValue, kernel_size: Shape, stride: Shape, padding: Shape = (), dilation: Shape = (),
        ceil_mode: bool = False, result_type: Tensor | None = None,
    ):  # fmt: skip
        padding, dilation = padding or (0,) * self.SPATIAL, dilation or (1,) * self.SPATIAL
        if result_type is None:
            sizes = pooled_shape(shape(value), kernel_size, stride, padding, dilation, ceil_mode)
            result_type = tensor_of(self.ELEMENT or tensor(value).element_type, sizes)
        super().__init__(
            operands=[value],
            result_types=[result_type],
            properties={
                "kernel_size": int_array(kernel_size), "stride": int_array(stride), "padding": int_array(padding),
                "dilation": int_array(dilation), "ceil_mode": BoolAttr.from_bool(ceil_mode),
            },
        )  # fmt: skip

    @property
    def dilation_sizes(self) -> Shape:
        return ints(self.dilation)


class MaxPoolOp(ExtremePoolOp):
    """The largest element of each window."""


class MaxPoolIndicesOp(ExtremePoolOp):
    """Where the first of the largest elements of each window lies: its number within the channel, row-major."""

    ELEMENT: ClassVar[Attribute | None] = i64

    def infer_element(self) -> Attribute:
        return i64


class AvgPoolOp(PoolOp):
    """The mean of each window. `divisor_override` replaces the count; `count_include_pad` counts padding."""

    count_include_pad = prop_def(BoolAttr)
    divisor_override = opt_prop_def(IntegerAttr)

    def __init__(
        self, value: SSAValue, kernel_size: Shape, stride: Shape, padding: Shape = (), ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None, result_type: Tensor | None = None,
    ):  # fmt: skip
        padding = padding or (0,) * self.SPATIAL
        if result_type is None:
            sizes = pooled_shape(shape(value), kernel_size, stride, padding, (1,) * self.SPATIAL, ceil_mode)
            result_type = tensor_of(tensor(value).element_type, sizes)
        super().__init__(
            operands=[value],
            result_types=[result_type],
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


class AdaptivePoolOp(NNOp):
    """Windows [floor(i * in / out), ceil((i + 1) * in / out)) that cover the input."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    output_size = prop_def(DenseArrayBase)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = UNARY_FORMAT
    SPATIAL: ClassVar[int]

    def __init__(self, value: SSAValue, output_size: Shape, result_type: Tensor | None = None):
        inferred = tensor_of(tensor(value).element_type, (*shape(value)[: -self.SPATIAL], *output_size))
        super().__init__(
            operands=[value],
            result_types=[result_type or inferred],
            properties={"output_size": int_array(output_size)},
        )

    def infer_shape(self) -> Shape:
        value, size = shape(self.input), ints(self.output_size)
        require(
            len(value) in (self.SPATIAL + 1, self.SPATIAL + 2),
            f"input must have rank {self.SPATIAL + 1} or {self.SPATIAL + 2}",
        )
        require(len(size) == self.SPATIAL and min(size) >= 1, f"output_size needs {self.SPATIAL} entries >= 1")
        require(0 not in value[-self.SPATIAL :], "adaptive windows over no elements")
        return (*value[: -self.SPATIAL], *size)


class AdaptiveAvgPoolOp(AdaptivePoolOp):
    """The mean over each adaptive window."""


class AdaptiveMaxPoolOp(AdaptivePoolOp):
    """The largest element of each adaptive window."""


@irdl_op_definition
class MaxPool2dOp(MaxPoolOp):
    """2-d max pool."""

    name = "nn.max_pool2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class MaxPool3dOp(MaxPoolOp):
    """3-d max pool."""

    name = "nn.max_pool3d"
    SPATIAL: ClassVar[int] = 3


@irdl_op_definition
class MaxPoolIndices2dOp(MaxPoolIndicesOp):
    """Indices of a 2-d max pool."""

    name = "nn.max_pool2d_indices"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class MaxPoolIndices3dOp(MaxPoolIndicesOp):
    """Indices of a 3-d max pool."""

    name = "nn.max_pool3d_indices"
    SPATIAL: ClassVar[int] = 3


@irdl_op_definition
class AvgPool2dOp(AvgPoolOp):
    """2-d average pool."""

    name = "nn.avg_pool2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class AvgPool3dOp(AvgPoolOp):
    """3-d average pool."""

    name = "nn.avg_pool3d"
    SPATIAL: ClassVar[int] = 3


@irdl_op_definition
class AdaptiveAvgPool2dOp(AdaptiveAvgPoolOp):
    """2-d adaptive average pool."""

    name = "nn.adaptive_avg_pool2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class AdaptiveAvgPool3dOp(AdaptiveAvgPoolOp):
    """3-d adaptive average pool."""

    name = "nn.adaptive_avg_pool3d"
    SPATIAL: ClassVar[int] = 3


@irdl_op_definition
class AdaptiveMaxPool2dOp(AdaptiveMaxPoolOp):
    """2-d adaptive max pool."""

    name = "nn.adaptive_max_pool2d"
    SPATIAL: ClassVar[int] = 2


@irdl_op_definition
class AdaptiveMaxPool3dOp(AdaptiveMaxPoolOp):
    """3-d adaptive max pool."""

    name = "nn.adaptive_max_pool3d"
    SPATIAL: ClassVar[int] = 3


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
        inferred = tensor_of(tensor(value).element_type, reduced_shape(shape(value), tuple(dim), keepdim))
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
    """Arithmetic mean. `shifted`: an element plus the mean of the distances from it, exact for equal elements."""

    name = "nn.mean"
    shifted = opt_prop_def(UnitAttr)

    def __init__(
        self, value: SSAValue, dim: Sequence[int], keepdim: bool, result_type: Tensor | None = None,
        shifted: bool = False,
    ):  # fmt: skip
        super().__init__(value, dim, keepdim, result_type)
        if shifted:
            self.properties["shifted"] = UnitAttr()


@irdl_op_definition
class SumOp(ReduceOp):
    """Sum."""

    name = "nn.sum"


@irdl_op_definition
class AmaxOp(ReduceOp):
    """Largest element; NaN if there is one."""

    name = "nn.amax"


MAX_POOLS = (MaxPool2dOp, MaxPool3dOp)
AVG_POOLS = (AvgPool2dOp, AvgPool3dOp)
ADAPTIVE_AVG_POOLS = (AdaptiveAvgPool2dOp, AdaptiveAvgPool3dOp)
ADAPTIVE_MAX_POOLS = (AdaptiveMaxPool2dOp, AdaptiveMaxPool3dOp)
POOLS = (*MAX_POOLS, *AVG_POOLS, *ADAPTIVE_AVG_POOLS, *ADAPTIVE_MAX_POOLS)
"""Every op that slides or spreads windows."""
MAX_POOL_INDICES = (MaxPoolIndices2dOp, MaxPoolIndices3dOp)
POOLING = (*POOLS, *MAX_POOL_INDICES, MeanOp, SumOp, AmaxOp)
