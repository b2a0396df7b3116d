# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NAME_selftest.c: a program that runs a compiled model on made-up inputs and counts outputs that are not as expected.

The inputs are not stored: a hash of the element's index makes them, here and in C alike, so that even a large model's
self-test is small. Expected outputs are stored, up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from qcomp.backend.interface import Port
from qcomp.backend.target import ARENA_ALIGNMENT
from qcomp.backend.weights import needs_math_h, number_lines
from qcomp.dialects.constant import Array
from qcomp.errors import QcompError

STORED_BYTES = 1 << 20
"""Expected outputs beyond are not checked."""
_INDEX_RANGE = (0, 9)
"""Integers of 32 and 64 bits are indices: small ones, which every table has."""
_C_TYPES = {
    "float32": "float", "int8": "int8_t", "uint8": "int8_t", "bool": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t",
}  # fmt: skip

_PRELUDE = """\
/* Runs {name} on made-up inputs. The exit code is the number of outputs that are not as expected, at most 255.{note}
   Made by qcomp. */
{includes}#include <stdint.h>
#include <stdio.h>

#include "{name}.h"

/* A number for each index; inputs are made of it. */
static uint32_t noise(uint32_t i) {{
  i = i * 2654435761u + 374761393u;
  i = (i ^ (i >> 15)) * 2246822519u;
  i = (i ^ (i >> 13)) * 3266489917u;
  return i ^ (i >> 16);
}}
"""
_SAME = {
    "exact": """\
static int differs(float got, float expected) {
  return got != expected && (got == got || expected == expected);
}
""",
    "near": """\
/* Sums of floats were not made in the order of this program. */
static int differs(float got, float expected) {
  const float off = got > expected ? got - expected : expected - got;
  const float size = expected < 0.0f ? -expected : expected;
  return !(off <= 1e-4f * (size + LARGEST)) && (got == got || expected == expected);
}
""",
}


def made_up_input(index: int, port: Port) -> Array:
    """Input number `index` of the self-test: floats from -2 to 2, codes and small integers over their range."""
    count = int(np.prod(port.shape, dtype=np.int64))
    i = np.arange(count, dtype=np.uint32) + np.uint32(_seed(index))
    i = i * np.uint32(2654435761) + np.uint32(374761393)
    i = (i ^ (i >> np.uint32(15))) * np.uint32(2246822519)
    i = (i ^ (i >> np.uint32(13))) * np.uint32(3266489917)
    noise = i ^ (i >> np.uint32(16))
    if port.dtype == "float32":
        values: Array = (noise >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-22) - np.float32(2)
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
        if port.dtype not in _C_TYPES:
            raise QcompError(
                f"{port.name} is of {port.dtype}: artifacts with such inputs or outputs are not saved",
                code="unsupported-type", hint="cast to float32 where the model begins and ends",
            )  # fmt: skip
    stored = [array.reshape(-1)[: _stored(index, expected)] for index, array in enumerate(expected)]
    yield _head(name, stored, expected, bool(sizes)).encode()
    if any(array.dtype.kind == "f" for array in stored):
        macro = "" if exact else f"\n#define LARGEST {_largest(stored).hex()}f\n"
        yield f"{macro}\n{_SAME['exact' if exact else 'near']}".encode()
    yield b"\n"
    for index, port in enumerate(inputs):
        yield f"static {_C_TYPES[port.dtype]} in{index}[{_count(port)}];\n".encode()
    for index, port in enumerate(outputs):
        yield f"static {_C_TYPES[port.dtype]} out{index}[{_count(port)}];\n".encode()
        yield f"static const {_C_TYPES[port.dtype]} expected{index}[{max(stored[index].size, 1)}] = {{\n".encode()
        array = stored[index] if stored[index].size else np.zeros(1, port.dtype)
        yield from number_lines(array.view(np.int8) if array.dtype.kind in "ub" else array)
        yield b"};\n"
    yield _main(name, inputs, stored, stateful, sizes).encode()


def _largest(arrays: Sequence[Array]) -> float:
    floats = [array.astype(np.float32) for array in arrays if array.dtype.kind == "f"]
    return max(float(np.abs(array[np.isfinite(array)]).max(initial=0)) for array in floats)


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


def _head(name: str, stored: Sequence[Array], expected: Sequence[Array], allocates: bool) -> str:
    kept, whole = (sum(array.size for array in arrays) for arrays in (stored, expected))
    note = f"\n   Only the first {kept} of {whole} outputs are checked." if kept < whole else ""
    includes = "#include <math.h>\n" * needs_math_h(stored) + "#include <stdlib.h>\n" * allocates
    return _PRELUDE.format(name=name, note=note, includes=includes)


def _main(name: str, inputs: Sequence[Port], stored: Sequence[Array], stateful: bool, sizes: Sequence[int]) -> str:
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
    for index, array in enumerate(stored):
        if array.size:
            call = f"differs(out{index}[i], expected{index}[i])"
            test = call if array.dtype.kind == "f" else f"out{index}[i] != expected{index}[i]"
            lines.append(f"  for (i = 0; i < {array.size}u; ++i) if ({test}) ++wrong;")
    total = sum(array.size for array in stored)
    lines.append(f'  printf("{name}: %lu of {total} outputs are not as expected\\n", wrong);')
    return "\n".join([*lines, "  return wrong > 255 ? 255 : (int)wrong;", "}", ""])


def _made_up(index: int, port: Port) -> str:
    noise = f"noise(i + {_seed(index)}u)"
    if port.dtype == "float32":
        return f"(float)(int32_t)({noise} >> 8) * 0x1p-22f - 2.0f"
    low, high = _range(port)
    return f"({_C_TYPES[port.dtype]})({low} + (int32_t)({noise} % {high - low + 1}u))"
