# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores of scalars and n-dimensional tiles, constants and views.

A buffer is a memref in row-major order, its sizes static or by `#nn.dims`, possibly longer than its shape says: reads
may run a few bytes over the end where the value read is multiplied by zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.constant import DataAttr
from qcomp.dialects.dim import bounds, is_symbolic, modulo
from qcomp.dialects.dims import DimAttr, attribute_size, memref_of, size_attribute, sizes_of
from qcomp.dialects.loop.control import parse_indices, print_indices, require_positive_divisors

MemRef = MemRefType[Attribute]
Vector = VectorType[Attribute]
ELEMENT_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8, "i1": 1}


def element_bytes(element: Attribute) -> int:
    """Bytes of one element of a buffer. Storage is signless."""
    size = ELEMENT_BYTES.get(str(element))
    if size is None:
        raise VerifyException(f"buffers cannot hold {element}")
    return size


def memref_bytes(kind: MemRef) -> int:
    """Bytes of a buffer of type `kind`."""
    return math.prod(sizes_of(kind)) * element_bytes(kind.element_type)


class _Access(IRDLOperation):
    """Shared by load and store: an index per buffer dimension, and for tiles where their dimensions lie.

    Dimension i of the tile moves by `steps[i]` along buffer dimension `over[i]`. With `valid`, only the first
    `valid` elements of the tile's last dimension are accessed; the others load as 0.
    """

    @property
    def tile(self) -> Attribute:
        """The type of the value moved: the result of a load, the first operand of a store."""
        return (self.results or self.operands)[0].type

    @property
    def access(self) -> tuple[MemRef, AffineMap, Sequence[SSAValue], tuple[int, ...], tuple[int, ...], int | None]:
        """Buffer type, index map, index operands, over, steps, valid."""
        buffer = cast(SSAValue, getattr(self, "memref"))  # noqa: B009
        indices = cast(AffineMapAttr, self.properties["map"]).data
        over, steps = (self._ints(name) for name in ("over", "steps"))
        valid = self.properties.get("valid")
        count = attribute_size(valid) if valid is not None else None
        return (
            cast(MemRef, buffer.type),
            indices,
            cast(Sequence[SSAValue], getattr(self, "indices")),  # noqa: B009
            over,
            steps,
            count,
        )

    def _ints(self, name: str) -> tuple[int, ...]:
        attr = self.properties.get(name)
        return tuple(cast(DenseArrayBase[IntegerType], attr).get_values()) if attr is not None else ()

    def verify_(self) -> None:
        kind, indices, operands, over, steps, valid = self.access
        if len(indices.results) != kind.get_num_dims():
            raise VerifyException("one index per buffer dimension is needed")
        if indices.num_dims or indices.num_symbols != len(operands):
            raise VerifyException("indices take one symbol per operand")
        require_positive_divisors(indices)
        tile = self.tile
        shape = tile.get_shape() if isinstance(tile, VectorType) else ()
        element = cast(Vector, tile).element_type if isinstance(tile, VectorType) else tile
        if element != kind.element_type:
            raise VerifyException(f"moves {element}, the buffer holds {kind.element_type}")
        if len(over) != len(shape) or len(steps) != len(shape):
            raise VerifyException("over and steps need one entry per tile dimension")
        if any(not 0 <= dim < kind.get_num_dims() for dim in over):
            raise VerifyException("a tile dimension lies outside the buffer's dimensions")
        if valid is not None and not (shape and (is_symbolic(valid) or 0 <= valid < shape[-1])):
            raise VerifyException("valid must be below the tile's last dimension")


def access_properties(
    indices: AffineMap, over: Sequence[int], steps: Sequence[int] | None, valid: int | None
) -> dict[str, Attribute | None]:
    """The properties of a load or store."""
    return {
        "map": AffineMapAttr(indices),
        "over": DenseArrayBase.from_list(i64, list(over)) if over else None,
        "steps": DenseArrayBase.from_list(i64, list(steps or [1] * len(over))) if over else None,
        "valid": size_attribute(valid) if valid is not None else None,
    }


def _print_access(printer: Printer, op: _Access) -> None:
    kind, indices, operands, over, steps, valid = op.access
    printer.print_operand(cast(SSAValue, getattr(op, "memref")))  # noqa: B009
    print_indices(printer, indices, operands)
    if over:
        places = [f"{dim}" if step == 1 else f"{dim} step {step}" for dim, step in zip(over, steps, strict=True)]
        printer.print_string(f" over ({', '.join(places)})")
    if valid is not None:
        printer.print_string(" valid ")
        if is_symbolic(valid):
            printer.print_attribute(size_attribute(valid))
        else:
            printer.print_string(str(valid))
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(kind)
    printer.print_string(", ")
    printer.print_attribute(op.tile)


