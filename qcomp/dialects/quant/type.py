# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``!quant.uniform``: the quantized element type, in the syntax of MLIR's own quant dialect.

    !quant.uniform<i8:f32, 0.02:3>                                 per tensor
    !quant.uniform<i8<-127:127>:f32:0, {0.1, 0.2:5}>               per axis
    !quant.uniform<i8:f32:{0:1, 1:32}, {{0.1, 0.2}, {0.3, 0.4}}>   sub-channel

More than 16 parameters are held apart like any constant: ``!quant.uniform<i8:f32:0, #nn.data<"digest" : ...>>``, with
``: #nn.data<...>`` behind it for zero points that are not all 0. `expanded_types` prints MLIR's full form instead.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import cast

import numpy as np
from xdsl.dialects.builtin import TensorType, bf16
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from qcomp.dialects.constant import INLINE_LIMIT, DataAttr
from qcomp.dialects.element import is_float
from qcomp.dialects.quant.encoding import Encoding, FloatArray, IntArray, storage_range
from qcomp.limits import MAX_RANK

_expand: ContextVar[bool] = ContextVar("expand_types", default=False)


@contextmanager
def expanded_types() -> Generator[None]:
    """Within it, types print every parameter (MLIR's form) instead of digests."""
    token = _expand.set(True)
    try:
        yield
    finally:
        _expand.reset(token)


