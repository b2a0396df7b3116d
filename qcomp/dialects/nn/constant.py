# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``nn.constant``: a compile-time constant tensor."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.constant import Array, DataAttr, parse_literal, print_payload, resolve_payload
from qcomp.dialects.quant import encoding_of, storage_type

Tensor = TensorType[Attribute]


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A constant. With a quantized result type the attribute holds the codes.

    ``%w = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>``, or the digest of a large one in place of ``dense``.
    """

    name = "nn.constant"
    value = prop_def(DataAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, value: DataAttr | Array, result_type: Tensor | None = None):
        data = value if isinstance(value, DataAttr) else DataAttr.of(value)
        super().__init__(result_types=[result_type or data.data.type], properties={"value": data})

    @property
    def array(self) -> Array:
        """The read-only array; codes when the result is quantized."""
        return self.value.array

    def verify_(self) -> None:
        kind = self.result.type
        stored = storage_type(kind)
        if self.value.data.type != TensorType(stored.element_type, stored.get_shape()):
            raise VerifyException(f"a constant of {self.value.data.type} cannot have type {kind}")
        encoding = encoding_of(kind)
        if encoding is not None:
            encoding.check_shape(kind.get_shape())
            array = self.array
            if array.size and not (int(array.min()) >= encoding.qmin and int(array.max()) <= encoding.qmax):  # pyright: ignore[reportArgumentType]
                raise VerifyException(f"codes outside the storage range <{encoding.qmin}:{encoding.qmax}>")

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        print_payload(printer, self.value.data)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        payload = parse_literal(parser)
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        if not isinstance(kind, TensorType):
            raise VerifyException("a constant needs a tensor type")
        stored = storage_type(cast(Tensor, kind))
        data = resolve_payload(parser, payload, TensorType(stored.element_type, stored.get_shape()))
        op = cls(DataAttr(data), cast(Tensor, kind))
        op.attributes |= attributes
        return op
