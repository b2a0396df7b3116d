# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which border each tensor's buffer needs: the widest padding among the convolutions that read it."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.transforms.lower_to_loop.buffers import NO_BORDER, Border


class Borders:
    """The borders of all values of a function."""

    def __init__(self, func: FuncOp):
        self._borders: dict[SSAValue, Border] = {}
        for op in func.walk():
            if isinstance(op, nn.Conv2dOp):
                old = self.border(op.input)
                needed = padding_border(op)
                self._borders[op.input] = tuple(max(a, b) for a, b in zip(old, needed, strict=True))  # pyright: ignore[reportArgumentType]

    def border(self, value: SSAValue) -> Border:
        """The border of the buffer that holds `value`."""
        return self._borders.get(value, NO_BORDER)


def padding_border(op: nn.Conv2dOp) -> Border:
    """Top, bottom, left, right padding of a convolution."""
    (top, bottom), (left, right) = op.padding_pairs
    return top, bottom, left, right
