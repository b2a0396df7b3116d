# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbolic sizes in the IR: ``#nn.dims`` in types, ``#nn.dim`` as a number of an op, symbols and guards on functions.

    func.func @main(%x: tensor<?x?x128xf32, #nn.dims<[b, 2 * s + 1, 128]>>)
        attributes {nn.symbols = [#nn.symbol<b, 0, 64>, #nn.symbol<s, 1>], nn.guards = [#nn.guard<s mod 4 ne 1>]}

A type with symbolic dimensions is ``?`` there and says in its encoding (a memref: in its layout, which is row-major)
what they are; ``?`` in the encoding is a dimension that is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    IntegerType,
    MemRefLayoutAttr,
    MemRefType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Data, Operation
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import FUNCTIONS, Call, Dim, bounds, is_symbolic, symbol, symbols_of
from qcomp.dialects.guard import Guard, compare
from qcomp.errors import QcompError
from qcomp.limits import MAX_SIZE_NESTING

Shape = tuple[int, ...]
SYMBOLS = "nn.symbols"
"""On a function: its symbols with their ranges, in the order in which compiled code takes them."""
GUARDS = "nn.guards"
"""On a function: what must hold for the sizes of its symbols, beside the ranges. Calls are checked."""
COMPARISONS = {"eq": "==", "ne": "!=", "ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
"""The comparisons of guards, by their words in text."""


@irdl_attr_definition
class DimsAttr(Data[Shape], MemRefLayoutAttr):
    """The dimensions of a type some of which are symbolic: ``#nn.dims<[2 * b, 128, ?]>``."""

    name = "nn.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        with parser.in_angle_brackets():
            return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_size(parser)))

    def verify(self) -> None:
        for size in self.data:
            _check_numbers(size)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{sizes_text(self.data)}]>")

    def get_affine_map(self) -> AffineMap:
        """Row-major; each symbolic stride is a symbol of the map."""
        total, symbols = AffineExpr.constant(0), 0
        for axis in range(len(self.data)):
            rest = self.data[axis + 1 :]
            if any(is_symbolic(size) or size < 0 for size in rest):
                factor, symbols = AffineExpr.symbol(symbols), symbols + 1
            else:
                factor = AffineExpr.constant(_product(rest))
            total = total + AffineExpr.dimension(axis) * factor
        return AffineMap(len(self.data), symbols, (total,))


@irdl_attr_definition
class DimAttr(Data[int]):
    """A number that depends on symbols: ``#nn.dim<s - 1>``."""

    name = "nn.dim"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        with parser.in_angle_brackets():
            return _parse_sum(parser)

    def verify(self) -> None:
        _check_numbers(self.data)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class SymbolAttr(Data[Symbol]):
    """A symbol with the least and, if there is one, the largest size: ``#nn.symbol<b, 0, 64>``."""

    name = "nn.symbol"

    def verify(self) -> None:
        low, high = self.data.low, self.data.high
        if low < 0 or (high is not None and high < low):
            raise VerifyException(f"symbol {self.data.name} has the range {low} to {high}")
        if max(low, high or 0) > _LARGEST:
            raise VerifyException(f"symbol {self.data.name} has a bound beyond 64 bits")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Symbol:
        with parser.in_angle_brackets():
            name, low, high = parser.parse_identifier(" for a symbol"), 0, None
            if parser.parse_optional_punctuation(",") is not None:
                low = parser.parse_integer()
                high = parser.parse_integer() if parser.parse_optional_punctuation(",") is not None else None
            return Symbol(name, low, high)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class GuardAttr(Data[Guard]):
    """A condition on sizes: ``#nn.guard<s mod 4 eq 0>``, ``#nn.guard<s ge 2 * b, "model.py:12">``.

    The comparisons are eq, ne, ge, gt, le and lt, the note says where it comes from. ``max`` means "or", ``min`` "and",
    of sizes that must be 0 or more.
    """

    name = "nn.guard"

    def verify(self) -> None:
        _check_numbers(self.data.size)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Guard:
        with parser.in_angle_brackets():
            left = _parse_sum(parser)
            word = next((word for word in COMPARISONS if parser.parse_optional_keyword(word) is not None), None)
            if word is None:
                parser.raise_error(f"a guard compares by {', '.join(COMPARISONS)}")
            right = _parse_sum(parser)
            note = parser.parse_str_literal() if parser.parse_optional_punctuation(",") is not None else ""
            return compare(left, COMPARISONS[word], right, note)

    def print_parameter(self, printer: Printer) -> None:
        words = {sign: word for word, sign in COMPARISONS.items()}
        left, right = self.data.sides()
        printer.print_string(f"<{left} {words[self.data.relation]} {right}")
        if self.data.note:
            printer.print_string(", ")
            printer.print_string_literal(self.data.note)
        printer.print_string(">")


_LARGEST = (1 << 63) - 1


def _check_numbers(size: int) -> None:
    """Compiled code computes sizes in 64 bits."""
    if size != DYNAMIC_INDEX and any(abs(number) > _LARGEST for number in _numbers(size)):
        raise VerifyException("a size has a number beyond 64 bits")


def _numbers(size: object) -> Iterator[int]:
    """The numbers that `size` is written with."""
    if not isinstance(size, Dim):
        yield cast(int, size)
        return
    for monomial, factor in size.terms:
        yield factor
        for atom in monomial:
            for part in atom.args if isinstance(atom, Call) else ():
                yield from _numbers(part)


def sizes_text(sizes: Iterable[int]) -> str:
    """Sizes as text, ``?`` for one that is not known."""
    return ", ".join("?" if size == DYNAMIC_INDEX else str(size) for size in sizes)


def sizes_of(kind: TensorType[Attribute] | MemRefType[Attribute]) -> Shape:
    """The dimensions of a type: numbers, symbolic ones, DYNAMIC_INDEX. Raises VerifyException when its parts differ."""
    sizes = kind.get_shape()
    given = kind.encoding if isinstance(kind, TensorType) else kind.layout
    if not isinstance(given, DimsAttr):
        return sizes
    dims = given.data
    if sizes != _plain(dims):
        raise VerifyException(f"dimensions [{sizes_text(sizes)}] and #nn.dims<[{sizes_text(dims)}]> differ")
    return dims


def has_symbols(kind: Attribute) -> bool:
    """Whether a tensor or memref type has symbolic dimensions."""
    given = kind.encoding if isinstance(kind, TensorType) else kind.layout if isinstance(kind, MemRefType) else None
    return isinstance(given, DimsAttr) and any(map(is_symbolic, given.data))


def tensor_of(element: Attribute, sizes: Sequence[int]) -> TensorType[Attribute]:
    """The tensor type of `sizes`, some of which may be symbolic."""
    if not any(map(is_symbolic, sizes)):
        return TensorType(element, sizes)
    return TensorType(element, _plain(sizes), DimsAttr(tuple(sizes)))


def memref_of(element: Attribute, sizes: Sequence[int]) -> MemRefType[Attribute]:
    """The row-major memref type of `sizes`, some of which may be symbolic."""
    return _memref_of(element, tuple(sizes))


@lru_cache(4096)  # Making a type takes a tenth of a millisecond, and every kernel and buffer asks for several.
def _memref_of(element: Attribute, sizes: tuple[int, ...]) -> MemRefType[Attribute]:
    if not any(map(is_symbolic, sizes)):
        return MemRefType(element, sizes)
    return MemRefType(element, _plain(sizes), DimsAttr(sizes))


def size_attribute(size: int) -> Attribute:
    """`size` as a number of an op: an i64, or ``#nn.dim``."""
    return DimAttr(size) if is_symbolic(size) else IntegerAttr(size, i64)


def attribute_size(attribute: Attribute) -> int:
    """The number that `size_attribute` made an attribute of."""
    return attribute.data if isinstance(attribute, DimAttr) else cast("IntegerAttr[IntegerType]", attribute).value.data


def declared_symbols(func: Operation) -> list[Symbol]:
    """The symbols of a function in order."""
    given = func.attributes.get(SYMBOLS)
    items = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    return [item.data for item in items if isinstance(item, SymbolAttr)]


def largest_size(size: int, op: Operation) -> float:
    """The largest number that `size` can be in the function around `op`, or that function itself; inf for any."""
    found: Operation | None = op
    while found is not None and SYMBOLS not in found.attributes:
        found = found.parent_op()
    symbols = [] if found is None else declared_symbols(found)
    return bounds(size, {item.name: (item.low, inf if item.high is None else item.high) for item in symbols})[1]


def declared_guards(func: Operation) -> list[Guard]:
    """The guards of a function in order. Raises QcompError for one about a symbol that the function does not have."""
    given = func.attributes.get(GUARDS)
    items = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    guards = [item.data for item in items if isinstance(item, GuardAttr)]
    names = {symbol.name for symbol in declared_symbols(func)} if guards else set[str]()
    for guard in guards:
        unknown = [name for name in symbols_of([guard.size]) if name not in names]
        if unknown:
            raise QcompError.at(func, f"the guard {guard} is about {unknown[0]}, no symbol of it", code="dynamic-shape")
    return guards


def declare_guards(func: Operation, guards: Sequence[Guard]) -> None:
    """Give a function these guards."""
    if guards:
        func.attributes[GUARDS] = ArrayAttr([GuardAttr(item) for item in guards])
    else:
        func.attributes.pop(GUARDS, None)


def declare_symbols(func: Operation, symbols: Sequence[Symbol]) -> None:
    """Give a function these symbols."""
    if symbols:
        func.attributes[SYMBOLS] = ArrayAttr([SymbolAttr(item) for item in symbols])
    else:
        func.attributes.pop(SYMBOLS, None)


def argument_names(main: FuncOp) -> list[str]:
    """What errors call the tensor arguments of a function: ``nn.name``, else as in the text, else their number."""
    entries = main.arg_attrs.data if main.arg_attrs is not None else ()
    arguments = main.body.block.args if main.body.blocks else ()
    names: list[str] = []
    for position in range(len(main.function_type.inputs)):
        title = entries[position].data.get("nn.name") if position < len(entries) else None
        hint = arguments[position].name_hint if position < len(arguments) else None
        names.append(title.data if isinstance(title, StringAttr) else hint or str(position))
    return names


def _plain(sizes: Sequence[int]) -> Shape:
    return tuple(DYNAMIC_INDEX if is_symbolic(size) else size for size in sizes)


def _product(sizes: Iterable[int]) -> int:
    total = 1
    for size in sizes:
        total = total * size
    return total


def _parse_size(parser: AttrParser) -> int:
    return DYNAMIC_INDEX if parser.parse_optional_punctuation("?") is not None else _parse_sum(parser)


def _parse_sum(parser: AttrParser, depth: int = 0) -> int:
    """``term {(+ | -) term}``, a leading minus included."""
    if depth > MAX_SIZE_NESTING:
        parser.raise_error(f"a size nests deeper than {MAX_SIZE_NESTING}")
    negative = parser.parse_optional_punctuation("-") is not None
    total = _parse_term(parser, depth)
    total = -total if negative else total
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            total = total + _parse_term(parser, depth)
        elif parser.parse_optional_punctuation("-") is not None:
            total = total - _parse_term(parser, depth)
        else:
            return total


def _parse_term(parser: AttrParser, depth: int) -> int:
    value = _parse_factor(parser, depth)
    while True:
        word = next((w for w in ("floordiv", "ceildiv", "mod") if parser.parse_optional_keyword(w) is not None), None)
        if word is not None:
            value = FUNCTIONS[word](value, _parse_factor(parser, depth))
        elif parser.parse_optional_punctuation("*") is not None:
            value = value * _parse_factor(parser, depth)
        else:
            return value


def _parse_factor(parser: AttrParser, depth: int) -> int:
    if parser.parse_optional_punctuation("(") is not None:
        value = _parse_sum(parser, depth + 1)
        parser.parse_punctuation(")")
        return value
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return number
    word = parser.parse_identifier(" or number in a size")
    if word not in ("max", "min"):
        return symbol(word)
    parser.parse_punctuation("(")
    first = _parse_sum(parser, depth + 1)
    parser.parse_punctuation(",")
    second = _parse_sum(parser, depth + 1)
    parser.parse_punctuation(")")
    return FUNCTIONS[word](first, second)
