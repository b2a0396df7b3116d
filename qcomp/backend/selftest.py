# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NAME_selftest.c: a program that runs a compiled model on made-up inputs and counts outputs that are not as expected.

The inputs are not stored: a hash of the element's index makes them, here and in C alike, so that even a large model's
self-test is small. Expected outputs are stored, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import bf16, f16
from xdsl.ir import Attribute

from qcomp.backend.emit_c.prelude import helpers, needs_memcpy
from qcomp.backend.interface import Port
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.backend.weights import needs_math_h, number_lines
from qcomp.dialects.constant import Array
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import narrow, widen

STORED_BYTES = 1 << 20
"""Expected outputs beyond are not checked."""
_INDEX_RANGE = (0, 9)
"""Integers of 32 and 64 bits are indices: small ones, which every table has."""
_C_TYPES = {
    "float32": "float", "int8": "int8_t", "uint8": "int8_t", "bool": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint16": "int16_t", "float64": "double", "float16": "int16_t", "bfloat16": "int16_t",
}  # fmt: skip
_HALVES: dict[str, Attribute] = {"float16": f16, "bfloat16": bf16}
_NEAR = {"float32": "1e-4", "float64": "1e-11", "float16": "0x1p-9", "bfloat16": "0x1p-6"}
"""Floats: by what share of themselves and the largest they may differ where sums have another order."""

_PRELUDE = """\
/* Runs {name} on made-up inputs. The exit code is the number of outputs that are not as expected, at most 255.{note}
   Made by qcomp. */
{includes}#include <stdint.h>
#include <stdio.h>

#include "{name}.h"

{helpers}/* A number for each index; inputs are made of it. */
static uint32_t noise(uint32_t i) {{
  i = i * 2654435761u + 374761393u;
  i = (i ^ (i >> 15)) * 2246822519u;
  i = (i ^ (i >> 13)) * 3266489917u;
  return i ^ (i >> 16);
}}
"""
_SAME = {
    "exact": """\
static int differs(REAL got, REAL expected) {
  return got != expected && (got == got || expected == expected);
}
""",
    "near": """\
/* Sums of floats were not made in the order of this program. */
static int differs(REAL got, REAL expected, REAL share) {
  const REAL off = got > expected ? got - expected : expected - got;
  const REAL size = expected < 0 ? -expected : expected;
  return !(off <= share * (size + LARGEST)) && (got == got || expected == expected);
}
""",
}


def made_up_input(index: int, port: Port) -> Array:
    """Input number `index` of the self-test: floats from -2 to 2, codes and small integers over their range.

    Floats of 16 bits are multiples of 1/64.
    """
    count = int(np.prod(port.shape, dtype=np.int64))
    i = np.arange(count, dtype=np.uint32) + np.uint32(_seed(index))
    i = i * np.uint32(2654435761) + np.uint32(374761393)
    i = (i ^ (i >> np.uint32(15))) * np.uint32(2246822519)
    i = (i ^ (i >> np.uint32(13))) * np.uint32(3266489917)
    noise = i ^ (i >> np.uint32(16))
    if _kind(port) in _HALVES:
        values: Array = (noise % np.uint32(256)).astype(np.float32) * np.float32(2.0**-6) - np.float32(2)
        values = narrow(values, _HALVES[_kind(port)])
    elif port.dtype in ("float32", "float64"):
        values = ((noise >> np.uint32(8)).astype(np.float64) * 2.0**-22 - 2.0).astype(port.dtype)
    else:
        low, high = _range(port)
        values = (low + (noise % np.uint32(high - low + 1)).astype(np.int64)).astype(port.dtype)
    return values.reshape(port.shape)


def selftest_source(
    name: str, inputs: Sequence[Port], outputs: Sequence[Port], expected: Sequence[Array], exact: bool,
    stateful: bool = False, sizes: Sequence[int] = (),
) -> Iterator[bytes]:  # fmt: skip
    """The pieces of NAME_selftest.c. `exact`: floats are compared by value, else within 1e-4 of the largest.

    sizes: what the symbols are in this test.
    """
    for port in (*inputs, *outputs):
        if _kind(port) not in _C_TYPES:
            raise QcompError(
                f"{port.name} is of {_kind(port)}: artifacts with such inputs or outputs are not saved",
                code="unsupported-type", hint="cast to float32 where the model begins and ends",
            )  # fmt: skip
    stored = [array.reshape(-1)[: _stored(index, expected)] for index, array in enumerate(expected)]
    main = _main(name, inputs, outputs, stored, exact, stateful, sizes)
    yield _head(name, stored, expected, bool(sizes), [main]).encode()
    kinds = {_kind(port) for port in outputs}
    if any(_kind(port) in _NEAR and array.size for port, array in zip(outputs, stored, strict=True)):
        real = "double" if "float64" in kinds else "float"
        largest = _largest(outputs, stored).hex() + ("" if real == "double" else "f")
        macros = f"\n#define REAL {real}\n" + ("" if exact else f"#define LARGEST {largest}\n")
        yield f"{macros}\n{_SAME['exact' if exact else 'near']}".encode()
    yield b"\n"
    for index, port in enumerate(inputs):
        yield f"static {_C_TYPES[_kind(port)]} in{index}[{_count(port)}];\n".encode()
    for index, port in enumerate(outputs):
        yield f"static {_C_TYPES[_kind(port)]} out{index}[{_count(port)}];\n".encode()
        if stored[index].size:
            yield f"static const {_C_TYPES[_kind(port)]} expected{index}[{stored[index].size}] = {{\n".encode()
            yield from number_lines(_as_it_lies(stored[index]))
            yield b"};\n"
    yield main.encode()