def _parse_access(
    parser: Parser,
) -> tuple[SSAValue, Sequence[SSAValue], dict[str, Attribute | None], dict[str, Attribute], Attribute]:
    buffer = parser.parse_unresolved_operand()
    indices, operands = parse_indices(parser)
    over: list[int] = []
    steps: list[int] = []

    def place() -> None:
        over.append(parser.parse_integer())
        steps.append(parser.parse_integer() if parser.parse_optional_keyword("step") is not None else 1)

    if parser.parse_optional_keyword("over") is not None:
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, place)
    valid = _parse_count(parser) if parser.parse_optional_keyword("valid") is not None else None
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    parser.parse_punctuation(",")
    tile = parser.parse_type()
    memref = parser.resolve_operand(buffer, kind)
    return memref, operands, access_properties(indices, over, steps, valid), attributes, tile


def _parse_count(parser: Parser) -> int:
    number = parser.parse_optional_integer()
    if number is not None:
        return number
    attribute = parser.parse_attribute()
    if not isinstance(attribute, DimAttr):
        parser.raise_error("valid is a number or #nn.dim")
    return attribute.data


@irdl_op_definition
class LoadOp(_Access):
    """``%v = loop.load %m[%i, 4 * %k] over (0, 1) : memref<...>, vector<14x4xi8>``"""

    name = "loop.load"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()
    map = prop_def(AffineMapAttr)
    over = opt_prop_def(DenseArrayBase)
    steps = opt_prop_def(DenseArrayBase)
    valid = opt_prop_def(IntegerAttr | DimAttr)
    traits = traits_def(MemoryReadEffect())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_access(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        memref, indices, properties, attributes, tile = _parse_access(parser)
        return cls.build(operands=[memref, indices], result_types=[tile], properties=properties, attributes=attributes)


@irdl_op_definition
class StoreOp(_Access):
    """``loop.store %v, %m[%i, %j] over (0, 1) : memref<...>, vector<14x16xi8>``"""

    name = "loop.store"
    value = operand_def()
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    over = opt_prop_def(DenseArrayBase)
    steps = opt_prop_def(DenseArrayBase)
    valid = opt_prop_def(IntegerAttr | DimAttr)
    traits = traits_def(MemoryWriteEffect())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(", ")
        _print_access(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        memref, indices, properties, attributes, tile = _parse_access(parser)
        stored = parser.resolve_operand(value, tile)
        return cls.build(operands=[stored, memref, indices], properties=properties, attributes=attributes)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A read-only buffer with the contents of a constant, seen with signless elements."""

    name = "loop.constant"
    value = prop_def(DataAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, value: DataAttr, result_type: MemRef):
        super().__init__(result_types=[result_type], properties={"value": value})

    def verify_(self) -> None:
        kind, held = self.result.type, self.value.data.type
        if held.get_shape() != kind.get_shape() or self.value.array.dtype.itemsize != element_bytes(kind.element_type):
            raise VerifyException(f"a constant of {held} cannot be a {kind}")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The bytes of a buffer from `offset` on, seen as another buffer type."""

    name = "loop.view"
    source = operand_def(MemRefType)
    result = result_def(MemRefType)
    offset = prop_def(IntegerAttr | DimAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, offset: int, result_type: MemRef):
        super().__init__(operands=[source], result_types=[result_type], properties={"offset": size_attribute(offset)})

    @property
    def bytes_before(self) -> int:
        """The offset."""
        return attribute_size(self.offset)

    def verify_(self) -> None:
        source, result = cast(MemRef, self.source.type), self.result.type
        offset = self.bytes_before
        if DYNAMIC_INDEX in (*sizes_of(source), *sizes_of(result)):
            raise VerifyException("a view needs shapes that are known")
        rest = memref_bytes(source) - memref_bytes(result) - offset
        if bounds(offset)[1] < 0 or bounds(rest)[1] < 0:
            raise VerifyException(f"{memref_bytes(result)} bytes from {offset} on do not lie inside {source}")
        if modulo(offset, element_bytes(result.element_type)) != 0:
            raise VerifyException("offset must be a multiple of the element size")


@irdl_op_definition
class PartOp(IRDLOperation):
    """``loop.part %m[%i]``: the element `index` along dimension 0 of a buffer, as a buffer."""

    name = "loop.part"
    source = operand_def(MemRefType)
    index = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `[` $index `]` attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, index: SSAValue):
        kind = cast(MemRef, source.type)
        super().__init__(
            operands=[source, index], result_types=[memref_of(kind.element_type, sizes_of(kind)[1:])]
        )

    def verify_(self) -> None:
        source, result = cast(MemRef, self.source.type), self.result.type
        sizes = sizes_of(source)
        if not sizes or result != memref_of(source.element_type, sizes[1:]):
            raise VerifyException("a part has the buffer's dimensions but the first")
