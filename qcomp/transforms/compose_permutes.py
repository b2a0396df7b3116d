# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""compose-permutes: a permute of a permute is one permute, or none; one that only moves unit dimensions is a reshape.

    %1 = nn.permute %0 {dims = array<i64: 2, 0, 1>} : tensor<2x3x5xf32> -> tensor<5x2x3xf32>
    %2 = nn.permute %1 {dims = array<i64: 0, 2, 1>} : tensor<5x2x3xf32> -> tensor<5x3x2xf32>
 => %2 = nn.permute %0 {dims = array<i64: 2, 1, 0>} : tensor<2x3x5xf32> -> tensor<5x3x2xf32>

Dimension i of permute(permute(x, p), q) is dimension p[q[i]] of x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from qcomp.dialects.nn import PermuteOp, ReshapeOp
from qcomp.dialects.nn.base import UNKNOWN, Shape, ints, shape, tensor
from qcomp.dialects.quant import encoding_of
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.remove_identities import RemoveIdentity
from qcomp.transforms.rewriting import Refusal, Rewriter, Rule, apply_rules


@dataclass(frozen=True)
class Composition:
    """The inner permute and the dims of the composed one."""

    inner: PermuteOp
    dims: Shape


class ComposePermutes(Rule[PermuteOp, Composition]):
    """permute(permute(x, p), q) => permute(x, p[q]). No precondition: the outer result type stays."""

    matches: ClassVar = PermuteOp

    def plan(self, op: PermuteOp) -> Composition | None:
        inner = op.input.owner
        if not isinstance(inner, PermuteOp):
            return None
        first = ints(inner.dims)
        return Composition(inner, tuple(first[axis] for axis in ints(op.dims)))

    def apply(self, op: PermuteOp, plan: Composition, rewriter: Rewriter) -> None:
        rewriter.replace(op, PermuteOp(plan.inner.input, plan.dims, tensor(op.result)))
        rewriter.erase_dead(plan.inner.result)


class PermuteOfUnitDims(Rule[PermuteOp, Shape]):
    """permute(x) => reshape(x).

    Precondition: the dimensions that are not statically 1 keep their order; one encoding per tensor, if any.
    """

    matches: ClassVar = PermuteOp

    def plan(self, op: PermuteOp) -> Shape | Refusal | None:
        sizes, dims = shape(op.input), ints(op.dims)
        moved = [axis for axis in dims if sizes[axis] != 1]
        if moved != sorted(moved) or dims == tuple(range(len(dims))):
            return None
        encoding = encoding_of(op.result.type)
        if encoding is not None and not encoding.per_tensor:
            return Refusal("the tensor is quantized per channel")
        if sizes.count(UNKNOWN) > 1:
            return Refusal("more than one dimension is unknown")
        return shape(op.result)

    def apply(self, op: PermuteOp, plan: Shape, rewriter: Rewriter) -> None:
        rewriter.replace(op, ReshapeOp(op.input, plan, tensor(op.result)))


@dataclass(frozen=True)
class ComposePermutesPass(QcompPass):
    """Merge chains of permutes."""

    name = "compose-permutes"
    letter: ClassVar[Letter] = Letter.EXACT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, [ComposePermutes(), RemoveIdentity(PermuteOp)])
        apply_rules(op, [PermuteOfUnitDims()])
