# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers and bytes as C text, millions of them in a second.

Every element becomes a row of a byte matrix that holds its text and zeros for unused columns; the zeros are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from qcomp.dialects.constant import Array

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
_CHUNK = 1 << 18
"""Elements that are turned into text at once."""
_LINE = 96
"""Columns of a line without its indentation."""


def decimal_lines(array: Array) -> Iterator[bytes]:
    """Integers as decimals with a comma behind each. The least int32 and int64 are differences: C has no literal."""
    width = {1: 5, 2: 7, 4: 17, 8: 29}[array.dtype.itemsize]
    for part in _parts(array):
        yield _lines(_decimals(part, width))


def float_lines(array: Array) -> Iterator[bytes]:
    """Hexadecimal floats, which give back every bit; NaN and infinities by the names of math.h."""
    if array.dtype == np.float64:
        for value in array.reshape(-1).tolist():
            yield b"  %s,\n" % _double(value)
        return
    for part in _parts(array):
        yield _lines(_hex_floats(part.astype(np.float32, copy=False)))


def _double(value: float) -> bytes:
    if math.isfinite(value):
        return value.hex().encode()
    return b"NAN" if math.isnan(value) else b"INFINITY" if value > 0 else b"-INFINITY"


def string_lines(data: Bytes) -> Iterator[bytes]:
    """Bytes as one initializer: string literals that the compiler joins, one a line, and a comma."""
    text = _lines(_ESCAPES[data], b'  "', b'"\n')
    yield text[:-1] + b",\n"


def _parts(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for begin in range(0, flat.size, _CHUNK):
        yield flat[begin : begin + _CHUNK]


def _lines(texts: Bytes, before: bytes = b"  ", after: bytes = b"\n") -> bytes:
    """Join the texts of elements to lines, each between `before` and `after`."""
    count, width = texts.shape
    per_line = _LINE // width
    whole = count // per_line
    pieces = [_block(texts[: whole * per_line].reshape(whole, per_line * width), before, after)]
    if whole * per_line < count:
        pieces.append(_block(texts[whole * per_line :].reshape(1, -1), before, after))
    return b"".join(pieces)


def _block(rows: Bytes, before: bytes, after: bytes) -> bytes:
    ends = [np.broadcast_to(np.frombuffer(text, np.uint8), (len(rows), len(text))) for text in (before, after)]
    flat = np.concatenate([ends[0], rows, ends[1]], axis=1).reshape(-1)
    return flat[flat != 0].tobytes()


def _table(texts: list[bytes], width: int) -> Bytes:
    return np.frombuffer(b"".join(text.ljust(width, b"\0") for text in texts), np.uint8).reshape(len(texts), width)


def _escape(value: int) -> bytes:
    """A byte within a string literal. Octal escapes end after three digits; question marks could form trigraphs."""
    plain = 32 <= value < 127 and chr(value) not in '"\\?'
    return bytes([value]) if plain else b"\\%03o" % value


_ESCAPES = _table([_escape(value) for value in range(256)], 4)
_BYTE_DECIMALS = _table([b"%d," % (value - 256 * (value > 127)) for value in range(256)], 5)


def _decimals(part: Array, width: int) -> Bytes:
    if part.dtype == np.int8:
        return _BYTE_DECIMALS[part.view(np.uint8)]
    texts = np.asarray([_decimal(int(value)) for value in part.tolist()], dtype=f"S{width}")
    return texts.view(np.uint8).reshape(part.size, width)


def _decimal(value: int) -> bytes:
    if value == -(2**31):
        return b"-2147483647-1,"
    if value == -(2**63):
        return b"-9223372036854775807LL-1,"
    return b"%d%s," % (value, b"LL" if abs(value) >= 2**31 else b"")


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_EXPONENTS = _table([b"p%df," % (max(code, 1) - 127) for code in range(255)] + [b""], 7)
_SPECIAL = {"zero": b"0.0f,", "inf": b"INFINITY,", "nan": b"NAN,"}


def _hex_floats(part: Array) -> Bytes:
    """``-0x1.abcdefp-12f,``: sign, leading digit (0 for subnormals), 23 bits of fraction as 6 digits, exponent."""
    bits = np.ascontiguousarray(part).view(np.uint32)
    code = (bits >> 23) & 0xFF
    texts: Bytes = np.zeros((part.size, 19), np.uint8)
    texts[:, 0] = np.where(bits >> 31, ord("-"), 0)
    texts[:, 1:5] = np.frombuffer(b"0x1.", np.uint8)
    texts[:, 3] = np.where(code == 0, ord("0"), ord("1"))
    fraction = (bits & 0x7FFFFF) << 1
    for digit in range(6):
        texts[:, 5 + digit] = _HEX[(fraction >> (20 - 4 * digit)) & 0xF]
    texts[:, 11:18] = _EXPONENTS[code]
    masks = {"zero": (bits & 0x7FFFFFFF) == 0, "inf": np.isinf(part), "nan": np.isnan(part)}
    for kind, mask in masks.items():
        texts[mask, 1:] = np.frombuffer(_SPECIAL[kind].ljust(18, b"\0"), np.uint8)
    return texts
