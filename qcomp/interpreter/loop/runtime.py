# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled functions call: the arithmetic that numpy does not have in one expression, buffers, batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation

from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.loop.memory import ELEMENT_BYTES
from qcomp.errors import QcompError

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

PADDING = 64
"""Bytes behind every buffer: a read may run up to 63 bytes over the end."""

GARBAGE = 0xCD
"""What fresh memory holds, so that reading bytes nobody wrote shows."""


def element_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy dtype of scalars and tile elements; buffers hold the same, one byte for i1."""
    if not isinstance(element, IndexType) and str(element) not in ELEMENT_BYTES:
        raise QcompError(f"the loop level has no values of type {element}", code="element-type")
    return numpy_dtype(element)


def allocate(size: int) -> Bytes:
    """A buffer of `size` bytes full of garbage, with its padding."""
    return np.full(size + PADDING, GARBAGE, np.uint8)


def padded(array: Array) -> Bytes:
    """A buffer that starts with the bytes of `array`."""
    buffer = allocate(array.nbytes)
    buffer[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return buffer


def typed(buffer: Bytes, dtype: np.dtype[Any]) -> Array:
    """The whole elements of `buffer` seen as `dtype`."""
    return buffer[: buffer.size // dtype.itemsize * dtype.itemsize].view(dtype)


def spread(value: Array, shape: tuple[int, ...]) -> Array:
    """`value` repeated over the leading dimensions of `shape`."""
    result = np.empty(shape, value.dtype)
    result[...] = value
    return result


def spread_batch(value: Array, shape: tuple[int, ...]) -> Array:
    """`spread` where `value` has one more leading dimension, the batch, which stays in front."""
    count = value.shape[0]
    return spread(value.reshape(count, *(1,) * (len(shape) - value.ndim + 1), *value.shape[1:]), (count, *shape))


def widened(value: Array, size: int) -> Array:
    """`value` with zeros appended to its last dimension, up to `size`."""
    result = np.zeros((*value.shape[:-1], size), value.dtype)
    result[..., : value.shape[-1]] = value
    return result


ROUND_LIMIT = np.float32(2**22)
"""loop.round saturates here."""


def round_to_int(value: Array, nan: np.float32) -> Array:
    """float32 to int32: half to even, saturating at `ROUND_LIMIT`, NaN becomes `nan`."""
    finite = np.where(np.isnan(value), nan, value)
    return np.rint(np.minimum(np.maximum(finite, -ROUND_LIMIT), ROUND_LIMIT)).astype(np.int32)


def round_bounded(value: Array, op: Operation) -> Array:
    """float32 to int32, half to even. Raises QcompError when the promise |value| <= `ROUND_LIMIT` is broken."""
    kept = np.abs(value) <= ROUND_LIMIT
    if not kept.all():
        worst = np.asarray(value)[~kept].reshape(-1)[0]
        raise QcompError.at(op, f"loop.round promises bounded operands and got {worst}", code="broken-promise")
    return np.rint(value).astype(np.int32)


def clamp(value: Array, low: np.float32, high: np.float32) -> Array:
    """``x < low ? low : x``, then ``x > high ? high : x``: NaN and -0.0 stay."""
    value = np.where(value < low, low, value)
    return np.where(value > high, high, value)


def maximumf(lhs: Array, rhs: Array) -> Array:
    """IEEE 754-2019 maximum: NaN if either is, +0.0 above -0.0."""
    return np.where((lhs > rhs) | np.isnan(lhs) | ((lhs == rhs) & ~np.signbit(lhs)), lhs, rhs)


def minimumf(lhs: Array, rhs: Array) -> Array:
    """IEEE 754-2019 minimum: NaN if either is, -0.0 below +0.0."""
    return np.where((lhs < rhs) | np.isnan(lhs) | ((lhs == rhs) & np.signbit(lhs)), lhs, rhs)


def truncated_quotient(lhs: Any, rhs: Any) -> Any:
    """Integer division rounded towards zero."""
    quotient = lhs // rhs
    return quotient + ((quotient < 0) & (quotient * rhs != lhs))


def truncated_remainder(lhs: Any, rhs: Any) -> Any:
    """The remainder of `truncated_quotient`; it has the sign of `lhs`."""
    return lhs - truncated_quotient(lhs, rhs) * rhs


def sole(value: Array, op: Operation) -> Array:
    """The one element of a batch whose iterations all store to one place. Raises QcompError when there are more."""
    if value.shape[0] != 1:
        raise QcompError.at(op, "iterations of a parallel loop store to the same place", code="broken-promise")
    return value[0]


def written(found: Array, value: Array, op: Operation) -> None:
    """Raise QcompError unless all of a batch is where it was stored: some iteration overwrote another's element."""
    if found.tobytes() != np.broadcast_to(value, found.shape).tobytes():
        raise QcompError.at(
            op, "iterations of a parallel loop store different values to the same place", code="broken-promise"
        )


MAX_ITERATIONS = 1 << 20
"""Of one loop whose end depends on data."""


def endless(op: Operation) -> None:
    """Raise QcompError: a loop did not end."""
    raise QcompError.at(op, f"does not end within {MAX_ITERATIONS} iterations", code="endless")


def batches(ranges: Sequence[range], limit: int) -> Iterator[list[Array]]:
    """The product of `ranges` in row-major order, `limit` points at a time, as one array of values per range."""
    total = 1
    for item in ranges:
        total *= len(item)
    for begin in range(0, total, limit):
        rest = np.arange(begin, min(begin + limit, total))
        values: list[Array] = []
        for item in reversed(ranges):
            rest, place = np.divmod(rest, len(item))
            values.append(item.start + place * item.step)
        yield values[::-1]


NAMES = {
    "np": np, "nd": np.ndarray, "spread": spread, "spread_batch": spread_batch, "widened": widened, "typed": typed,
    "allocate": allocate, "round_to_int": round_to_int, "round_bounded": round_bounded, "clamp": clamp,
    "maximumf": maximumf, "minimumf": minimumf, "truncated_quotient": truncated_quotient,
    "truncated_remainder": truncated_remainder, "batches": batches, "sole": sole, "written": written,
    **{f"i{8 * size}": np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    **{f"u{8 * size}": np.dtype(f"u{size}") for size in (1, 2, 4, 8)},
    "endless": endless, "i1": np.dtype(bool), "f32": np.dtype("f4"), "f64": np.dtype("f8"),
}  # fmt: skip
"""The global names of compiled functions. ``i8`` and its like are dtypes, named as the element types are."""
