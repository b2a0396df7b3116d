# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Literals of xDSL's own attributes, read strictly.

xDSL takes ``200 : i8`` for -56, as the bits of an unsigned number, and makes a Python list of a splat's elements, of
which a line of text can ask for any number. Here a decimal number must be a value of its type, and splats are bounded.
Hexadecimal numbers are bits.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, Block
from xdsl.parser import AttrParser, Parser
from xdsl.utils.lexer import Span

from qcomp.limits import MAX_BLOCKS, MAX_DENSE_ELEMENTS, MAX_RANK

_DECIMAL = re.compile(r"-?\s*\d+(?![xX\d])")
_HEXADECIMAL = re.compile(r"-?\s*0[xX][0-9a-fA-F]")


class _Bits(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """A hexadecimal element of a dense literal: the bits of a float, which xDSL takes for an integer's value."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        bits = int(cast(int, self.value))
        if self.is_negative or bits >> (8 * type.compile_time_size):
            parser.raise_error(f"hexadecimal digits that are not the bits of {type}", self.span)
        return next(type.iter_unpack(bits.to_bytes(type.compile_time_size, "little")))


class LiteralParser(Parser):
    """Raises ParseError for literals that are no values of their type, and for what is beyond all measure."""

    _elements = _blocks = _dimensions = 0
    _dimension_end = -1
    _largest: tuple[int, Span] | None = None

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        start = self.pos
        hexadecimal = _HEXADECIMAL.match(self.lexer.input.content, start)
        try:
            found = super().parse_optional_builtin_int_or_float_attr()
        except OverflowError:
            self.raise_error("a number beyond the range of its type", start)
        if isinstance(found, FloatAttr):
            self._check_float(found, hexadecimal, start)
        elif isinstance(found, IntegerAttr):
            digits = _DECIMAL.match(self.lexer.input.content, start)
            if digits is not None:
                value = int(digits[0].replace(" ", ""))
                self._check_value(value, found.type, Span(start, digits.end(), self.lexer.input))
        return found

    def _check_float(self, found: FloatAttr, hexadecimal: re.Match[str] | None, start: int) -> None:
        """xDSL takes ``-0x1 : f32`` for -1.0, and 1.0e39 for an infinite float32."""
        if hexadecimal is not None and hexadecimal[0].startswith("-"):
            self.raise_error("hexadecimal digits are the bits of a float, which have no sign before them", start)
        if hexadecimal is None and math.isinf(found.value.data):
            self.raise_error(f"a number beyond the range of {found.type}", start)

    def parse_optional_integer(self, *args: Any, **options: Any) -> int | None:
        start = self.pos
        value = super().parse_optional_integer(*args, **options)
        if value is not None and not -(1 << 63) <= value < 1 << 64:
            self.raise_error("an integer too large for 64 bits", start)
        return value

    def _parse_typed_integer(self, type: IntegerType, *args: Any, **options: Any) -> int:
        start = self.pos
        value = super()._parse_typed_integer(type, *args, **options)
        self._check_value(value, type, Span(start, self.pos, self.lexer.input))
        return value

    def _parse_tensor_literal_element(self) -> Any:
        element = super()._parse_tensor_literal_element()
        value = element.value
        if isinstance(value, int) and _HEXADECIMAL.match(element.span.text):
            return _Bits(element.is_negative, value, element.span)
        if isinstance(value, int) and (self._largest is None or value > self._largest[0]):
            self._largest = value, element.span
        return element

    def _parse_dense_literal_type(self) -> Any:
        start = self.pos
        kind = super()._parse_dense_literal_type()
        self._spend(kind, start)
        return kind

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        self._largest = None
        if type is not None:
            self._spend(type, self.pos)
        found = super().parse_dense_int_or_fp_elements_attr(type)
        if self._largest is not None:
            self._check_value(self._largest[0], found.get_element_type(), self._largest[1])
        return found

    def parse_shape_dimension(self, allow_dynamic: bool = True) -> int:
        # xDSL reads the rest of the text again after every dimension.
        self._dimensions = self._dimensions + 1 if self.pos <= self._dimension_end + 1 else 1
        if self._dimensions > MAX_RANK:
            self.raise_error(f"shapes have at most {MAX_RANK} dimensions")
        size = super().parse_shape_dimension(allow_dynamic)
        self._dimension_end = self.pos
        return size

    def _parse_block(self) -> Block:
        self._blocks += 1
        if self._blocks > MAX_BLOCKS:
            self.raise_error(f"more than {MAX_BLOCKS} labelled blocks")
        return super()._parse_block()

    def _spend(self, kind: Any, start: int) -> None:
        self._elements += math.prod(kind.get_shape())
        if self._elements > MAX_DENSE_ELEMENTS:
            text = f"dense attributes of {self._elements} elements, more than the {MAX_DENSE_ELEMENTS} allowed"
            self.raise_error(text, start, start + 1)

    def _check_value(self, value: int, kind: Attribute, where: Span) -> None:
        if isinstance(kind, IndexType) and not -(1 << 63) <= value < 1 << 63:
            self.raise_error(f"{value} is not a value of {kind}", where.start, where.end)
        integer = cast("IntegerType[int, Signedness]", kind)
        if not isinstance(kind, IntegerType) or integer.signedness.data is not Signedness.SIGNLESS:
            return
        width = integer.width.data
        if width > 1 and value >= 1 << (width - 1):
            self.raise_error(f"{value} is not a value of {kind} (hexadecimal digits give bits)", where.start, where.end)