@irdl_attr_definition
class UniformQuantizedType(Data[Encoding], TypeAttribute):
    """The element type of a quantized tensor."""

    name = "quant.uniform"

    def verify(self) -> None:
        self.data.check()

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Encoding:
        with parser.in_angle_brackets():
            return _parse(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print(printer, self.data)


def encoding_of(kind: Attribute) -> Encoding | None:
    """The encoding of a quantized tensor type or element type; None for any other type."""
    element = cast(TensorType[Attribute], kind).element_type if isinstance(kind, TensorType) else kind
    return element.data if isinstance(element, UniformQuantizedType) else None


def _print(printer: Printer, encoding: Encoding) -> None:
    low, high = storage_range(encoding.signed, encoding.width)
    printer.print_string(f"{'i' if encoding.signed else 'u'}{encoding.width}")
    if (encoding.qmin, encoding.qmax) != (low, high):
        printer.print_string(f"<{encoding.qmin}:{encoding.qmax}>")
    printer.print_string(":")
    printer.print_attribute(encoding.expressed)
    if encoding.axis is not None:
        printer.print_string(f":{encoding.axis}")
    if encoding.blocks:
        printer.print_string(":{" + ", ".join(f"{axis}:{size}" for axis, size in encoding.blocks) + "}")
    printer.print_string(", ")
    if encoding.scales.size > INLINE_LIMIT and not _expand.get():
        printer.print_attribute(DataAttr.of(encoding.scales))
        if encoding.zero_points.any():
            printer.print_string(":")
            printer.print_attribute(DataAttr.of(encoding.zero_points))
    else:
        printer.print_string(_inline(encoding.scales, encoding.zero_points))


def _inline(scales: FloatArray, zeros: IntArray) -> str:
    if scales.ndim:
        return "{" + ", ".join(_inline(s, z) for s, z in zip(scales, zeros, strict=True)) + "}"
    text = repr(float(scales))
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return f"{text}:{int(zeros)}" if int(zeros) else text


def _parse(parser: AttrParser) -> Encoding:
    name = parser.parse_identifier(" for the storage type")
    if name[0] not in "iu" or not name[1:].isdigit() or not 2 <= int(name[1:]) <= 32:
        parser.raise_error(f"storage type must be i2 to i32 or u2 to u32, got {name}")
    signed, width = name[0] == "i", int(name[1:])
    qmin, qmax = storage_range(signed, width)
    if parser.parse_optional_punctuation("<") is not None:
        qmin = parser.parse_integer()
        parser.parse_punctuation(":")
        qmax = parser.parse_integer()
        parser.parse_punctuation(">")
    parser.parse_punctuation(":")
    expressed = parser.parse_type()
    if not is_float(expressed):
        parser.raise_error(f"expressed type must be a float type, got {expressed}")
    axis, blocks = _parse_axes(parser)
    parser.parse_punctuation(",")
    scales, zeros = _parse_parameters(parser)
    return Encoding.make(
        scales, zeros, signed=signed, width=width, qmin=qmin, qmax=qmax, axis=axis, blocks=blocks, expressed=expressed
    )


def _parse_axes(parser: AttrParser) -> tuple[int | None, tuple[tuple[int, int], ...]]:
    if parser.parse_optional_punctuation(":") is None:
        return None, ()
    if parser.parse_optional_punctuation("{") is None:
        return parser.parse_integer(allow_negative=False), ()
    blocks: list[tuple[int, int]] = []
    while True:
        axis = parser.parse_integer(allow_negative=False)
        parser.parse_punctuation(":")
        blocks.append((axis, parser.parse_integer(allow_negative=False)))
        if parser.parse_optional_punctuation(",") is None:
            break
    parser.parse_punctuation("}")
    return None, tuple(blocks)


Nested = float | list["Nested"]


def _parse_parameters(parser: AttrParser) -> tuple[FloatArray, IntArray]:
    nested = _parse_optional_nested(parser)
    if nested is None:
        scales = _held(parser, parser.parse_attribute(), "f").astype(np.float64)
        if parser.parse_optional_punctuation(":") is None:
            return scales, np.zeros(scales.shape, np.int64)
        zeros = _zero_points(parser, _held(parser, parser.parse_attribute(), "iu"))
        if zeros.shape != scales.shape:
            parser.raise_error(f"{list(scales.shape)} scales and {list(zeros.shape)} zero points")
        return scales, zeros
    try:
        return np.array(nested[0], np.float64), np.array(nested[1], np.int64)
    except ValueError:
        parser.raise_error("ragged list of quantization parameters")
    except OverflowError:
        parser.raise_error("a zero point is beyond 64 bits: it must be a code of the storage type")


_HEX = re.compile(r"-?\s*0x[0-9a-fA-F]+")


def _parse_optional_scale(parser: AttrParser) -> float | None:
    """A number; hexadecimal digits are the bits of a float64, as in MLIR."""
    start = parser.pos
    number = parser.parse_optional_number()
    digits = None if number is None else _HEX.match(parser.lexer.input.content, start)
    if number is None or digits is None:
        return None if number is None else float(number)
    if number < 0 or number >= 1 << 64 or digits[0].startswith("-"):
        parser.raise_error(f"{digits[0]} is no scale: hexadecimal digits are the bits of a float64", start)
    return struct.unpack("<d", struct.pack("<Q", number))[0]


def _held(parser: AttrParser, attr: Attribute, kinds: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if not isinstance(attr, DataAttr):
        parser.raise_error("quantization parameters are numbers or #nn.data")
    if attr.array.dtype.kind not in kinds or attr.data.element == bf16:
        parser.raise_error("scales are floats, zero points are integers")
    return attr.array


def _zero_points(parser: AttrParser, values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> IntArray:
    """int64, which holds all but the upper half of uint64."""
    zeros = values.astype(np.int64)
    if values.dtype.kind == "u" and zeros.min(initial=0) < 0:
        parser.raise_error("a zero point is beyond 63 bits: it must be a code of the storage type")
    return zeros


def _parse_optional_nested(parser: AttrParser, depth: int = 0) -> tuple[Nested, Nested] | None:
    if depth > MAX_RANK:
        parser.raise_error(f"quantization parameters nest deeper than {MAX_RANK}")
    if parser.parse_optional_punctuation("{") is None:
        scale = _parse_optional_scale(parser)
        if scale is None:
            return None
        zero = parser.parse_integer() if parser.parse_optional_punctuation(":") is not None else 0
        return scale, zero
    pairs = [parser.expect(lambda: _parse_optional_nested(parser, depth + 1), "a scale expected")]
    while parser.parse_optional_punctuation(",") is not None:
        pairs.append(parser.expect(lambda: _parse_optional_nested(parser, depth + 1), "a scale expected"))
    parser.parse_punctuation("}")
    return [scale for scale, _ in pairs], [zero for _, zero in pairs]
