# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The phases of a transposed convolution: which taps the result elements of one remainder modulo the stride read."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from qcomp.dialects import nn
from qcomp.dialects.dim import ceil_divide, is_symbolic
from qcomp.dialects.nn.base import ints, shape
from qcomp.transforms.lower_to_loop.buffers import Border


@dataclass(frozen=True)
class Phase:
    """Result elements first, first + step, ...: `count` of them; number q reads input q + origin + i * spacing.

    taps: the kernel elements that multiply those inputs, i = 0, 1, ...; none where the result is the bias.
    """

    first: int
    step: int
    count: int
    taps: tuple[int, ...]
    spacing: int
    origin: int

    @property
    def length(self) -> int:
        """Taps of the kernel to run, at least 1: without any the first input is multiplied by 0."""
        return max(len(self.taps), 1)


def phases(result: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Phase]:
    """The phases along one dimension of `result` elements."""
    found: list[Phase] = []
    for first in range(stride if is_symbolic(result) else min(stride, result)):
        taps = [tap for tap in reversed(range(kernel)) if (first + padding - dilation * tap) % stride == 0]
        origin = (first + padding - dilation * taps[0]) // stride if taps else 0
        count = ceil_divide(result - first, stride)
        found.append(Phase(first, stride, count, tuple(taps), dilation // gcd(dilation, stride), origin))
    return found


def spatial_phases(op: nn.ConvTransposeOp) -> list[list[Phase]]:
    """The phases along each spatial dimension."""
    windows = zip(ints(op.stride), ints(op.padding), ints(op.dilation), strict=True)
    sizes = zip(shape(op.result)[2:], shape(op.weight)[2:], strict=True)
    return [phases(size, kernel, *window) for (size, kernel), window in zip(sizes, windows, strict=True)]


def transposed_border(op: nn.ConvTransposeOp) -> Border:
    """How far the phases read before and after the input, per spatial dimension."""
    border: list[int] = []
    for size, found in zip(shape(op.input)[2:], spatial_phases(op), strict=True):
        ends = [part.origin + part.count - 1 + (part.length - 1) * part.spacing for part in found]
        border += [max(0, *(-part.origin for part in found)), max(0, *(end - size + 1 for end in ends))]
    return tuple(border)
