# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants: attributes that hold numpy arrays and compare by content.

A model's weights do not belong in IR text. ``#nn.data<...>`` prints up to 16 elements inline as ``dense<...> : type``
and larger arrays as a digest, ``"9f2c..." : type``; the array itself then lives in a sidecar file beside the text
(`qcomp.dialects.sidecar`), and the parser's context resolves digests. Where asked for, large arrays print as their
bytes instead (`qcomp.dialects.hex_literal`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from qcomp.dialects.element import element_type, integer_range, is_float, numpy_dtype
from qcomp.dialects.hex_literal import array_of_hex, hex_text, large_constant_form
from qcomp.limits import MAX_SPLAT_BYTES

INLINE_LIMIT = 16
"""Arrays of up to this many elements print inline."""

_HEX = re.compile(r"(- *)?0x[0-9a-fA-F]+")

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Literal = int | float | bool | str | list["Literal"]
"""A parsed ``dense`` literal; texts are hex bit patterns."""


@dataclass(frozen=True)
class Digest:
    """The name of a constant that is held outside the text."""

    text: str


@dataclass(frozen=True)
class HexBytes:
    """The text of ``dense<"0x...">``."""

    text: str


class ConstantData:
    """A read-only array with its element type, compared and hashed by (content digest, type)."""

    __slots__ = ("_digest", "array", "element")

    def __init__(self, array: Array, element: Attribute | None = None, digest: str | None = None):
        array = np.asarray(array)
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array).reshape(array.shape)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.array = array
        self.element = element_type(array.dtype) if element is None else element
        if numpy_dtype(self.element) != array.dtype:
            raise VerifyException(f"constant of type {self.element} cannot be held by a {array.dtype} array")
        self._digest = digest

    @property
    def digest(self) -> str:
        """128 bits of the SHA-256 of the little-endian bytes, in hex."""
        if self._digest is None:
            array = self.array.astype(self.array.dtype.newbyteorder("<"), copy=False)
            content = array.reshape(-1).data.cast("B") if array.size else b""
            self._digest = hashlib.sha256(content).hexdigest()[:32]
        return self._digest

    @property
    def type(self) -> TensorType[Attribute]:
        """The tensor type of the array."""
        return TensorType(self.element, self.array.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ConstantData)
            and self.element == other.element
            and self.array.shape == other.array.shape
            and (self.array is other.array or self.digest == other.digest)
        )

    def __hash__(self) -> int:
        return hash((self.digest, self.array.shape, self.element))

    def __repr__(self) -> str:
        return f"ConstantData({self.array.dtype}{list(self.array.shape)} {self.digest[:8]})"


class ConstantResolver(Protocol):
    """Finds the array of a digest; `missing` words the error when it is not there."""

    def resolve(self, digest: str, kind: TensorType[Attribute]) -> ConstantData | None: ...

    def missing(self, digest: str) -> str: ...


@dataclass
class ConstantStore:
    """The arrays known to a parser, by digest, and the file where they should have come from."""

    source: str | None = None
    by_digest: dict[str, Array] = field(default_factory=dict[str, Array])
    _sound: dict[str, bool] = field(default_factory=dict[str, bool], repr=False)

    def resolve(self, digest: str, kind: TensorType[Attribute]) -> ConstantData | None:
        """The constant of `digest` seen as `kind`; None when unknown or of another size."""
        array = self.by_digest.get(digest)
        if array is None or not self._holds(digest, array):
            return None
        dtype, shape = numpy_dtype(kind.element_type), kind.get_shape()
        if array.nbytes != dtype.itemsize * int(np.prod(shape, dtype=np.int64)):
            return None
        return ConstantData(array.reshape(-1).view(dtype).reshape(shape), kind.element_type, digest)

    def _holds(self, digest: str, array: Array) -> bool:
        """Whether `array` has the content that `digest` names; computed once."""
        if digest not in self._sound:
            self._sound[digest] = ConstantData(array).digest == digest
        return self._sound[digest]

    def missing(self, digest: str) -> str:
        """Why `digest` cannot be resolved, naming the file that should hold it."""
        if not self._sound.get(digest, True):
            return f'unresolved constant "{digest}": its content in {self.source} is damaged'
        if self.source is None:
            return (
                f'unresolved constant "{digest}": the text came without a sidecar file (.safetensors); '
                "read the .mlir file beside its sidecar, or print it with the constants in it: qcomp-opt "
                "--inline-constants, qcomp.save(module, path, inline_constants=True)"
            )
        return f'unresolved constant "{digest}": not found in {self.source}'


