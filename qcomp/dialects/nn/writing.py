# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes as values: a tensor with a part of it replaced. Only the part is moved where the old value is not read again.

On quantized tensors codes move unchanged.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import DimAttr, attribute_size, size_attribute
from qcomp.dialects.nn.base import (
    UNKNOWN,
    NNOp,
    Shape,
    Tensor,
    never_below,
    require,
    require_one_element,
    same_shape,
    shape,
    tensor,
)


class WriteOp(NNOp):
    """`base` with `source` written into it; the result has base's type."""

    base = operand_def(TensorType)
    source = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    def infer_shape(self) -> Shape:
        return shape(self.base)

    def infer_element(self) -> Attribute:
        return tensor(self.base).element_type

    def verify_(self) -> None:
        require_one_element(self.base, self.source)
        super().verify_()


def _axis(dim: int, base: Shape, source: Shape) -> int:
    require(len(base) == len(source), "base and source need the same rank")
    require(0 <= dim < len(base), f"dim {dim} is outside rank {len(base)}")
    require(
        same_shape((*base[:dim], 0, *base[dim + 1 :]), (*source[:dim], 0, *source[dim + 1 :])),
        "base and source differ outside dim",
    )
    return dim


@irdl_op_definition
class InsertSliceOp(WriteOp):
    """`base` with the elements start, start + step, ... of dimension `dim` replaced by those of `source`."""

    name = "nn.insert_slice"
    dim = prop_def(IntegerAttr)
    start = prop_def(IntegerAttr | DimAttr)
    step = prop_def(IntegerAttr)
    assembly_format = "$source `into` $base attr-dict `:` type($source) `into` type($base) `->` type($result)"

    def __init__(
        self, base: SSAValue, source: SSAValue, dim: int, start: int, step: int = 1, result_type: Tensor | None = None
    ):
        super().__init__(
            operands=[base, source],
            result_types=[result_type or tensor(base)],
            properties={
                "dim": IntegerAttr(dim, i64), "start": size_attribute(start), "step": IntegerAttr(step, i64),
            },
        )  # fmt: skip

    def infer_shape(self) -> Shape:
        base, source = shape(self.base), shape(self.source)
        dim, start, step = self.dim.value.data, attribute_size(self.start), self.step.value.data
        _axis(dim, base, source)
        require(step >= 1, "step must be at least 1")
        require(never_below(start, 0), "start must be at least 0")
        if UNKNOWN not in (base[dim], source[dim]) and source[dim] != 0:
            rest = base[dim] - start - (source[dim] - 1) * step - 1
            require(never_below(rest, 0), "source does not fit into base")
        return base


@irdl_op_definition
class IndexCopyOp(WriteOp):
    """`base` with element indices[i] of dimension `dim` replaced by element i of `source`, one after the other.

    Indices outside 0..size-1 are an error.
    """

    name = "nn.index_copy"
    indices = operand_def(TensorType)
    dim = prop_def(IntegerAttr)
    assembly_format = (
        "$source `into` $base `[` $indices `]` attr-dict `:` type($source) `into` type($base) `[` type($indices) `]` "
        "`->` type($result)"
    )

    def __init__(
        self, base: SSAValue, source: SSAValue, indices: SSAValue, dim: int, result_type: Tensor | None = None
    ):
        super().__init__(
            operands=[indices, base, source],
            result_types=[result_type or tensor(base)],
            properties={"dim": IntegerAttr(dim, i64)},
        )

    def infer_shape(self) -> Shape:
        base, source, indices = shape(self.base), shape(self.source), shape(self.indices)
        _axis(dim := self.dim.value.data, base, source)
        require(isinstance(tensor(self.indices).element_type, IntegerType), "indices must be integers")
        require(len(indices) == 1 and same_shape(indices, (source[dim],)), "source needs one element per index")
        return base


WRITING = (InsertSliceOp, IndexCopyOp)
