# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are not known before run time.

Symbols are parameters by name: a function lists those it needs in ``nn.symbols``, and a caller has all that its callees
have. Buffer types, `valid` counts and offsets of views speak of them, and `loop.size` makes one an index.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import DimAttr, attribute_size, size_attribute


@irdl_op_definition
class SizeOp(IRDLOperation):
    """``%n = loop.size {value = #nn.dim<4 * b>} : index``"""

    name = "loop.size"
    result = result_def(IndexType)
    value = prop_def(IntegerAttr | DimAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, size: int):
        super().__init__(result_types=[IndexType()], properties={"value": size_attribute(size)})

    @property
    def size(self) -> int:
        """The number, or what it is computed of."""
        return attribute_size(self.value)
