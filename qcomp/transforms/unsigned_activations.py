# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""unsigned-activations: signed 8-bit activations become unsigned ones, with range and zero point moved by 128.

    %1 = nn.conv2d %0, %w : (..., ...) -> tensor<1x4x6x7x!quant.uniform<i8:f32, 0.02:3>>
    %2 = nn.max_pool2d %1
 => %1 = nn.conv2d %0, %w : (..., ...) -> tensor<1x4x6x7x!quant.uniform<u8:f32, 0.02:131>>
    %2 = nn.max_pool2d %1

Dot instructions multiply unsigned activations with signed weights. Every real number stays what it was, so results do
not change. Three kinds of codes keep their type, with a `quant.requantize` where they meet the others: arguments and
results of functions, and of ops this pass does not know; what is multiplied as a weight; and results of ops that can
make NaN, which becomes code 0 in either type (quantize, division, roots). `qcomp.transforms.unsigned_dynamic` does the
same where zero points are operands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint
from xdsl.rewriter import Rewriter as IrRewriter

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeOp, Encoding, RequantizeOp, encoding_of, quantized_type
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.code_identities import MODERATE, is_shift_of_codes, largest_real
from qcomp.transforms.coded_ops import computes_in_reals
from qcomp.transforms.moved_operands import moved_places, tells_places
from qcomp.transforms.rewriting import apply_rules, constant, refuse
from qcomp.transforms.unsigned_dynamic import UnsignedDynamic

_MAY_BE_NAN = (nn.DivOp, nn.SqrtOp, nn.RsqrtOp)
_FOLLOWS = tuple(
    op
    for op in (*nn.CONTRACTIONS, *nn.TRANSPOSED, *nn.UNARY, *nn.BINARY, *nn.POOLING, *nn.MOVEMENT, nn.TakeOp)
    if op not in (*_MAY_BE_NAN, nn.CastOp, nn.EmbeddingOp)
)
"""Ops whose results are the same real numbers when their encodings move together."""
WEIGHT = 1
"""The operand of a convolution or linear that is its weight."""
_READS = (*_FOLLOWS, *_MAY_BE_NAN, DequantizeOp, RequantizeOp, nn.CompareOp)
"""Ops that read codes by their encoding only."""


def moved(encoding: Encoding) -> Encoding:
    """The unsigned encoding of the same real numbers."""
    return replace(
        encoding, signed=False, qmin=encoding.qmin + 128, qmax=encoding.qmax + 128,
        zero_points=encoding.zero_points + 128,
    )  # fmt: skip


def _signed_activation(value: SSAValue) -> Encoding | None:
    encoding = encoding_of(value.type)
    if encoding is None or not (encoding.per_tensor and encoding.signed and encoding.width == 8):
        return None
    return encoding


def _reads_any(use: Use) -> bool:
    """Whether this use takes codes of any encoding: no weight, and an op that knows its operand by its type only."""
    op = use.operation
    if isinstance(op, nn.WeightedOp):
        return use.index != WEIGHT
    if isinstance(op, nn.MatmulOp):
        return use.index != WEIGHT
    return isinstance(op, _READS) or tells_places(op) or computes_in_reals(op) or _follows(op)


def _takes_either(use: Use) -> bool:
    """Whether this use is a computed right side of a matmul, which is signed for free where it is packed."""
    return isinstance(use.operation, nn.MatmulOp) and not isinstance(use.operation.rhs.owner, nn.ConstantOp)


def _is_done(use: Use) -> bool:
    """Whether this use is the requantize that a former run has put behind a value that keeps its type."""
    op = use.operation
    source = encoding_of(op.operands[use.index].type)
    return isinstance(op, RequantizeOp) and source is not None and encoding_of(op.result.type) == moved(source)


def _convert(value: SSAValue, encoding: Encoding) -> None:
    """Let `value` be unsigned; uses that need the signed codes read a requantize."""
    signed = [use for use in value.uses if not _reads_any(use) and not _takes_either(use)]
    old_type = tensor(value)
    new = IrRewriter.replace_value_with_new_type(value, quantized_type(old_type, moved(encoding)))
    if signed:
        _reread(new, signed, encoding)