def _kind(port: Port) -> str:
    return port.element or port.dtype


def _as_it_lies(array: Array) -> Array:
    """Signed integers, float32 or float64."""
    return array.view(f"i{array.itemsize}") if array.dtype.kind in "ub" or array.itemsize == 2 else array


def _largest(ports: Sequence[Port], arrays: Sequence[Array]) -> float:
    """The largest size of a float."""
    found = 0.0
    for port, array in zip(ports, arrays, strict=True):
        if _kind(port) in _NEAR:
            real = widen(array, _HALVES[_kind(port)]) if _kind(port) in _HALVES else array
            finite = real.astype(np.float64)
            found = max(found, float(np.abs(finite[np.isfinite(finite)]).max(initial=0)))
    return float(np.float32(found))


def _seed(index: int) -> int:
    return (index * 1000003) & 0xFFFFFFFF


def _range(port: Port) -> tuple[int, int]:
    return _INDEX_RANGE if port.dtype in ("int32", "int64") else (port.low, port.high)


def _count(port: Port) -> int:
    return max(int(np.prod(port.shape, dtype=np.int64)), 1)


def _stored(index: int, expected: Sequence[Array]) -> int:
    """How many elements of an output are stored: what earlier ones leave of the limit."""
    room = STORED_BYTES - sum(array.nbytes for array in expected[:index])
    return max(0, min(expected[index].size, room // expected[index].itemsize))


def _head(name: str, stored: Sequence[Array], expected: Sequence[Array], allocates: bool, text: Sequence[str]) -> str:
    kept, whole = (sum(array.size for array in arrays) for arrays in (stored, expected))
    note = f"\n   Only the first {kept} of {whole} outputs are checked." if kept < whole else ""
    floats = [array for array in stored if array.itemsize > 2]
    includes = "#include <math.h>\n" * needs_math_h(floats) + "#include <stdlib.h>\n" * allocates
    called = helpers(text)
    includes += "#include <string.h>\n" * needs_memcpy(called)
    return _PRELUDE.format(name=name, note=note, includes=includes, helpers=f"{called}\n" if called else "")


def _main(
    name: str, inputs: Sequence[Port], outputs: Sequence[Port], stored: Sequence[Array], exact: bool, stateful: bool,
    sizes: Sequence[int],
) -> str:  # fmt: skip
    upper = name.upper()
    numbers = [str(size) for size in sizes]
    memory = [f"static unsigned char memory[{upper}_ARENA_SIZE + {ARENA_ALIGNMENT}];", "", "int main(void) {"]
    if sizes:
        bytes_ = f"(size_t){name}_arena_size({', '.join(numbers)}) + {ARENA_ALIGNMENT}"
        memory = ["int main(void) {", f"  unsigned char *memory = malloc({bytes_});"]
    lines = [
        "",
        *memory,
        f"  unsigned char *arena = memory + ({ARENA_ALIGNMENT} - (uintptr_t)memory % {ARENA_ALIGNMENT});",
        "  unsigned long wrong = 0;",
    ]
    if stateful:
        lines.insert(2, f"static unsigned char kept[{upper}_STATE_SIZE + {ARENA_ALIGNMENT}];")
        lines.insert(-1, f"  void *state = kept + ({ARENA_ALIGNMENT} - (uintptr_t)kept % {ARENA_ALIGNMENT});")
    if inputs or any(array.size for array in stored):
        lines.append("  uint32_t i;")
    for index, port in enumerate(inputs):
        if 0 not in port.shape:
            lines.append(f"  for (i = 0; i < {_count(port)}u; ++i) in{index}[i] = {_made_up(index, port)};")
    arguments = [f"in{index}" for index in range(len(inputs))] + [f"out{index}" for index in range(len(stored))]
    if sizes:
        lines.append("  if (memory == NULL) return 255;")
    if stateful:
        lines.append(f"  {name}_init(state);")
    lines.append(f"  {name}_run({', '.join([*numbers, *arguments, *(['state'] if stateful else []), 'arena'])});")
    for index, (port, array) in enumerate(zip(outputs, stored, strict=True)):
        if array.size:
            test = _test(index, _kind(port), exact, "f" * all(_kind(port) != "float64" for port in outputs))
            lines.append(f"  for (i = 0; i < {array.size}u; ++i) if ({test}) ++wrong;")
    total = sum(array.size for array in stored)
    lines.append(f'  printf("{name}: %lu of {total} outputs are not as expected\\n", wrong);')
    return "\n".join([*lines, "  return wrong > 255 ? 255 : (int)wrong;", "}", ""])


def _test(index: int, kind: str, exact: bool, suffix: str) -> str:
    """Whether element i of an output is not as expected; suffix: of literals."""
    sides = [f"out{index}[i]", f"expected{index}[i]"]
    if kind not in _NEAR:
        return " != ".join(sides)
    if kind in _HALVES:
        sides = [f"widen_{_HALVES[kind]}({side})" for side in sides]
    return f"differs({', '.join(sides if exact else [*sides, _NEAR[kind] + suffix])})"


def _made_up(index: int, port: Port) -> str:
    noise = f"noise(i + {_seed(index)}u)"
    if _kind(port) in _HALVES:
        return f"narrow_{_HALVES[_kind(port)]}((float)(int32_t)({noise} % 256u) * 0x1p-6f - 2.0f)"
    if port.dtype == "float32":
        return f"(float)(int32_t)({noise} >> 8) * 0x1p-22f - 2.0f"
    if port.dtype == "float64":
        return f"(int32_t)({noise} >> 8) * 0x1p-22 - 2.0"
    low, high = _range(port)
    return f"({_C_TYPES[_kind(port)]})({low} + (int32_t)({noise} % {high - low + 1}u))"
