# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""widen-halves: ops on f16 and bf16 that no kernel does as they are compute in f32 and round once, at the result.

    %y = nn.softmax %x {dim = 1 : i64} : tensor<2x3xbf16> -> tensor<2x3xbf16>
 => %0 = nn.cast %x : tensor<2x3xbf16> -> tensor<2x3xf32>
    %1 = nn.softmax %0 {dim = 1 : i64} : tensor<2x3xf32> -> tensor<2x3xf32>
    %y = nn.cast %1 : tensor<2x3xf32> -> tensor<2x3xbf16>

That is what those ops mean, and where torch's CPU kernels round, so the bits stay. What computes element by element and
what only moves elements is left: its kernels widen and round in registers. A cast down and up again between two ops is
a rounding and stays. Constants stay 16 bits wide: their casts are done by the kernels that read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import BFloat16Type, Float16Type, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn import CastOp, is_control
from qcomp.dialects.nn.base import shape
from qcomp.dialects.quant import encoding_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules


def is_half(value: SSAValue) -> bool:
    """Whether `value` is a tensor of f16 or bf16."""
    kind = value.type
    return isinstance(kind, TensorType) and isinstance(
        cast("TensorType[Attribute]", kind).element_type, Float16Type | BFloat16Type
    )


def _stands_for_half(value: SSAValue) -> bool:
    encoding = encoding_of(value.type)
    return encoding is not None and isinstance(encoding.expressed, Float16Type | BFloat16Type)


def _with(value: SSAValue, element: Attribute) -> TensorType[Attribute]:
    return tensor_of(element, shape(value))


class WidenHalf(Rule[Operation, Sequence[int]]):
    """op(x) of f16 or bf16 => cast(op(cast(x))).

    Precondition: an operand or result is of f16 or bf16, and the lowering of the op does not take those; no codes stand
    for numbers of those types, which are rounded to them. One cast serves all later ops of a block.
    """

    matches: ClassVar = Operation

    def __init__(self) -> None:
        self._wide: dict[tuple[SSAValue, Block | None], SSAValue] = {}

    def plan(self, op: Operation) -> Sequence[int] | Refusal | None:
        from qcomp.transforms.lower_to_loop.registry import takes_halves

        if is_control(op) or not any(map(is_half, (*op.operands, *op.results))) or takes_halves(op):
            return None
        if any(map(_stands_for_half, (*op.operands, *op.results))):
            return Refusal("codes stand for 16-bit floats")
        return [place for place, value in enumerate(op.operands) if is_half(value)]

    def apply(self, op: Operation, plan: Sequence[int], rewriter: Rewriter) -> None:
        operands = list(op.operands)
        for place in plan:
            operands[place] = self._widened(op, operands[place], rewriter)
        kinds = [_with(value, f32) if is_half(value) else value.type for value in op.results]
        wide = type(op).create(
            operands=operands, result_types=kinds, properties=op.properties.copy(), attributes=op.attributes.copy()
        )
        rewriter.insert_before(op, wide)
        values: list[SSAValue] = []
        for old, new in zip(op.results, wide.results, strict=True):
            if is_half(old):
                cut = CastOp(new, cast("TensorType[Attribute]", old.type))
                rewriter.insert_before(op, cut)
                new = cut.result
            values.append(new)
        rewriter.replace(op, values=values)

    def _widened(self, op: Operation, value: SSAValue, rewriter: Rewriter) -> SSAValue:
        key = (value, op.parent)
        if key not in self._wide:
            wide = CastOp(value, _with(value, f32))
            rewriter.insert_before(op, wide)
            self._wide[key] = wide.result
        return self._wide[key]


@dataclass(frozen=True)
class WidenHalvesPass(QcompPass):
    """Compute in f32 what no kernel does in f16 or bf16."""

    name = "widen-halves"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [WidenHalf()], once=True)