def _keep(value: SSAValue, encoding: Encoding) -> None:
    """`value` stays signed; uses that take any encoding read an unsigned requantize of it."""
    free = [use for use in value.uses if _reads_any(use) and not _is_done(use)]
    if free:
        _reread(value, free, moved(encoding))


def _reread(value: SSAValue, uses: list[Use], encoding: Encoding) -> None:
    step = RequantizeOp(value, encoding)
    owner = value.owner
    if isinstance(owner, Block):
        IrRewriter.insert_op(step, InsertPoint.at_start(owner))
        step.location = uses[-1].operation.location
    else:
        IrRewriter.insert_op(step, InsertPoint.after(owner))
        step.location = owner.location
    for use in uses:
        use.operation.operands[use.index] = step.result


def _unsigned_constant(op: nn.ConstantOp, encoding: Encoding) -> None:
    """Uses of a constant as an activation read a constant of moved codes."""
    free = [use for use in op.result.uses if _reads_any(use) and not isinstance(use.operation, RequantizeOp)]
    if not free:
        return
    codes = (op.array.astype("int16") + 128).astype("uint8")
    new = nn.ConstantOp(codes, quantized_type(tensor(op.result), moved(encoding)))
    new.location = op.location
    IrRewriter.insert_op(new, InsertPoint.after(op))
    for use in free:
        use.operation.operands[use.index] = new.result


def _values(module: ModuleOp) -> list[SSAValue]:
    found: list[SSAValue] = []
    for op in module.walk():
        found += op.results
        found += [argument for region in op.regions for block in region.blocks for argument in block.args]
    return found


def _is_free(owner: Operation, value: SSAValue) -> bool:
    """Whether the type of `value` may change: its op follows, from codes only; no requantize that a former run made."""
    if isinstance(owner, RequantizeOp):
        return any(_reads_any(use) for use in value.uses)
    if isinstance(owner, nn.MeanOp) and is_symbolic(prod(shape(owner.input)[axis] for axis in owner.axes)):
        return False  # There may be no elements, and then the mean is NaN.
    places = moved_places(owner) or range(len(owner.operands))
    data = [owner.operands[place] for place in places]
    if isinstance(owner, nn.WeightedOp):
        data = [item for item in (owner.input, owner.weight, owner.residual) if item is not None]
    return _follows(owner) and all(encoding_of(item.type) is not None or constant(item) is not None for item in data)


def _follows(op: Operation) -> bool:
    """Whether the result of `op` is the same real numbers when encodings move together."""
    return isinstance(op, _FOLLOWS) or (bool(moved_places(op)) and not isinstance(op, nn.EmbeddingOp))


@lru_cache(maxsize=4096)
def _problem(encoding: Encoding) -> str | None:
    """Why values of this encoding stay as they are; None when they need not."""
    if largest_real(encoding) >= MODERATE:
        return "the real numbers are so large that arithmetic on them can make NaN"
    if not is_shift_of_codes(encoding, moved(encoding), None):
        return "requantizing does not keep every code"
    return None


def _visit(value: SSAValue, encoding: Encoding) -> None:
    owner = value.owner
    problem = _problem(encoding)
    if isinstance(owner, nn.ConstantOp):
        _unsigned_constant(owner, encoding)
    elif problem is not None:
        place = owner if isinstance(owner, Operation) else owner.parent_op()
        if place is not None:
            refuse("unsigned-activations", place, problem)
    elif isinstance(owner, Operation) and _is_free(owner, value):
        _convert(value, encoding)
    else:
        _keep(value, encoding)


@dataclass(frozen=True)
class UnsignedActivationsPass(QcompPass):
    """Make 8-bit activations inside of functions unsigned."""

    name = "unsigned-activations"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for value in _values(op):
            encoding = _signed_activation(value)
            if encoding is not None:
                _visit(value, encoding)
        apply_rules(op, [UnsignedDynamic()])
