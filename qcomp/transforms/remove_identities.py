# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""remove-identities: ops whose result is their operand, bit for bit.

    %1 = nn.permute %0 {dims = array<i64: 0, 1, 2>} : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
    %2 = nn.mul %1, dense<1.0>
    %3 = nn.relu %2
 => %3 = nn.relu %0

Reshape and expand to the same static shape, the identity permutation, the whole slice, padding by nothing, cat of one
operand, cast and requantize to the same type, storage casts there and back, max pools over single elements, averages of
single codes, clamp to [-inf, inf], relu and clamp of codes that all lie between the bounds (relu with its zero point at
the lower end; with zero point 0 in signed codes it stays), x * 1, x / 1, x + -0.0, x - 0.0.

x + 0.0 is none: it turns -0.0 into 0.0. Nor is the average of one float, whose sum starts at 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from qcomp.dialects.nn import (
    ADAPTIVE_AVG_POOLS,
    ADAPTIVE_MAX_POOLS,
    AVG_POOLS,
    MAX_POOLS,
    AdaptivePoolOp,
    AddOp,
    AvgPoolOp,
    BinaryOp,
    CastOp,
    CatOp,
    ClampOp,
    DivOp,
    ExpandOp,
    MaxPoolOp,
    MulOp,
    PadOp,
    PermuteOp,
    ReluOp,
    ReshapeOp,
    SliceOp,
    SubOp,
    TakeOp,
    UnaryOp,
)
from qcomp.dialects.nn.base import UNKNOWN, ints, shape
from qcomp.dialects.quant import CastStorageOp, RequantizeOp, encoding_of
from qcomp.interpreter.reference.quantize import code_of
from qcomp.transforms.activations import bounds_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.code_identities import is_identity_on_codes
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules, constant


def _same(op: Operation) -> SSAValue | None:
    """Reshape, expand, cast: the type says it all."""
    return op.operands[0]


def _requantize(op: Operation) -> SSAValue | None:
    item = cast(RequantizeOp, op)
    encoding = encoding_of(item.result.type)
    return item.input if encoding is not None and is_identity_on_codes(encoding, item.recipe) else None


def _permute(op: Operation) -> SSAValue | None:
    dims = ints(cast(PermuteOp, op).dims)
    return op.operands[0] if dims == tuple(range(len(dims))) else None


def _slice(op: Operation) -> SSAValue | None:
    item = cast(SliceOp, op)
    whole = (0, shape(item.input)[item.dim.value.data], 1)
    return item.input if (*item.bounds, item.step.value.data) == whole else None


def _take(op: Operation) -> SSAValue | None:
    item = cast(TakeOp, op)
    indices = ints(item.indices)
    whole = len(indices) == shape(item.input)[item.dim.value.data] and indices == tuple(range(len(indices)))
    return item.input if whole else None


def _pad(op: Operation) -> SSAValue | None:
    item = cast(PadOp, op)
    return None if any(size != 0 for size in ints(item.low) + ints(item.high)) else item.input


def _cat(op: Operation) -> SSAValue | None:
    return op.operands[0] if len(op.operands) == 1 else None


def _max_pool(op: Operation) -> SSAValue | None:
    return op.operands[0] if _is_single(cast(MaxPoolOp, op)) else None


def _avg_pool(op: Operation) -> SSAValue | None:
    item = cast(AvgPoolOp, op)
    divisor = item.divisor_override
    return _averaged(item) if _is_single(item) and (divisor is None or divisor.value.data == 1) else None


def _averaged(op: Operation) -> SSAValue | None:
    """The operand when the elements are codes: a float average starts at 0.0 and so turns -0.0 into 0.0."""
    encoding = encoding_of(op.results[0].type)
    exact = encoding is not None and encoding.per_tensor and is_identity_on_codes(encoding, None)
    return op.operands[0] if exact else None


def _is_single(op: MaxPoolOp | AvgPoolOp) -> bool:
    return ints(op.kernel_size) == ints(op.stride) == (1,) * op.SPATIAL and not any(ints(op.padding))


