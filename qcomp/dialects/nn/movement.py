# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data movement: the same elements in another arrangement. On quantized tensors codes move unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from qcomp.dialects.dim import ceil_divide
from qcomp.dialects.dims import DimAttr, DimsAttr, attribute_size, size_attribute, tensor_of
from qcomp.dialects.nn.base import (
    UNKNOWN,
    NNOp,
    Shape,
    Tensor,
    broadcast_shapes,
    element_count,
    int_array,
    ints,
    never_below,
    normalize_axis,
    parameter,
    require,
    require_one_element,
    same_shape,
    shape,
    size_array,
    tensor,
)


class MovementOp(NNOp):
    """One tensor in, its elements rearranged out."""

    input = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"


@irdl_op_definition
class ReshapeOp(MovementOp):
    """The same elements in row-major order under the result's shape."""

    name = "nn.reshape"

    def __init__(self, value: SSAValue, sizes: Sequence[int], result_type: Tensor | None = None):
        super().__init__(operands=[value], result_types=[result_type or tensor_of(tensor(value).element_type, sizes)])

    def infer_shape(self) -> Shape:
        source, target = shape(self.input), shape(self.result)
        if UNKNOWN not in source and UNKNOWN not in target:
            counts = [element_count(dims) for dims in (source, target)]
            require(counts[0] == counts[1], f"cannot reshape {counts[0]} elements to {list(target)}")
        return target


@irdl_op_definition
class PermuteOp(MovementOp):
    """Dimension i of the result is dimension dims[i] of the input."""

    name = "nn.permute"
    dims = prop_def(DenseArrayBase)

    def __init__(self, value: SSAValue, dims: Sequence[int], result_type: Tensor | None = None):
        inferred = tensor_of(tensor(value).element_type, [shape(value)[axis] for axis in dims])
        super().__init__(operands=[value], result_types=[result_type or inferred], properties={"dims": int_array(dims)})

    def infer_shape(self) -> Shape:
        dims = ints(self.dims)
        require(sorted(dims) == list(range(len(shape(self.input)))), f"dims {list(dims)} are no permutation")
        return tuple(shape(self.input)[axis] for axis in dims)


@irdl_op_definition
class ExpandOp(MovementOp):
    """Broadcast to the result's shape."""

    name = "nn.expand"

    def __init__(self, value: SSAValue, sizes: Sequence[int], result_type: Tensor | None = None):
        super().__init__(operands=[value], result_types=[result_type or tensor_of(tensor(value).element_type, sizes)])

    def infer_shape(self) -> Shape:
        target = shape(self.result)
        require(same_shape(broadcast_shapes(shape(self.input), target), target), "expand cannot shrink")
        return target


@irdl_op_definition
class SliceOp(MovementOp):
    """Elements start, start + step, ... below end of dimension `dim`; 0 <= start <= end <= size, step >= 1.

    start and end may depend on symbols: `#nn.dim<s - 1>`.
    """

    name = "nn.slice"
    dim = prop_def(IntegerAttr)
    start = prop_def(IntegerAttr | DimAttr)
    end = prop_def(IntegerAttr | DimAttr)
    step = prop_def(IntegerAttr)

    def __init__(
        self, value: SSAValue, dim: int, start: int, end: int, step: int = 1, result_type: Tensor | None = None
    ):
        sizes = list(shape(value))
        sizes[dim] = ceil_divide(end - start, step)
        super().__init__(
            operands=[value],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={
                "dim": IntegerAttr(dim, i64), "start": size_attribute(start),
                "end": size_attribute(end), "step": IntegerAttr(step, i64),
            },
        )  # fmt: skip

    @property
    def bounds(self) -> tuple[int, int]:
        """(start, end)."""
        return attribute_size(self.start), attribute_size(self.end)

    def infer_shape(self) -> Shape:
        (start, end), dim, step = self.bounds, self.dim.value.data, self.step.value.data
        sizes = list(shape(self.input))
        require(0 <= dim < len(sizes), f"dim {dim} is outside rank {len(sizes)}")
        known = sizes[dim] != UNKNOWN
        ordered = never_below(start, 0) and never_below(end - start, 0) and never_below(sizes[dim] - end, 0)
        require(not known or ordered, f"slice {start}:{end} of size {sizes[dim]}")
        require(step >= 1, "step must be at least 1")
        sizes[dim] = ceil_divide(end - start, step)
        return tuple(sizes)


