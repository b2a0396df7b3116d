# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types and the numpy dtypes that hold them.

Signless integers are two's complement signed, ``ui8`` and its like unsigned, ``i1`` is bool. numpy has no bfloat16:
it is held as the ``uint16`` bit pattern.
"""

from __future__ import annotations

from typing import TypeGuard, cast

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute

from qcomp.errors import QcompError

ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)

_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "float16",
    Float32Type: "float32",
    Float64Type: "float64",
    BFloat16Type: "uint16",
}
_FLOAT_TYPES: dict[str, Attribute] = {"float16": f16, "float32": f32, "float64": f64, "bfloat16": bf16}


def numpy_dtype(element: Attribute) -> np.dtype[np.generic]:
    """The numpy dtype that holds elements of type `element`. Raises QcompError for types without one."""
    if type(element) in _FLOATS:
        return np.dtype(_FLOATS[type(element)])
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, IntegerType):
        kind = cast(IntegerType, element)
        width = kind.width.data
        if width == 1:
            return np.dtype(np.bool_)
        unsigned = kind.signedness.data == Signedness.UNSIGNED
        storage = next((bits for bits in (8, 16, 32, 64) if bits >= width), None)
        if storage is not None:
            return np.dtype(f"{'u' if unsigned else ''}int{storage}")
    raise QcompError(f"no numpy dtype holds elements of type {element}", code="element-type")


def element_type(dtype: np.dtype[np.generic] | str) -> Attribute:
    """The element type of a numpy dtype (or of the name ``bfloat16``). Raises QcompError for others."""
    name = dtype if isinstance(dtype, str) else dtype.name
    if name in _FLOAT_TYPES:
        return _FLOAT_TYPES[name]
    if name == "bool":
        return IntegerType(1)
    kind = Signedness.UNSIGNED if name.startswith("uint") else Signedness.SIGNLESS
    digits = name.removeprefix("u").removeprefix("int")
    if digits in ("8", "16", "32", "64"):
        return IntegerType(int(digits), kind)
    raise QcompError(f"arrays of dtype {name} have no element type", code="element-type")


def is_float(element: Attribute) -> bool:
    """Whether `element` is one of f16, bf16, f32, f64."""
    return type(element) in _FLOATS


def is_integer(element: Attribute) -> TypeGuard[IntegerType]:
    """Whether `element` is an integer or truth value."""
    return isinstance(element, IntegerType)


def is_unsigned(element: IntegerType) -> bool:
    """Whether bits above those stored are 0: of unsigned integers and truth values."""
    return element.signedness.data == Signedness.UNSIGNED or element.width.data == 1


def integer_range(element: IntegerType | IndexType) -> tuple[int, int]:
    """Smallest and largest value of an integer element type; an index is held in 64 bits."""
    if isinstance(element, IndexType):
        return -(2**63), 2**63 - 1
    width = element.width.data
    if width == 1:
        return 0, 1
    if element.signedness.data == Signedness.UNSIGNED:
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1
