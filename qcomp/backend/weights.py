# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The constants of an emitted program, in two spellings that give the same bits under the same symbols.

Beside a library that is built here and now they are a binary file that the assembler includes: nothing to parse. In
saved sources they are C99. How a compiler digests them decides the spelling: a number costs gcc about a microsecond
and a hundred bytes of memory, a byte in a string literal next to nothing. So the first kilobytes are numbers,
everything beyond is strings, in rows short enough for the limits that C99 grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from qcomp.backend.emit_c.program import numpy_c_type
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.backend.weight_text import decimal_lines, float_lines, string_lines
from qcomp.dialects.constant import Array

NUMBERS_LIMIT = 256 * 1024
"""Elements that are spelled as numbers; constants beyond are spelled as strings."""
ROW = 2048
"""Bytes of one string literal; C99 grants 4095."""


@dataclass(frozen=True)
class AssemblerWeights:
    """NAME.bin and the assembler source that includes it."""

    data: bytes
    source: str


def assembler_weights(name: str, constants: Mapping[str, Array]) -> AssemblerWeights:
    """`constants` for the GNU assembler on ELF systems of this machine's byte order. `name`: of the .bin file."""
    pieces: list[bytes] = []
    # Without a name of its own the assembler's temporary file would be in the library.
    lines = [f'  .file "{name}_weights.S"', "  .section .rodata", f"  .balign {ARENA_ALIGNMENT}"]
    lines += ["weights:", f'  .incbin "{name}.bin"']
    offset = 0
    for symbol, array in constants.items():
        lines += [f"  .globl {symbol}", f"  .set {symbol}, weights + {offset}"]
        lines += [f"  .type {symbol}, %object", f"  .size {symbol}, {array.nbytes}"]
        room = -(-max(array.nbytes, 1) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        pieces += [array.tobytes(), bytes(room - array.nbytes)]
        offset += room
    lines.append('  .section .note.GNU-stack,"",%progbits')
    return AssemblerWeights(b"".join(pieces), "\n".join(lines) + "\n")


def c_weights(name: str, constants: Mapping[str, Array]) -> Iterator[bytes]:
    """The pieces of NAME_weights.c. Lines are at most 100 columns."""
    numbers, strings = _spellings(constants)
    yield _head(name, numbers.values(), strings.values()).encode()
    for symbol, array in constants.items():
        yield b"\n"
        if symbol in numbers:
            yield f"ALIGNED const {numpy_c_type(array)} {symbol}[{max(array.size, 1)}] = {{\n".encode()
            yield from number_lines(array if array.size else np.zeros(1, array.dtype))
        else:
            kind = "int8_t" if array.dtype == np.int8 else "unsigned char"
            yield f"ALIGNED const {kind} {symbol}[{-(-array.nbytes // ROW)}][{ROW}] = {{\n".encode()
            yield from _rows(array)
        yield b"};\n"


def number_lines(array: Array) -> Iterator[bytes]:
    """The elements of `array` as lines of C initializers: decimals, or hexadecimal floats."""
    return float_lines(array) if array.dtype.kind == "f" else decimal_lines(array)


def needs_math_h(arrays: Iterable[Array]) -> bool:
    """Whether `number_lines` writes INFINITY or NAN for one of `arrays`."""
    return any(array.dtype.kind == "f" and not np.isfinite(array.astype(np.float32)).all() for array in arrays)


def _spellings(constants: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Small constants, spelled as numbers, and large ones; the smallest come first into the budget of numbers."""
    numbers: dict[str, Array] = {}
    budget = NUMBERS_LIMIT
    for symbol, array in sorted(constants.items(), key=lambda item: item[1].size):
        budget -= array.size
        if budget < 0 and array.nbytes > ROW:
            break
        numbers[symbol] = array
    return numbers, {symbol: array for symbol, array in constants.items() if symbol not in numbers}


def _head(name: str, numbers: Iterable[Array], strings: Iterable[Array]) -> str:
    strings = list(strings)
    include = "#include <math.h>\n" if needs_math_h(numbers) else ""
    text = f"""\
/* The weights of {name}. Made by qcomp. */
{include}#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ALIGNED __attribute__((aligned({ARENA_ALIGNMENT})))
#elif defined(_MSC_VER)
#define ALIGNED __declspec(align({ARENA_ALIGNMENT}))
#else
#define ALIGNED
#endif
"""
    if any(array.dtype != np.int8 for array in strings):
        text += """
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these weights hold numbers as little-endian bytes"
#endif
"""
    if strings:
        text += """
/* Rows are bytes without a terminator. */
#if defined(__clang__) ? __clang_major__ >= 21 : defined(__GNUC__) && __GNUC__ >= 15
#pragma GCC diagnostic ignored "-Wunterminated-string-initialization"
#endif
"""
    return text


def _rows(array: Array) -> Iterator[bytes]:
    """Rows of string literals that hold the little-endian bytes of `array`."""
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = np.ascontiguousarray(little).reshape(-1).view(np.uint8)
    for begin in range(0, data.size, ROW):
        yield from string_lines(data[begin : begin + ROW])
