# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which layout each tensor inside a program gets.

Convolutions and pools want their channels last; an elementwise op, cat, slice, pad and softmax want what their
neighbours have. So values are grouped through the latter, and a group that a convolution or pool touches lies channels
last, with a border as wide as its widest reader needs. All other tensors are row-major, as matmul, linear and layer
norm want them. Arguments and results lie as the caller has them: row-major.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn, quant
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn.base import shape
from qcomp.transforms.lower_to_loop.buffers import Border, Layout, no_border
from qcomp.transforms.lower_to_loop.phases import transposed_border
from qcomp.transforms.rewriting import located

_WANT_CHANNELS_LAST = (*nn.CONVOLUTIONS, *nn.TRANSPOSED, *nn.POOLS, nn.GridSampleOp)
_FOLLOW = (
    *nn.UNARY, *nn.BINARY, *nn.FUNCTIONS, nn.CastOp, nn.CatOp, nn.SliceOp, nn.PadOp, *nn.RESAMPLING, nn.SoftmaxOp,
    nn.BatchNormOp,
    quant.QuantizeOp, quant.DequantizeOp, quant.RequantizeOp, quant.CastStorageOp,
)  # fmt: skip


class Layouts:
    """The layouts of all values of a function."""

    def __init__(self, func: FuncOp):
        self._parents: dict[SSAValue, SSAValue] = {}
        self._borders: dict[SSAValue, Border] = {}
        wanting: list[SSAValue] = []
        for op in func.walk():
            if isinstance(op, _WANT_CHANNELS_LAST):
                wanting += self._data(op)
            if isinstance(op, nn.ConvolutionOp):
                self._widen(op.input, padding_border(op))
            if isinstance(op, nn.ConvTransposeOp) and not any(map(is_symbolic, shape(op.weight))):
                with located(op):
                    self._widen(op.input, transposed_border(op))
            if isinstance(op, _FOLLOW):
                first, *rest = self._data(op)
                for value in rest:
                    self._join(first, value)
        self._channels_last = {self._root(value) for value in wanting}

    def layout(self, value: SSAValue) -> Layout:
        """The layout of the buffer that holds `value`."""
        return self.channels_last(value) if self._root(value) in self._channels_last else Layout(False)

    def channels_last(self, value: SSAValue) -> Layout:
        """Channels last, with the border that readers of `value` need."""
        return Layout(True, self._borders.get(value, no_border(len(shape(value)))))

    def _widen(self, value: SSAValue, border: Border) -> None:
        old = self._borders.get(value, no_border(len(shape(value))))
        self._borders[value] = tuple(max(a, b) for a, b in zip(old, border, strict=True))

    @staticmethod
    def _data(op: Operation) -> list[SSAValue]:
        """The result and the operands that have its rank, but for weights."""
        rank = len(shape(op.results[0]))
        operands = [op.input, op.residual] if isinstance(op, nn.WeightedOp) else list(op.operands)
        return [op.results[0], *(value for value in operands if value is not None and len(shape(value)) == rank)]

    def _join(self, one: SSAValue, other: SSAValue) -> None:
        first, second = self._root(one), self._root(other)
        if first is not second:
            self._parents[second] = first

    def _root(self, value: SSAValue) -> SSAValue:
        root = value
        while root in self._parents:
            root = self._parents[root]
        while value is not root:
            following = self._parents[value]
            self._parents[value] = root
            value = following
        return root


def padding_border(op: nn.ConvolutionOp) -> Border:
    """Padding of a convolution: before and after each spatial dimension."""
    return tuple(size for pair in op.padding_pairs for size in pair)
