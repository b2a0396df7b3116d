# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a program as read-only numpy arrays, read when first needed.

bfloat16 and float8 have no numpy dtype: their arrays hold the bit patterns (uint16, uint8).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property

import numpy as np

from qcomp.errors import QcompError

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

_SAME = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_BITS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e8m0fnu": "uint8",
}
HOLDERS: dict[str, np.dtype[np.generic]] = {
    **{name: np.dtype(name) for name in _SAME},
    **{name: np.dtype(bits) for name, bits in _BITS.items()},
}
"""torch's dtype names -> the numpy dtype that holds them."""


class TensorData:
    """A tensor: torch's dtype name, shape, and an array made by `read` on first use.

    `read` returns an array of dtype ``HOLDERS[dtype]`` and of this shape, any strides. `identity` is equal for tensors
    that are the same memory seen the same way (tied weights); its first part names the memory. Compares by content.
    """

    def __init__(self, dtype: str, shape: tuple[int, ...], read: Callable[[], Array], identity: tuple[Hashable, ...]):
        if dtype not in HOLDERS:
            raise QcompError(f"tensors of dtype {dtype} are not supported", code="unsupported-dtype")
        self.dtype = dtype
        self.shape = shape
        self.identity = identity
        self._read = read

    @cached_property
    def array(self) -> Array:
        """The read-only array."""
        array = self._read()
        if array.dtype != HOLDERS[self.dtype] or array.shape != self.shape:
            raise QcompError(f"expected a {self.dtype} tensor of shape {self.shape}", code="malformed-tensor")
        view = array.view()
        view.flags.writeable = False
        return view

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorData)
            and (self.dtype, self.shape) == (other.dtype, other.shape)
            and self.array.tobytes() == other.array.tobytes()
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"TensorData({self.dtype}{list(self.shape)})"
