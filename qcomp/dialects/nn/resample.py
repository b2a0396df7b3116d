# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading a dimension at other places: nearest resizing and mirrored borders; weighted sums of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    UNKNOWN,
    NNOp,
    Shape,
    Tensor,
    int_array,
    ints,
    never_below,
    require,
    same_shape,
    shape,
    tensor,
)
from qcomp.dialects.nn.movement import MovementOp


@irdl_op_definition
class TakeOp(MovementOp):
    """Elements `indices` of dimension `dim`, in that order: ``nn.take %x {dim = 2 : i64, indices = ...}``."""

    name = "nn.take"
    dim = prop_def(IntegerAttr)
    indices = prop_def(DenseArrayBase)

    def __init__(self, value: SSAValue, dim: int, indices: Sequence[int], result_type: Tensor | None = None):
        sizes = [*shape(value)]
        sizes[dim] = len(indices)
        super().__init__(
            operands=[value],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={"dim": IntegerAttr(dim, i64), "indices": int_array(indices)},
        )

    def infer_shape(self) -> Shape:
        sizes, dim, indices = list(shape(self.input)), self.dim.value.data, ints(self.indices)
        require(0 <= dim < len(sizes), f"dim {dim} is outside rank {len(sizes)}")
        require(sizes[dim] != UNKNOWN, "elements of a dimension of unknown size")
        outside = [index for index in indices if index < 0 or not never_below(sizes[dim] - index, 1)]
        require(not outside, f"index {outside[0] if outside else 0} is outside 0 to {sizes[dim] - 1}")
        sizes[dim] = len(indices)
        return tuple(sizes)


@irdl_op_definition
class ResampleOp(NNOp):
    """Element i along `dim` is the sum over k of weights[i, k] * input[indices[i, k]], added one after the other.

    indices: integers [size, taps]; weights: [size, taps] in the input's element type.
    """

    name = "nn.resample"
    input = operand_def(TensorType)
    indices = operand_def(TensorType)
    weights = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $indices `,` $weights attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, value: SSAValue, indices: SSAValue, weights: SSAValue, dim: int, result_type: Tensor | None = None
    ):
        sizes = [*shape(value)]
        sizes[dim] = shape(indices)[0]
        super().__init__(
            operands=[value, indices, weights],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={"dim": IntegerAttr(dim, i64)},
        )

    def infer_shape(self) -> Shape:
        sizes, dim = list(shape(self.input)), self.dim.value.data
        require(0 <= dim < len(sizes), f"dim {dim} is outside rank {len(sizes)}")
        require(len(shape(self.indices)) == 2, "indices must have rank 2")
        require(isinstance(tensor(self.indices).element_type, IntegerType), "indices must be integers")
        require(same_shape(shape(self.indices), shape(self.weights)), "indices and weights must have one shape")
        sizes[dim] = shape(self.indices)[0]
        return tuple(sizes)


RESAMPLING = (TakeOp, ResampleOp)
