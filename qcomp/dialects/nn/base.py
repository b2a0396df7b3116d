# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What all nn ops share: pure, torch's semantics, result shapes inferred and verified, activation attributes.

An nn op takes either plain tensors or quantized ones. On quantized tensors it means its integer reference
(`qcomp.interpreter.reference`). nn never promotes types: the frontend inserts `nn.cast`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, FloatAttr, IntegerType, TensorType, f32, f64, i32, i64
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, irdl_attr_definition, param_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.dim import bounds, is_symbolic
from qcomp.dialects.dims import DimsAttr, sizes_of
from qcomp.dialects.quant import encoding_of

Tensor = TensorType[Attribute]
Shape = tuple[int, ...]
SEGMENTS = AttrSizedOperandSegments.attribute_name
UNKNOWN = DYNAMIC_INDEX
"""A dimension that is not known before run time: equal to nothing, not even to itself.

One that depends on symbols is a `qcomp.dialects.dim.Dim`, which computes and compares as a number does."""


def tensor(value: SSAValue) -> Tensor:
    """The tensor type of `value`."""
    return cast(Tensor, value.type)


def shape(value: SSAValue) -> Shape:
    """The shape of `value`: numbers, symbolic dimensions, and UNKNOWN for one that nobody knows."""
    return sizes_of(tensor(value))


def torch_sizes(value: SSAValue) -> list[int]:
    """The shape of `value` as torch's reshape and expand take it: -1 is a dynamic dimension."""
    return [-1 if size == UNKNOWN else size for size in shape(value)]


def ints(attr: Attribute) -> Shape:
    """The values of an i64 array attribute, or of one made by `size_array`."""
    if isinstance(attr, DimsAttr):
        return attr.data
    return tuple(cast(DenseArrayBase[IntegerType], attr).get_values())


