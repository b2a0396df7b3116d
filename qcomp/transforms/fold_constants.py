# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fold-constants: what is known at compile time is computed at compile time; equal constants become one.

    %w = nn.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
    %t = nn.permute %w {dims = array<i64: 1, 0>} : tensor<1x2xf32> -> tensor<2x1xf32>
    %q = quant.quantize %t : tensor<2x1xf32> -> tensor<2x1x!quant.uniform<i8:f32, 0.5>>
    %d = quant.dequantize %q
 => %q = nn.constant dense<[[2], [4]]> : tensor<2x1x!quant.uniform<i8:f32, 0.5>>
    %d = quant.dequantize %q

The reference evaluates, so the bits are those of run time. A dequantize stays, since it marks its user as quantized,
unless `dequantize=true`; so does an observer. With `keep-weights=true` it stays even then if all its readers dequantize
weights as they read (`qcomp.transforms.coded_weights`): a weight keeps the size of its codes. A result that is larger
than its operands together by more than `max-growth` bytes is not stored; nor, from 4096 bytes on, is a float32 copy of
float16 or bfloat16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation
from xdsl.traits import Pure

from qcomp.dialects.constant import Array, DataAttr
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import CastOp, ConstantOp
from qcomp.dialects.nn.base import UNKNOWN, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, ObserveOp, storage_type
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import is_narrow
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.coded_weights import stays_coded
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant

WIDENED = 4096
"""Bytes by which a constant of 16-bit floats may grow."""
_DEQUANTIZE = (DequantizeOp, DequantizeDynamicOp)


class FoldConstant(Rule[Operation, DataAttr]):
    """op(constants) => constant.

    Precondition: the op is pure, has one tensor result of static shape and operands that are all constants; it is no
    observer, no dequantize (unless asked for, and no weight is to be kept) and does not enlarge the constants beyond
    the limit; the reference knows it.
    """

    matches: ClassVar = Operation

    def __init__(self, dequantize: bool, max_growth: int, keep_weights: bool):
        self.dequantize = dequantize
        self.keep_weights = keep_weights
        self.max_growth = max_growth

    def plan(self, op: Operation) -> DataAttr | Refusal | None:
        operands = [constant(operand) for operand in op.operands]
        arrays = [item.array for item in operands if item is not None]
        if not arrays or len(arrays) != len(operands) or not self._meant(op):
            return None
        stored = storage_type(cast(TensorType[Attribute], op.results[0].type))
        if UNKNOWN in stored.get_shape():
            return Refusal("the result has a dynamic shape")
        size = numpy_dtype(stored.element_type).itemsize * math.prod(stored.get_shape())
        held = sum(array.nbytes for array in arrays)
        if isinstance(op, CastOp) and size > held + WIDENED and is_narrow(tensor(op.input).element_type):
            return Refusal(f"{held} bytes of 16-bit floats would become {size}")
        asked = self.dequantize and isinstance(op, _DEQUANTIZE)
        if size > held + self.max_growth and not asked:
            return Refusal(f"{held} bytes of constants would become {size}")
        return _evaluate(op, arrays, stored.element_type)

    def _meant(self, op: Operation) -> bool:
        if len(op.results) != 1 or op.regions or not op.has_trait(Pure, value_if_unregistered=False):
            return False
        if isinstance(op, ObserveOp) or (isinstance(op, _DEQUANTIZE) and not self.dequantize):
            return False
        if self.keep_weights and stays_coded(op):
            return False
        return isinstance(op.results[0].type, TensorType)

    def apply(self, op: Operation, plan: DataAttr, rewriter: Rewriter) -> None:
        operands = tuple(op.operands)
        rewriter.replace(op, ConstantOp(plan, cast(TensorType[Attribute], op.results[0].type)))
        rewriter.erase_dead(*operands)


def _evaluate(op: Operation, arrays: list[Array], element: Attribute) -> DataAttr | Refusal:
    from qcomp.interpreter import evaluate_op

    try:
        return DataAttr.of(evaluate_op(op, arrays), element)
    except QcompError as problem:
        return Refusal(problem.message)


def unify_constants(module: ModuleOp) -> None:
    """Let constants of equal content and type in one block be one op, the first; drop those without a use."""
    blocks: dict[Block, dict[tuple[DataAttr, Attribute], ConstantOp]] = {}
    for op in list(module.walk()):
        if not isinstance(op, ConstantOp) or (block := op.parent) is None:
            continue
        first = blocks.setdefault(block, {}).setdefault((op.value, op.result.type), op)
        if first is not op:
            op.result.replace_all_uses_with(first.result)
    for block in blocks:
        for op in list(block.ops):
            if isinstance(op, ConstantOp) and op.result.first_use is None:
                op.detach()
                op.erase()


@dataclass(frozen=True)
class FoldConstantsPass(QcompPass):
    """Evaluate ops whose operands are all constants."""

    name = "fold-constants"
    letter: ClassVar[Letter] = Letter.EXACT

    dequantize: bool = False
    max_growth: int = 4096
    keep_weights: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [FoldConstant(self.dequantize, self.max_growth, self.keep_weights)])
        unify_constants(op)
