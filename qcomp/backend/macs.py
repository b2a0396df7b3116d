# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiply-adds of each op, and the share of the quantized ones that are done in integers."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeDynamicOp, DequantizeOp, encoding_of
from qcomp.transforms.coded_weights import is_coded

_MOVES = (nn.MovementOp, nn.CatOp, nn.MaxPoolOp, nn.AdaptiveMaxPoolOp)


def macs(op: Operation) -> int:
    """Return the multiply-adds of a contraction: convolution, linear, matmul or recurrent layer; 0 for other ops."""
    if isinstance(op, nn.ConvTransposeOp):
        outputs, _, *kernel = shape(op.weight)
        return math.prod(shape(op.input)) * outputs // op.groups.value.data * math.prod(kernel)
    if isinstance(op, nn.WeightedOp):
        per_result = math.prod(shape(op.weight)[1:])
        return math.prod(shape(op.result)) * per_result
    if isinstance(op, nn.DynamicLinearOp):
        return math.prod(shape(op.result)) * shape(op.weight)[1]
    if isinstance(op, nn.MatmulOp):
        return math.prod(shape(op.result)) * shape(op.lhs)[-1]
    if isinstance(op, nn.RecurrentOp):
        projection = op.projection if isinstance(op, nn.LstmOp) else None
        per_step = math.prod(shape(op.weight)) + (math.prod(shape(projection)) if projection is not None else 0)
        return math.prod(shape(op.input)[:2]) * per_step
    return 0


def computes_in_integers(op: Operation) -> bool:
    """Return whether the products of a contraction are products of integers."""
    if isinstance(op, nn.DynamicLinearOp):
        return True
    return all(
        encoding_of(value.type) is not None or isinstance(tensor(value).element_type, IntegerType)
        for value in _factors(op)
    )


def integer_share(reference: ModuleOp, module: ModuleOp, at: Callable[[int], int]) -> float:
    """Return the share of the quantized multiply-adds of `module` that are done in integers, 0 where there are none.

    A contraction is quantized when both its factors are integers, or were codes in `reference`, the program before
    ops work on codes: constants that were dequantized there may be floats in `module`. at: the number for a size.
    """
    wanted = {_mark(op) for op in reference.walk() if macs(op) != 0 and _is_quantized(op)} - {None}
    done = total = 0
    for op in module.walk():
        count = at(macs(op))
        if not count:
            continue
        if computes_in_integers(op):
            done += count
            total += count
        elif _is_quantized(op) or _mark(op) in wanted:
            total += count
    return done / total if total else 0.0


def _mark(op: Operation) -> str | None:
    """Return the mark by which `op` is found again after passes."""
    return op.results[0].name_hint


def _factors(op: Operation) -> tuple[SSAValue, SSAValue]:
    """Return the two values whose elements a contraction multiplies."""
    match op:
        case nn.MatmulOp():
            return op.lhs, op.rhs
        case nn.RecurrentOp():
            return op.hidden, op.weight
        case nn.WeightedOp() | nn.DynamicLinearOp():
            return op.input, op.weight
        case _:
            raise TypeError(f"{op.name} multiplies nothing")


def _is_quantized(op: Operation) -> bool:
    return all(holds_codes(value) for value in _factors(op))


def holds_codes(value: SSAValue) -> bool:
    """Return whether `value` holds codes, or reals that were dequantized, and moved since or not."""
    while True:
        if encoding_of(value.type) is not None:
            return True
        owner = value.owner
        if isinstance(owner, DequantizeOp | DequantizeDynamicOp) or (isinstance(owner, Operation) and is_coded(owner)):
            return True
        if not isinstance(owner, _MOVES) or not owner.operands:
            return False
        value = owner.operands[0]