@irdl_op_definition
class CatOp(NNOp):
    """Operands one after another along `dim`."""

    name = "nn.cat"
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$inputs attr-dict `:` functional-type(operands, results)"

    def __init__(self, values: Sequence[SSAValue], dim: int, result_type: Tensor | None = None):
        inferred = tensor_of(tensor(values[0]).element_type, cat_shape([shape(value) for value in values], dim))
        super().__init__(
            operands=[values], result_types=[result_type or inferred], properties={"dim": IntegerAttr(dim, i64)}
        )

    def infer_shape(self) -> Shape:
        return cat_shape([shape(value) for value in self.inputs], self.dim.value.data)

    def verify_(self) -> None:
        require_one_element(*self.inputs)
        super().verify_()


def cat_shape(shapes: Sequence[Shape], dim: int) -> Shape:
    """The shape of tensors of `shapes` put together along `dim`."""
    require(len(shapes) >= 1, "cat needs an operand")
    axis = normalize_axis(dim, len(shapes[0]))
    total = 0
    for item in shapes:
        require(
            same_shape((*item[:axis], 0, *item[axis + 1 :]), (*shapes[0][:axis], 0, *shapes[0][axis + 1 :])),
            "operands of cat differ outside its dimension",
        )
        total = UNKNOWN if UNKNOWN in (total, item[axis]) else total + item[axis]
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :])


@irdl_op_definition
class PadOp(MovementOp):
    """Constant padding: `low` and `high` elements of `value` (a real number) before and after each dimension.

    The numbers of elements may depend on symbols: ``low = #nn.dims<[0, s - 1]>``.
    """

    name = "nn.pad"
    low = prop_def(DenseArrayBase | DimsAttr)
    high = prop_def(DenseArrayBase | DimsAttr)
    value = prop_def(FloatAttr)

    def __init__(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float, result_type: Tensor | None = None
    ):
        sizes = [size + a + b for size, a, b in zip(shape(value), low, high, strict=True)]
        super().__init__(
            operands=[value],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={"low": size_array(low), "high": size_array(high), "value": parameter(fill, value)},
        )

    def infer_shape(self) -> Shape:
        low, high, sizes = ints(self.low), ints(self.high), shape(self.input)
        require(len(low) == len(high) == len(sizes), "low and high need one entry per dimension")
        require(all(never_below(size, 0) for size in (*low, *high)), "padding must be at least 0; use nn.slice to cut")
        return tuple(UNKNOWN if size == UNKNOWN else size + a + b for size, a, b in zip(sizes, low, high, strict=True))


@irdl_op_definition
class EmbeddingOp(NNOp):
    """Rows of `weight` [V, D] picked by integer `indices` [...]: [..., D]. Indices outside 0..V-1 are an error."""

    name = "nn.embedding"
    weight = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$weight `,` $indices attr-dict `:` functional-type(operands, results)"

    def __init__(self, weight: SSAValue, indices: SSAValue, result_type: Tensor | None = None):
        inferred = tensor_of(tensor(weight).element_type, (*shape(indices), shape(weight)[1]))
        super().__init__(operands=[weight, indices], result_types=[result_type or inferred])

    def infer_shape(self) -> Shape:
        require(len(shape(self.weight)) == 2, "weight must have rank 2")
        require(isinstance(tensor(self.indices).element_type, IntegerType), "indices must be integers")
        return (*shape(self.indices), shape(self.weight)[1])


MOVEMENT = (ReshapeOp, PermuteOp, ExpandOp, SliceOp, CatOp, PadOp, EmbeddingOp)
