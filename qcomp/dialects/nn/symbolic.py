# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that make tensors out of sizes."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, TensorType, i32, i64
from xdsl.ir import Attribute
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import DimAttr, attribute_size, size_attribute, tensor_of
from qcomp.dialects.nn.base import NNOp, Shape, require, shape, tensor


@irdl_op_definition
class DimValueOp(NNOp):
    """A size as a number: a 0-d integer tensor. ``nn.dim_value {value = #nn.dim<2 * s>} : tensor<i64>``"""

    name = "nn.dim_value"
    result = result_def(TensorType)
    value = prop_def(IntegerAttr | DimAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, value: int):
        super().__init__(result_types=[TensorType(i64, ())], properties={"value": size_attribute(value)})

    @property
    def size(self) -> int:
        """The number."""
        return attribute_size(self.value)

    def infer_element(self) -> Attribute:
        return i64

    def infer_shape(self) -> Shape:
        return ()


@irdl_op_definition
class ArangeOp(NNOp):
    """start, start + step, ... as many as the one dimension of the result says, in int32 or int64."""

    name = "nn.arange"
    result = result_def(TensorType)
    start = prop_def(IntegerAttr | DimAttr)
    step = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, start: int, count: int, step: int = 1, element: Attribute = i64):
        super().__init__(
            result_types=[tensor_of(element, (count,))],
            properties={"start": size_attribute(start), "step": IntegerAttr(step, i64)},
        )

    @property
    def first(self) -> int:
        """The first element."""
        return attribute_size(self.start)

    def infer_element(self) -> Attribute:
        return tensor(self.result).element_type

    def infer_shape(self) -> Shape:
        element = tensor(self.result).element_type
        require(element in (i32, i64), "counts in i32 or i64")
        require(len(shape(self.result)) == 1, "the result must have rank 1")
        return shape(self.result)


SYMBOLIC = (DimValueOp, ArangeOp)
