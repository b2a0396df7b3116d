# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The constants of an emitted program, in two spellings that give the same bits under the same symbols.

Binary: their bytes one after the other in NAME_weights.bin, and NAME_weights.S, which the GNU assembler (so gcc and
clang) takes for a source and which includes them: nothing to parse, and no larger than the weights. Text: C99 that any
compiler reads, three to four times as large. How a compiler digests text decides its spelling: a number costs gcc about
a microsecond and a hundred bytes of memory, a byte in a string literal next to nothing. So the first kilobytes are
numbers, everything beyond is strings, in rows short enough for the limits that C99 grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from qcomp.backend.build import WeightForm
from qcomp.backend.emit_c.program import numpy_c_type
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.backend.weight_text import decimal_lines, float_lines, string_lines
from qcomp.dialects.constant import Array
from qcomp.dialects.spool import write_array

NUMBERS_LIMIT = 256 * 1024
"""Elements that are spelled as numbers; constants beyond are spelled as strings."""
ROW = 2048
"""Bytes of one string literal; C99 grants 4095."""


TEXT_LIMIT = 256 * 1024
"""Bytes of weights up to which text is saved unless something else is asked for."""


def write_weights(folder: Path, name: str, constants: Mapping[str, Array], form: WeightForm) -> list[str]:
    """Write the files of `constants`, and return the names of those that are compiled: none without constants.

    form: "auto" is text up to `TEXT_LIMIT`.
    """
    if not constants:
        return []
    if form == "text" or (form == "auto" and sum(array.nbytes for array in constants.values()) <= TEXT_LIMIT):
        with open(folder / f"{name}_weights.c", "wb") as file:
            file.writelines(c_weights(name, constants))
        return [f"{name}_weights.c"]
    with open(folder / f"{name}_weights.bin", "wb") as file:
        for array in constants.values():
            write_array(_little(array), file)
    (folder / f"{name}_weights.S").write_text(assembler_weights(name, constants))
    return [f"{name}_weights.S"]


def assembler_weights(name: str, constants: Mapping[str, Array]) -> str:
    """Return NAME_weights.S: a symbol for each range of NAME_weights.bin."""
    # Without a name of its own the assembler's temporary file would be in the library.
    lines = [_ASSEMBLER_HEAD.format(name=name, upper=name.upper())]
    offset = 0
    for symbol, array in constants.items():
        content = f".incbin {name.upper()}_WEIGHTS_BIN, {offset}, {array.nbytes}" if array.nbytes else ".byte 0"
        lines.append(f"  .balign {ARENA_ALIGNMENT}\nBEGIN({symbol})\n  {content}\nEND({symbol}, {array.nbytes})\n")
        offset += array.nbytes
    return "".join([*lines, f"  .balign {ARENA_ALIGNMENT}\n"])


_ASSEMBLER_HEAD = """\
/* The weights of {name}, out of {name}_weights.bin, which the assembler looks for where it runs and in the folders of
   -I; or define {upper}_WEIGHTS_BIN as a path in quotes. Made by qcomp. */
#ifndef {upper}_WEIGHTS_BIN
#define {upper}_WEIGHTS_BIN "{name}_weights.bin"
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these weights hold numbers as little-endian bytes: save them as text"
#endif

#if defined(__APPLE__) || (defined(_WIN32) && defined(__i386__))
#define SYMBOL(name) _##name
#else
#define SYMBOL(name) name
#endif
#define BEGIN(name) .globl SYMBOL(name); SYMBOL(name):
#if defined(__APPLE__)
#define END(name, bytes)
  .section __TEXT,__const
#elif defined(_WIN32)
#define END(name, bytes)
  .section .rdata,"dr"
#else
#define END(name, bytes) .type SYMBOL(name), %object; .size SYMBOL(name), bytes
  .file "{name}_weights.S"
  .section .note.GNU-stack,"",%progbits
  .section .rodata
#endif
"""


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
    data = np.ascontiguousarray(_little(array)).reshape(-1).view(np.uint8)
    for begin in range(0, data.size, ROW):
        yield from string_lines(data[begin : begin + ROW])


def _little(array: Array) -> Array:
    """The numbers of `array` in little-endian order; the array itself where that is the machine's."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)
