# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bits of elements seen as elements of another type."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.element import is_integer
from qcomp.dialects.nn.base import UNKNOWN, NNOp, Shape, Tensor, require, shape, tensor
from qcomp.dialects.quant import encoding_of

_FLOAT_BITS: dict[type[Attribute], int] = {Float16Type: 16, BFloat16Type: 16, Float32Type: 32, Float64Type: 64}


def stored_bits(element: Attribute) -> int:
    """The bits of an element in memory; a truth value has 8."""
    if is_integer(element):
        return max(element.width.data, 8)
    return _FLOAT_BITS.get(type(element), 0)


@irdl_op_definition
class BitcastOp(NNOp):
    """The same bits as elements of another type, torch's `.view(dtype)`. The last dimension is as much longer as the
    elements are narrower.

    An element is made of narrower ones from its lowest bits on, which is the order in memory on little-endian machines,
    whatever the order on the target is. Truth values are no result: other bytes than 0 and 1 would be none.
    """

    name = "nn.bitcast"
    input = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, element: Attribute, result_type: Tensor | None = None):
        inferred = result_type or tensor_of(element, bitcast_shape(shape(value), tensor(value).element_type, element))
        super().__init__(operands=[value], result_types=[inferred])

    def infer_shape(self) -> Shape:
        return bitcast_shape(shape(self.input), tensor(self.input).element_type, self.infer_element())

    def infer_element(self) -> Attribute:
        return tensor(self.result).element_type

    def verify_(self) -> None:
        require(all(encoding_of(value.type) is None for value in (self.input, self.result)), "bits of codes")
        super().verify_()


def bitcast_shape(sizes: Shape, source: Attribute, target: Attribute) -> Shape:
    """The shape of the bits of `source` elements as `target` elements. Raises VerifyException when they do not fit."""
    given, wanted = stored_bits(source), stored_bits(target)
    require(given > 0 and wanted > 0 and target != IntegerType(1), f"bits of {source} are not seen as {target}")
    if given == wanted:
        return sizes
    require(len(sizes) > 0, f"a number of {source} has no dimension for elements of {target}")
    if sizes[-1] == UNKNOWN:
        return sizes
    if given > wanted:
        return (*sizes[:-1], sizes[-1] * (given // wanted))
    ratio = wanted // given
    require(sizes[-1] % ratio == 0, f"{sizes[-1]} elements of {source} are no whole number of {target}")
    return (*sizes[:-1], sizes[-1] // ratio)