def _clamp(op: Operation) -> SSAValue | None:
    """On codes, relu and clamp do nothing when the bounds quantize to the ends of the range or beyond."""
    encoding, bounds = encoding_of(op.results[0].type), bounds_of(op)
    if encoding is None:
        return op.operands[0] if bounds == (-math.inf, math.inf) else None
    recipe = cast(UnaryOp, op).recipe
    if bounds is None or not encoding.per_tensor or not is_identity_on_codes(encoding, recipe):
        return None
    low, high = (code_of(bound, encoding, recipe) for bound in bounds)
    return op.operands[0] if (low, high) == (encoding.qmin, encoding.qmax) else None


def _storage(op: Operation) -> SSAValue | None:
    inner = op.operands[0].owner
    return inner.operands[0] if isinstance(inner, CastStorageOp) else None


def _neutral(op: Operation) -> SSAValue | None:
    """The other operand when one is the neutral element in every place, by bits."""
    item = cast(BinaryOp, op)
    if item.activation is not None or encoding_of(item.result.type) is not None:
        return None
    neutral = 1.0 if isinstance(item, MulOp | DivOp) else -0.0 if isinstance(item, AddOp) else 0.0
    if _is_filled(item.rhs, neutral):
        return item.lhs
    return item.rhs if isinstance(item, AddOp | MulOp) and _is_filled(item.lhs, neutral) else None


def _is_filled(value: SSAValue, number: float) -> bool:
    op = constant(value)
    if op is None or op.array.dtype.kind != "f":
        return False
    return bool((op.array == number).all()) and bool((np.signbit(op.array) == np.signbit(number)).all())


_FORMS: dict[type[Operation], Callable[[Operation], SSAValue | None]] = {
    ReshapeOp: _same, ExpandOp: _same, CastOp: _same, RequantizeOp: _requantize,
    **dict.fromkeys(ADAPTIVE_AVG_POOLS, _averaged), **dict.fromkeys(ADAPTIVE_MAX_POOLS, _same),
    PermuteOp: _permute, SliceOp: _slice, TakeOp: _take, PadOp: _pad, CatOp: _cat,
    **dict.fromkeys(MAX_POOLS, _max_pool), **dict.fromkeys(AVG_POOLS, _avg_pool),
    ClampOp: _clamp, ReluOp: _clamp, CastStorageOp: _storage,
    MulOp: _neutral, DivOp: _neutral, AddOp: _neutral, SubOp: _neutral,
}  # fmt: skip


class RemoveIdentity(Rule[Operation, SSAValue]):
    """identity(x) => x.

    Precondition: result and operand have the same type, encoding included, with no unknown dimension (one unknown
    dimension is not known to equal another); the function does not end up returning its argument as it came.
    """

    matches: ClassVar = tuple(_FORMS)

    def __init__(self, *only: type[Operation]):
        """Of all ops that can be identities, look at `only` these (default: all)."""
        self.only = only or self.matches

    def plan(self, op: Operation) -> SSAValue | Refusal | None:
        value = _FORMS[type(op)](op) if isinstance(op, self.only) else None
        if value is None or value.type != op.results[0].type:
            return None
        if UNKNOWN in shape(value) and isinstance(op, ReshapeOp | ExpandOp | AdaptivePoolOp | BinaryOp):
            return Refusal("unknown dimensions are not known to be equal")
        returned = any(isinstance(use.operation, ReturnOp) for use in op.results[0].uses)
        if returned and isinstance(value, BlockArgument):
            return Refusal("the function would return its argument: the copy stays")
        return value

    def apply(self, op: Operation, plan: SSAValue, rewriter: Rewriter) -> None:
        operands = tuple(op.operands)
        rewriter.replace(op, values=[plan])
        rewriter.erase_dead(*operands)


@dataclass(frozen=True)
class RemoveIdentitiesPass(QcompPass):
    """Remove ops that do nothing."""

    name = "remove-identities"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [RemoveIdentity()])
