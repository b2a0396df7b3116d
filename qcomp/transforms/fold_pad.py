# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fold-pad: a padding with zeros goes into the convolution or average pool behind it.

    %1 = nn.pad %0 {low = array<i64: 0, 0, 1, 2>, high = array<i64: 0, 0, 1, 3>, value = 0.0 : f32}
    %2 = nn.conv2d %1, %w {padding = array<i64: 0, 1>, ...}
 => %2 = nn.conv2d %0, %w {padding = array<i64: 1, 3, 1, 4>, ...}

On codes alike: the pad fills in the zero point, as the convolution does. Never into a max pool, whose own padding is no
zero: it loses against every element.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn import AvgPool2dOp, ConvolutionOp, PadOp
from qcomp.dialects.nn.base import Shape, int_array, ints, tensor
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules


@dataclass(frozen=True)
class Padding:
    """The operand without its padding, and the padding of the op that takes it."""

    value: SSAValue
    padding: Shape


class FoldPad(Rule[Operation, Padding]):
    """conv(pad(x, 0)) => conv(x) {padding}; avg_pool2d alike.

    Precondition: the padding value is 0.0, on spatial dimensions only; the pool counts padding, rounds its size down,
    has no divisor of its own, is padded alike on both sides, and by at most half of its kernel.
    """

    matches: ClassVar = (ConvolutionOp, AvgPool2dOp)

    def plan(self, op: Operation) -> Padding | Refusal | None:
        pad = op.operands[0].owner
        if not isinstance(pad, PadOp):
            return None
        fill = pad.value.value.data
        if fill != 0.0 or copysign(1.0, fill) < 0.0:
            return Refusal(f"the padding value is {fill}, not 0.0")
        low, high = ints(pad.low), ints(pad.high)
        spatial = op.SPATIAL if isinstance(op, ConvolutionOp) else 2
        if any(map(is_symbolic, (*low, *high))):
            return Refusal("the padding depends on symbolic sizes")
        if any(low[:-spatial]) or any(high[:-spatial]):
            return Refusal("dimensions other than the spatial ones are padded")
        if tensor(pad.input).element_type != tensor(pad.result).element_type:
            return Refusal("the padding changes the encoding")
        if isinstance(op, AvgPool2dOp):
            return _pooled(op, pad.input, low[-2:], high[-2:])
        assert isinstance(op, ConvolutionOp)
        begins = [begin + more for (begin, _), more in zip(op.padding_pairs, low[-spatial:], strict=True)]
        ends = [end + more for (_, end), more in zip(op.padding_pairs, high[-spatial:], strict=True)]
        return Padding(pad.input, tuple(begins) if begins == ends else (*begins, *ends))

    def apply(self, op: Operation, plan: Padding, rewriter: Rewriter) -> None:
        old = op.operands[0]
        rewriter.set_property(op, "padding", int_array(plan.padding))
        rewriter.set_operand(op, 0, plan.value)
        rewriter.erase_dead(old)


def _pooled(op: AvgPool2dOp, value: SSAValue, low: Shape, high: Shape) -> Padding | Refusal:
    if not op.count_include_pad.value.data:
        return Refusal("the pool does not count padding")
    if op.ceil_mode.value.data or op.divisor_override is not None:
        return Refusal("the pool rounds its size up or has a divisor of its own")
    padding = tuple(begin + more for begin, more in zip(ints(op.padding), low, strict=True))
    if low != high:
        return Refusal("the pool would be padded unevenly")
    if any(size > kernel // 2 for size, kernel in zip(padding, ints(op.kernel_size), strict=True)):
        return Refusal("the pool would be padded by more than half of its kernel")
    return Padding(value, padding)


@dataclass(frozen=True)
class FoldPadPass(QcompPass):
    """Fold zero padding into convolutions and average pools."""

    name = "fold-pad"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FoldPad()])