def int_array(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """``array<i64: ...>``."""
    return DenseArrayBase.from_list(i64, list(values))


def size_array(values: Sequence[int]) -> Attribute:
    """``array<i64: ...>``, or ``#nn.dims<[...]>`` where a number depends on symbols."""
    return DimsAttr(tuple(values)) if any(map(is_symbolic, values)) else int_array(values)


class ActivationAttr(ParametrizedAttribute, ABC):
    """An activation fused into the op that produces its input."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The interval that the activation clamps to."""


@irdl_attr_definition
class ReluAttr(ActivationAttr):
    """``#nn.relu``"""

    name = "nn.relu"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, math.inf


@irdl_attr_definition
class ClampAttr(ActivationAttr):
    """``#nn.clamp<0.0 : f32, 6.0 : f32>``; min > max gives max everywhere, as in torch."""

    name = "nn.clamp"
    min: FloatAttr = param_def()
    max: FloatAttr = param_def()

    @staticmethod
    def of(low: float, high: float) -> ClampAttr:
        """The clamp to [low, high]; bounds are float64 where float32 does not hold them."""
        kind = f32 if all(math.isinf(x) or FloatAttr(x, f32).value.data == x for x in (low, high)) else f64
        return ClampAttr(FloatAttr(low, kind), FloatAttr(high, kind))

    @property
    def bounds(self) -> tuple[float, float]:
        return self.min.value.data, self.max.value.data

    def verify(self) -> None:
        if any(math.isnan(bound) for bound in self.bounds):
            raise VerifyException("clamp bounds must not be NaN")


def parameter(value: float, like: SSAValue) -> FloatAttr:
    """A number that takes part in an op on `like`: float64 for a tensor of that, else float32."""
    return FloatAttr(value, f64 if tensor(like).element_type == f64 else f32)


class NNOp(IRDLOperation, ABC):
    """An op with one tensor result whose shape follows from operands and attributes."""

    @abstractmethod
    def infer_shape(self) -> Shape:
        """The shape of the result. Raises VerifyException when operands and attributes do not go together."""

    def infer_element(self) -> Attribute:
        """The element type of the result when nothing is quantized: that of the first operand."""
        return tensor(self.operands[0]).element_type

    def verify_(self) -> None:
        verify_result(self, self.infer_shape())


def verify_result(op: NNOp, expected: Shape) -> None:
    """Raise VerifyException unless the result of `op` has the shape `expected` and a lawful element type."""
    result = tensor(op.results[0])
    if not same_shape(sizes_of(result), expected):
        raise VerifyException(f"result has shape {list(sizes_of(result))}, inferred is {list(expected)}")
    quantized = False
    for value in (*op.operands, op.results[0]):
        encoding = encoding_of(value.type)
        if encoding is not None:
            quantized = True
            encoding.check_shape(shape(value))
    if not quantized and result.element_type != op.infer_element():
        raise VerifyException(f"result elements are {result.element_type}, inferred is {op.infer_element()}")


def same_shape(left: Shape, right: Shape) -> bool:
    """Whether two shapes can be the same: equal rank, no two known dimensions that differ."""
    return len(left) == len(right) and all(a == b or UNKNOWN in (a, b) for a, b in zip(left, right, strict=True))


def never_below(size: int, least: int) -> bool:
    """Whether `size` may be `least` or more: False only for what is smaller whatever its symbols are."""
    return bounds(size)[1] >= least


def element_count(sizes: Shape) -> int:
    """The number of elements; UNKNOWN when a dimension is."""
    return UNKNOWN if UNKNOWN in sizes else math.prod(sizes)


def require(condition: bool, message: str) -> None:
    """Raise VerifyException with `message` unless `condition` holds."""
    if not condition:
        raise VerifyException(message)


def require_one_element(*values: SSAValue) -> None:
    """Raise VerifyException unless the plain tensors among `values` have one element type: nn never promotes."""
    kinds = {tensor(value).element_type for value in values if encoding_of(value.type) is None}
    names = " and ".join(sorted(str(kind) for kind in kinds))
    require(len(kinds) <= 1, f"operands of {names}: nn.cast one of them")


def broadcast_shapes(left: Shape, right: Shape) -> Shape:
    """numpy's and torch's broadcasting of two shapes. Raises VerifyException when they do not go together."""
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    dims: list[int] = []
    for a, b in pairs:
        require(a == b or 1 in (a, b) or UNKNOWN in (a, b), f"shapes {list(left)} and {list(right)} do not broadcast")
        dims.append(b if a == 1 else a if b in (1, UNKNOWN) else b)
    return tuple(dims)


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` in 0..rank-1, negative ones counted from the end. Raises VerifyException when outside."""
    require(-max(rank, 1) <= axis < max(rank, 1), f"axis {axis} is outside rank {rank}")
    return axis % rank if rank else 0


class RoleOp(NNOp):
    """An op with optional operands, printed by their role: ``nn.conv2d %x, %w bias(%b) {...} : (...) -> ...``."""

    REQUIRED: ClassVar[tuple[str, ...]]
    OPTIONAL: ClassVar[tuple[str, ...]]
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list([cast(SSAValue, getattr(self, role)) for role in self.REQUIRED], printer.print_operand)
        for role in self.OPTIONAL:
            value = cast("SSAValue | None", getattr(self, role))
            if value is not None:
                printer.print_string(f" {role}(")
                printer.print_operand(value)
                printer.print_string(")")
        printer.print_op_attributes(self.properties | self.attributes, reserved_attr_names=(SEGMENTS,))
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = [parser.parse_unresolved_operand()]
        while parser.parse_optional_punctuation(",") is not None:
            operands.append(parser.parse_unresolved_operand())
        if len(operands) != len(cls.REQUIRED):
            parser.raise_error(f"{cls.name} takes the operands {', '.join(cls.REQUIRED)}")
        present = [1] * len(operands)
        for role in cls.OPTIONAL:
            present.append(int(parser.parse_optional_keyword(role) is not None))
            if present[-1]:
                with parser.in_parens():
                    operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        place = parser.pos
        kinds = parser.parse_function_type()
        values = parser.resolve_operands(operands, list(kinds.inputs), place)
        names = cls.get_irdl_definition().properties
        properties = {name: value for name, value in attributes.items() if name in names}
        properties[SEGMENTS] = DenseArrayBase.from_list(i32, present)
        rest = {name: value for name, value in attributes.items() if name not in names}
        return cls.create(operands=values, result_types=list(kinds.outputs), properties=properties, attributes=rest)
