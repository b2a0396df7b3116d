# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of `unsigned-activations` for codes whose zero point is an operand.

    %q = quant.quantize_dynamic %x, %s, %z {qmin = -128, qmax = 127} : ... -> tensor<5x6xi8>
    %y = nn.dynamic_linear %q, %s, %z, %w
 => %z1 = nn.add %z, 128
    %q = quant.quantize_dynamic %x, %s, %z1 {qmin = 0, qmax = 255, nan = 128} : ... -> tensor<5x6xui8>
    %y = nn.dynamic_linear %q, %s, %z1, %w
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.element import ui8
from qcomp.dialects.nn import AddOp, ConstantOp, DynamicLinearOp, ReshapeOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, QuantizeDynamicOp
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule

_OFFSET = 128


@dataclass(frozen=True)
class Readers:
    """The ops that read codes by a zero point, and the reshapes in between, in order."""

    arithmetic: tuple[DynamicLinearOp | DequantizeDynamicOp, ...]
    reshapes: tuple[ReshapeOp, ...]


class UnsignedDynamic(Rule[QuantizeDynamicOp, Readers]):
    """Codes, range and zero points are moved by 128.

    Precondition: the codes are signed 8-bit ones with an i32 zero point, and only ops with a zero point of their own
    read them, behind reshapes or not.
    """

    matches: ClassVar = QuantizeDynamicOp

    def plan(self, op: QuantizeDynamicOp) -> Readers | Refusal | None:
        if tensor(op.result).element_type != i8 or tensor(op.zero_point).element_type != i32:
            return None
        found, reshapes, stack = list[DynamicLinearOp | DequantizeDynamicOp](), list[ReshapeOp](), [op.result]
        while stack:
            for use in stack.pop().uses:
                reader = use.operation
                if isinstance(reader, ReshapeOp):
                    reshapes.append(reader)
                    stack.append(reader.result)
                elif isinstance(reader, DynamicLinearOp | DequantizeDynamicOp):
                    found.append(reader)
                else:
                    return Refusal(f"{reader.name} reads the signed codes")
        if any(tensor(reader.zero_point).element_type != i32 for reader in found):
            return Refusal("a zero point is not i32")
        return Readers(tuple(found), tuple(reshapes))

    def apply(self, op: QuantizeDynamicOp, plan: Readers, rewriter: Rewriter) -> None:
        low, high = (bound + _OFFSET for bound in op.bounds)
        zero = _moved(op, op.zero_point, rewriter)
        new = QuantizeDynamicOp(op.input, op.scale, zero, ui8, low, high, op.recipe, op.nan_code + _OFFSET)
        rewriter.insert_before(op, new)
        codes: dict[SSAValue, SSAValue] = {op.result: new.result}
        for step in plan.reshapes:
            view = ReshapeOp(codes[step.input], shape(step.result))
            rewriter.insert_before(step, view)
            codes[step.result] = view.result
        for reader in plan.arithmetic:
            rewriter.set_operand(reader, 2, _moved(reader, reader.zero_point, rewriter))
            rewriter.set_operand(reader, 0, codes[reader.input])
        new.result.name_hint = op.result.name_hint
        rewriter.erase_dead(op.result, *(step.result for step in plan.reshapes))


def _moved(before: Operation, zero_point: SSAValue, rewriter: Rewriter) -> SSAValue:
    offset = ConstantOp(np.array(_OFFSET, np.int32))
    total = AddOp(zero_point, offset.result)
    rewriter.insert_before(before, offset, total)
    return total.result
