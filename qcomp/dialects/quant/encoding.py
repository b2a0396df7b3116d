# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How quantized codes stand for real numbers: ``real = (code - zero_point) * scale``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, f32
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

_LEAST_SCALE, _LARGEST_SCALE = 2.0**-149, float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Storage and parameters of a quantized tensor.

    signed, width: the storage integer; qmin, qmax: the codes in use; expressed: the float type it stands for;
    scales (float64) and zero_points (int64): 0-d per tensor, 1-d along `axis` per channel, and for sub-channel
    quantization one per block of the sizes `blocks` (pairs of axis and block length).
    Compares and hashes by value, bits of the scales included.
    """

    signed: bool
    width: int
    qmin: int
    qmax: int
    scales: FloatArray
    zero_points: IntArray
    axis: int | None = None
    blocks: tuple[tuple[int, int], ...] = ()
    expressed: Attribute = field(default=f32)

    @staticmethod
    def make(
        scales: float | Sequence[float] | FloatArray,
        zero_points: int | Sequence[int] | IntArray = 0,
        *,
        signed: bool = True,
        width: int = 8,
        qmin: int | None = None,
        qmax: int | None = None,
        axis: int | None = None,
        blocks: tuple[tuple[int, int], ...] = (),
        expressed: Attribute = f32,
    ) -> Encoding:
        """An encoding; qmin and qmax default to the storage's range, zero points are broadcast to the scales."""
        low, high = storage_range(signed, width)
        scale_array = np.array(scales, np.float64)
        zero_array = np.array(np.broadcast_to(np.array(zero_points, np.int64), scale_array.shape))
        scale_array.flags.writeable = False
        zero_array.flags.writeable = False
        return Encoding(
            signed, width, low if qmin is None else qmin, high if qmax is None else qmax,
            scale_array, zero_array, axis, blocks, expressed,
        )  # fmt: skip

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What equality and hashing compare."""
        return (
            self.signed, self.width, self.qmin, self.qmax, self.axis, self.blocks, self.expressed,
            self.scales.shape, self.scales.tobytes(), self.zero_points.tobytes(),
        )  # fmt: skip

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Encoding) and self._hash == other._hash and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    @property
    def per_tensor(self) -> bool:
        """One scale for the whole tensor."""
        return self.axis is None and not self.blocks

    @property
    def scale(self) -> float:
        """The scale of a per-tensor encoding."""
        return float(self.scales.reshape(()))

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor encoding."""
        return int(self.zero_points.reshape(()))

    @property
    def storage(self) -> IntegerType:
        """The integer element type that holds the codes: signless when signed, ``ui`` when not."""
        return IntegerType(self.width, Signedness.SIGNLESS if self.signed else Signedness.UNSIGNED)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy dtype that holds the codes."""
        bits = next(size for size in (8, 16, 32) if size >= self.width)
        return np.dtype(f"{'' if self.signed else 'u'}int{bits}")

    def with_axis(self, axis: int) -> Encoding:
        """The same per-channel parameters bound to another axis."""
        return replace(self, axis=axis)

    def check(self) -> None:
        """Raise VerifyException unless the parameters are consistent in themselves."""
        low, high = storage_range(self.signed, self.width)
        if not low <= self.qmin < self.qmax <= high:
            raise VerifyException(f"storage range <{self.qmin}:{self.qmax}> does not fit {low} to {high}")
        self._check_scales()
        if not ((self.zero_points >= self.qmin) & (self.zero_points <= self.qmax)).all():
            bad = self.zero_points[(self.zero_points < self.qmin) | (self.zero_points > self.qmax)].reshape(-1)[0]
            raise VerifyException(f"zero point {bad} is outside the storage range <{self.qmin}:{self.qmax}>")
        self._check_form()

    def _check_scales(self) -> None:
        """Quantize and dequantize compute with the scale in float32, where it must still be positive and finite.

        Denormals are: torch keeps them too, and a reciprocal that overflows there gives infinity or NaN as in torch.
        """
        if not (np.isfinite(self.scales).all() and (self.scales > 0).all()):
            raise VerifyException("scale must be positive and finite")
        with np.errstate(over="ignore", under="ignore"):
            narrow = self.scales.astype(np.float32)
        lost = self.scales[~(np.isfinite(narrow) & (narrow > 0))]
        if lost.size:
            raise VerifyException(
                f"scale {lost.reshape(-1)[0]} is no float32: it must lie between {_LEAST_SCALE} and {_LARGEST_SCALE}"
            )

    def _check_form(self) -> None:
        if not self.scales.size:
            raise VerifyException("a quantized type needs a scale")
        if self.per_tensor and self.scales.ndim:
            raise VerifyException("a type without axis or blocks has one scale, not a list")
        if self.axis is not None and (self.scales.ndim != 1 or self.axis < 0):
            raise VerifyException("a per-axis type needs an axis >= 0 and a list of scales")
        if any(size < 1 for _, size in self.blocks):
            raise VerifyException("block sizes must be at least 1")
        if len({axis for axis, _ in self.blocks}) != len(self.blocks):
            raise VerifyException("two block sizes for one axis")

    def check_shape(self, shape: Sequence[int]) -> None:
        """Raise VerifyException unless the parameters fit a tensor of `shape` (dynamic: xDSL's DYNAMIC_INDEX)."""
        if self.axis is not None:
            if self.axis >= len(shape):
                raise VerifyException(f"quantization axis {self.axis} is outside rank {len(shape)}")
            if shape[self.axis] != self.scales.size:
                raise VerifyException(f"{self.scales.size} scales for dimension {self.axis} of size {shape[self.axis]}")
        if self.blocks:
            self._check_blocks(shape)

    def _check_blocks(self, shape: Sequence[int]) -> None:
        sizes = dict(self.blocks)
        if any(axis >= len(shape) for axis in sizes):
            raise VerifyException(f"a quantization block axis is outside rank {len(shape)}")
        grid = tuple(dim // sizes[axis] if axis in sizes else 1 for axis, dim in enumerate(shape))
        whole = all(shape[axis] % size == 0 for axis, size in sizes.items())
        if not whole or int(np.prod(grid)) != self.scales.size:
            raise VerifyException(f"scales of shape {list(self.scales.shape)} do not divide {list(shape)} into blocks")


def storage_range(signed: bool, width: int) -> tuple[int, int]:
    """Smallest and largest code of the storage integer."""
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)


def parameter_arrays(encoding: Encoding, shape: Sequence[int]) -> tuple[FloatArray, IntArray]:
    """Scales and zero points of `encoding`, shaped to broadcast over a tensor of `shape`."""
    if encoding.per_tensor:
        return encoding.scales, encoding.zero_points
    if encoding.axis is not None:
        view = tuple(-1 if axis == encoding.axis else 1 for axis in range(len(shape)))
        return encoding.scales.reshape(view), encoding.zero_points.reshape(view)
    sizes = dict(encoding.blocks)
    grid = tuple(dim // sizes[axis] if axis in sizes else 1 for axis, dim in enumerate(shape))
    scales, zeros = encoding.scales.reshape(grid), encoding.zero_points.reshape(grid)
    for axis, size in encoding.blocks:
        scales, zeros = np.repeat(scales, size, axis), np.repeat(zeros, size, axis)
    return scales, zeros
