# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's type promotion (``torch.result_type``), on dtype names.

Only the highest category present counts (bool < integer < float), and within it tensors with dimensions come before
0-d tensors, and those before Python numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError

_SIGNED = ("int8", "int16", "int32", "int64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
DEFAULT_FLOAT = "float32"
"""torch's default dtype; torch.set_default_dtype is not recorded in an export."""


@dataclass(frozen=True)
class Operand:
    """What promotion needs to know of an operand: its dtype and its priority (0 number, 1 0-d tensor, 2 tensor)."""

    dtype: str
    priority: int


def of_tensor(dtype: str, rank: int) -> Operand:
    """The operand for a tensor."""
    return Operand(dtype, 2 if rank else 1)


def of_number(value: bool | int | float) -> Operand:
    """The operand for a Python number, or for a size that depends on symbols."""
    whole = isinstance(value, int) or is_symbolic(value)
    return Operand("bool" if isinstance(value, bool) else "int64" if whole else DEFAULT_FLOAT, 0)


def category(dtype: str) -> int:
    """0 bool, 1 integer, 2 float. Raises QcompError for complex and 8-bit floats."""
    if dtype == "bool":
        return 0
    if dtype in _FLOATS:
        return 2
    if dtype.removeprefix("u") in _SIGNED:
        return 1
    raise QcompError(f"arithmetic on {dtype} is not supported", code="unsupported-dtype")


def promote_pair(left: str, right: str) -> str:
    """The smallest dtype that holds both, as torch defines it (half and bfloat16 meet in float32)."""
    if left == right:
        return left
    low, high = sorted((left, right), key=category)
    if category(low) != category(high):
        return high
    if category(left) == 2:
        return "float32" if {left, right} == {"float16", "bfloat16"} else max(left, right, key=_FLOATS.index)
    unsigned = [dtype for dtype in (left, right) if dtype.startswith("u")]
    if not unsigned:
        return max(left, right, key=_SIGNED.index)
    if unsigned == ["uint8"]:
        signed = right if left == "uint8" else left
        return max(signed, "int16", key=_SIGNED.index)
    raise QcompError(f"torch does not promote {left} with {right}", code="unsupported-dtype")


def result_type(operands: Iterable[Operand]) -> str:
    """The dtype torch computes with. Raises QcompError when torch has no rule or qcomp no such arithmetic."""
    found = list(operands)
    by_priority: list[str | None] = [None, None, None]
    for operand in found:
        known = by_priority[operand.priority]
        by_priority[operand.priority] = operand.dtype if known is None else promote_pair(known, operand.dtype)
    number, scalar, tensor = by_priority
    result = _combine(_combine(tensor, scalar), number)
    if result is None:
        raise QcompError("an op without operands", code="malformed-graph")
    return result


def _combine(higher: str | None, lower: str | None) -> str | None:
    """The operand of higher priority decides, unless the lower one is of a higher category."""
    if higher is None or lower is None:
        return higher or lower
    return promote_pair(higher, lower) if category(lower) > category(higher) else higher
