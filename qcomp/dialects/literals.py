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

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Block
from xdsl.parser import Parser
from xdsl.utils.lexer import Span

ELEMENTS_LIMIT = 1 << 20
"""Elements of all ``dense`` attributes of a text that are xDSL's own; qcomp's constants have theirs in a sidecar."""
BLOCKS_LIMIT = 1000
"""Labelled blocks of a text: xDSL takes time quadratic in their number, qcomp's own regions have one block."""
MAXIMUM_RANK = 64
"""numpy's."""

_DECIMAL = re.compile(r"-?\s*\d+(?![xX\d])")


class LiteralParser(Parser):
    """Raises ParseError for literals that are no values of their type, and for what is beyond all measure."""

    _elements = _blocks = _dimensions = 0
    _dimension_end = -1
    _largest: tuple[int, Span] | None = None

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        start = self.pos
        found = super().parse_optional_builtin_int_or_float_attr()
        if isinstance(found, IntegerAttr):
            digits = _DECIMAL.match(self.lexer.input.content, start)
            if digits is not None:
                value = int(digits[0].replace(" ", ""))
                self._check_value(value, found.type, Span(start, digits.end(), self.lexer.input))
        return found

    def _parse_typed_integer(self, type: IntegerType, *args: Any, **options: Any) -> int:
        start = self.pos
        value = super()._parse_typed_integer(type, *args, **options)
        self._check_value(value, type, Span(start, self.pos, self.lexer.input))
        return value

    def _parse_tensor_literal_element(self) -> Any:
        element = super()._parse_tensor_literal_element()
        value = element.value
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
        if self._dimensions > MAXIMUM_RANK:
            self.raise_error(f"shapes have at most {MAXIMUM_RANK} dimensions")
        size = super().parse_shape_dimension(allow_dynamic)
        self._dimension_end = self.pos
        return size

    def _parse_block(self) -> Block:
        self._blocks += 1
        if self._blocks > BLOCKS_LIMIT:
            self.raise_error(f"more than {BLOCKS_LIMIT} labelled blocks")
        return super()._parse_block()

    def _spend(self, kind: Any, start: int) -> None:
        self._elements += math.prod(kind.get_shape())
        if self._elements > ELEMENTS_LIMIT:
            text = f"dense attributes of {self._elements} elements, more than the {ELEMENTS_LIMIT} allowed"
            self.raise_error(text, start, start + 1)

    def _check_value(self, value: int, kind: Attribute, where: Span) -> None:
        integer = cast("IntegerType[int, Signedness]", kind)
        if not isinstance(kind, IntegerType) or integer.signedness.data is not Signedness.SIGNLESS:
            return
        width = integer.width.data
        if width > 1 and value >= 1 << (width - 1):
            self.raise_error(f"{value} is not a value of {kind} (hexadecimal digits give bits)", where.start, where.end)