@irdl_attr_definition
class DataAttr(Data[ConstantData]):
    """``#nn.data<dense<[1.0, 2.0]> : tensor<2xf32>>`` or ``#nn.data<"digest" : tensor<64x64xf32>>``."""

    name = "nn.data"

    @staticmethod
    def of(array: Array | Sequence[float] | float, element: Attribute | None = None) -> DataAttr:
        """The attribute holding `array` (made read-only, not copied)."""
        return DataAttr(ConstantData(np.asarray(array), element))

    @property
    def array(self) -> Array:
        """The read-only numpy array."""
        return self.data.array

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ConstantData:
        with parser.in_angle_brackets():
            return parse_payload(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_payload(printer, self.data)
            printer.print_string(" : ")
            printer.print_attribute(self.data.type)


def print_payload(printer: Printer, data: ConstantData) -> None:
    """Print `data` without its type: ``dense<...>`` when small or where `large_constants_as` says so."""
    if data.array.size <= INLINE_LIMIT:
        printer.print_string(f"dense<{_literal(data)}>")
    elif large_constant_form() == "first":
        printer.print_string(f"dense<{_literal(ConstantData(data.array.reshape(-1)[0], data.element))}>")
    elif large_constant_form() == "bytes":
        printer.print_string(f'dense<"{hex_text(data.array, data.element)}">')
    else:
        printer.print_string(f'"{data.digest}"')


def parse_payload(parser: AttrParser) -> ConstantData:
    """Parse what `print_payload` printed, followed by ``: type``."""
    payload = parse_literal(parser)
    parser.parse_punctuation(":")
    kind = parser.parse_type()
    if not isinstance(kind, TensorType):
        raise VerifyException("a constant needs a tensor type")
    return resolve_payload(parser, payload, cast(TensorType[Attribute], kind))


def parse_literal(parser: AttrParser) -> Literal | Digest | HexBytes:
    """Parse ``dense<...>`` or a digest; `resolve_payload` makes a constant of it once the type is known."""
    digest = parser.parse_optional_str_literal()
    if digest is not None:
        return Digest(digest)
    parser.parse_keyword("dense")
    with parser.in_angle_brackets():
        digits = parser.parse_optional_str_literal()
        return HexBytes(digits) if digits is not None else _parse_literal(parser)


def resolve_payload(
    parser: AttrParser, payload: Literal | Digest | HexBytes, kind: TensorType[Attribute]
) -> ConstantData:
    """The constant of a parsed payload, seen as `kind`."""
    if any(dim < 0 for dim in kind.get_shape()):
        raise VerifyException("a constant needs a static shape")
    if isinstance(payload, HexBytes):
        return _from_hex(parser, payload.text, kind)
    if not isinstance(payload, Digest):
        return _from_literal(parser, payload, kind)
    store = cast("ConstantResolver | None", getattr(parser.ctx, "constants", None))
    found = store.resolve(payload.text, kind) if store is not None else None
    if found is None:
        raise VerifyException((store or ConstantStore()).missing(payload.text))
    return found


def _literal(data: ConstantData) -> str:
    def show(value: object) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(show(item) for item in cast(list[object], value)) + "]"
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    if not is_float(data.element):
        return show(data.array.tolist())
    texts = np.array([_float_text(item) for item in data.array.reshape(-1)], dtype=object).reshape(data.array.shape)
    return show(texts.tolist())


def _float_text(item: np.generic) -> str:
    """Shortest decimal that reads back to the same bits; hex bits for NaN, inf and bfloat16."""
    if item.dtype.kind == "u" or not np.isfinite(cast(np.float64, item)):
        bits = int(np.asarray(item).reshape(1).view(f"u{item.dtype.itemsize}")[0])
        return f"0x{bits:0{2 * item.dtype.itemsize}X}"
    text = np.format_float_scientific(cast(np.float64, item), unique=True, trim="0")
    plain = np.format_float_positional(cast(np.float64, item), unique=True, trim="0")
    return plain if len(plain) <= 12 else text


def _parse_literal(parser: AttrParser) -> Literal:
    if parser.parse_optional_punctuation("[") is not None:
        items: list[Literal] = []
        if parser.parse_optional_punctuation("]") is not None:
            return items
        items.append(_parse_literal(parser))
        while parser.parse_optional_punctuation(",") is not None:
            items.append(_parse_literal(parser))
        parser.parse_punctuation("]")
        return items
    flag = parser.parse_optional_boolean()
    if flag is not None:
        return flag
    start = parser.pos
    value = parser.parse_number()
    hexadecimal = _HEX.match(parser.lexer.input.content, start)
    return hexadecimal[0].replace(" ", "") if hexadecimal else value


def _from_literal(parser: AttrParser, literal: Literal, kind: TensorType[Attribute]) -> ConstantData:
    element, shape = kind.element_type, kind.get_shape()
    dtype = numpy_dtype(element)
    if not isinstance(literal, list):
        _spend(parser, math.prod(shape) * dtype.itemsize)
        return ConstantData(np.full(shape, _convert(literal, element, dtype), dtype), element)
    found = _shape(literal)
    if found != shape and not (0 in found and 0 in shape):
        raise VerifyException(f"constant of shape {list(found)} cannot have type {kind}")
    flat = [_convert(item, element, dtype) for item in _flatten(literal)]
    return ConstantData(np.array(flat, dtype).reshape(shape), element)


def _from_hex(parser: AttrParser, text: str, kind: TensorType[Attribute]) -> ConstantData:
    flat, shape = array_of_hex(text, kind), kind.get_shape()
    if flat.size == 1 and math.prod(shape) > 1:
        _spend(parser, math.prod(shape) * flat.itemsize)
        return ConstantData(np.full(shape, flat[0], flat.dtype), kind.element_type)
    if math.prod(shape) == 0:
        flat = flat[:0]
    return ConstantData(flat.reshape(shape), kind.element_type)


def _spend(parser: AttrParser, size: int) -> None:
    """Count the bytes of a splat, of which a few characters can ask for any number."""
    total = cast(int, getattr(parser, "splat_bytes", 0)) + size
    if total > MAX_SPLAT_BYTES:
        raise VerifyException(
            f"splat constants of {total} bytes, more than the {MAX_SPLAT_BYTES} allowed: "
            "keep large ones in a sidecar file"
        )
    setattr(parser, "splat_bytes", total)  # noqa: B010


def _shape(literal: list[Literal]) -> tuple[int, ...]:
    inner = {_shape(item) if isinstance(item, list) else () for item in literal}
    if len(inner) > 1:
        raise VerifyException("ragged constant")
    return (len(literal), *(inner.pop() if inner else ()))


def _flatten(literal: Literal) -> list[Literal]:
    return [leaf for item in literal for leaf in _flatten(item)] if isinstance(literal, list) else [literal]


def _convert(item: Literal, element: Attribute, dtype: np.dtype[np.generic]) -> np.generic:
    if is_float(element):
        return _convert_float(item, element, dtype)
    low, high = integer_range(cast(IntegerType | IndexType, element))
    value = int(item, 16) if isinstance(item, str) else item
    if not isinstance(value, int) or not low <= value <= high or (isinstance(value, bool) and dtype.kind != "b"):
        raise VerifyException(f"{_show(item)} is not a value of {element} ({low} to {high})")
    return dtype.type(value)


def _convert_float(item: Literal, element: Attribute, dtype: np.dtype[np.generic]) -> np.generic:
    if isinstance(item, str):
        bits = int(item, 16)
        if not 0 <= bits < 1 << 8 * dtype.itemsize:
            raise VerifyException(f"{item} is no bit pattern of {element}")
        return np.array([bits], f"u{dtype.itemsize}").view(dtype)[0]
    if isinstance(item, bool | list):
        raise VerifyException(f"{_show(item)} is not a value of {element}")
    with np.errstate(over="ignore"):
        narrow = np.array([item], np.float32 if dtype.kind == "u" else dtype)
    if dtype.kind == "u":
        bits = narrow.view(np.uint32)
        narrow = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if not np.isfinite((narrow.astype(np.uint32) << 16).view(np.float32) if dtype.kind == "u" else narrow).all():
        raise VerifyException(f"{item} is beyond the range of {element}")
    return narrow[0]


def _show(item: Literal) -> str:
    return str(item).lower() if isinstance(item, bool) else str(item)
