# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in which a value stands for a block of equal ones: scales of groups of weights, one in place of 32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from qcomp.dialects.constant import Array


@dataclass(frozen=True, eq=False)
class Repeated:
    """`values`, each `repeats[axis]` times in a row along each axis. It is moved and cut as the whole array is.

    What cannot be said of blocks (a reshape that joins a repeated axis with another) makes the array whole.
    """

    values: Array
    repeats: tuple[int, ...]

    @staticmethod
    def of(values: Array, repeats: Sequence[int] = ()) -> Repeated:
        """Return `values`, by default once each."""
        return Repeated(values, tuple(repeats) or (1,) * values.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the whole array."""
        return tuple(size * times for size, times in zip(self.values.shape, self.repeats, strict=True))

    def whole(self) -> Array:
        """Return the array itself."""
        found = self
        for axis in range(len(self.repeats)):
            found = found._whole_along(axis)
        return found.values

    def reshape(self, sizes: Sequence[int]) -> Repeated:
        """Return it with other sizes, none of them left open."""
        ones = [(size, times) for size, times in zip(self.values.shape, self.repeats, strict=True) if size * times != 1]
        if all(times == 1 for _, times in ones):
            return Repeated.of(self.values.reshape(sizes))
        if [size * times for size, times in ones] != [size for size in sizes if size != 1]:
            return Repeated.of(self.whole().reshape(sizes))
        left = iter(ones)
        kept = [(1, 1) if size == 1 else next(left) for size in sizes]
        return Repeated(self.values.reshape([size for size, _ in kept]), tuple(times for _, times in kept))

    def transpose(self, order: Sequence[int]) -> Repeated:
        """Return it with its axes in another order."""
        return Repeated(self.values.transpose(order), tuple(self.repeats[axis] for axis in order))

    def __getitem__(self, place: object) -> Repeated:
        places = cast("tuple[object, ...]", place if isinstance(place, tuple) else (place,))
        found, repeats, cut, axis = self, list[int](), list[object](), 0
        for each in places:
            if each is None:
                repeats.append(1)
                cut.append(None)
                continue
            inside = found._inside(axis, each)
            if inside is None:
                found, inside = found._whole_along(axis), each
            cut.append(inside)
            if not isinstance(each, int):
                repeats.append(found.repeats[axis])
            axis += 1
        values = cast(Array, found.values[tuple(cut)])  # pyright: ignore[reportArgumentType, reportCallIssue]
        return Repeated(values, (*repeats, *found.repeats[axis:]))

    def every(self, axis: int, step: int) -> Repeated:
        """Return the values at multiples of `step` along an axis."""
        places = (slice(None),) * axis
        if step % self.repeats[axis]:
            return self._whole_along(axis)[(*places, slice(None, None, step))]
        values = self.values[(*places, slice(None, None, step // self.repeats[axis]))]
        return Repeated(values, (*self.repeats[:axis], 1, *self.repeats[axis + 1 :]))

    def run(self) -> int:
        """Return how many neighbours along the last axis, a divisor of its size, share a value everywhere."""
        values, times = self.values, self.repeats[-1]
        if values.strides[-1] == 0:
            return values.shape[-1] * times
        others = tuple(range(values.ndim - 1))
        changes = np.nonzero((values[..., 1:] != values[..., :-1]).any(axis=others))[0] + 1
        return times * math.gcd(values.shape[-1], *(int(place) for place in changes))

    def varies(self, axis: int) -> bool:
        """Return whether values differ along `axis`."""
        first = self.values.take([0], axis)
        return bool((self.values != first).any())

    def _inside(self, axis: int, place: object) -> object:
        """`place` along an axis as a place in `values`; None where it does not take whole blocks."""
        times = self.repeats[axis]
        if times == 1 or (isinstance(place, slice) and place == slice(None)):
            return cast(object, place)
        if isinstance(place, int):
            return place // times
        if not isinstance(place, list | np.ndarray):
            return None
        blocks = np.asarray(cast("list[int]", place)) // times
        whole = blocks.ndim == 1 and blocks.size % times == 0
        if not whole or (blocks.reshape(-1, times) != blocks[::times, None]).any():
            return None
        return blocks[::times]

    def _whole_along(self, axis: int) -> Repeated:
        if self.repeats[axis] == 1:
            return self
        values = np.repeat(self.values, self.repeats[axis], axis)
        return Repeated(values, (*self.repeats[:axis], 1, *self.repeats[axis + 1 :]))
