# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


@op("linear.default")
def linear(b: Builder, node: Node) -> Result:
    """input times weight transposed, plus bias."""
    value, weight = b.tensor(node, "input"), b.tensor(node, "weight")
    if len(shape_of(weight)) == 1:
        product = _matmul(b, value, weight)
        bias = b.optional(node, "bias")
        return product if bias is None else b.add(nn.AddOp(product, bias))
    return b.add(nn.LinearOp(value, weight, b.optional(node, "bias")))


@op("addmm.default")
def addmm(b: Builder, node: Node) -> Result:
    """beta * self + alpha * mat1 @ mat2; a linear layer when mat2 is a transposed matrix and self a vector."""
    bias, left, right = (b.tensor(node, name) for name in ("self", "mat1", "mat2"))
    beta, alpha = b.number(node, "beta", 1), b.number(node, "alpha", 1)
    source = _transposed(right)
    if source is not None and beta == alpha == 1 and shape_of(bias) == shape_of(right)[1:]:
        return b.add(nn.LinearOp(left, source, bias))
    product = _scale(b, b.add(nn.MatmulOp(left, right)), alpha)
    return product if beta == 0 else b.add(nn.AddOp(_scale(b, bias, beta), product))


def _scale(b: Builder, value: SSAValue, factor: float) -> SSAValue:
    return value if factor == 1 else b.add(nn.MulOp(value, b.scalar(factor, dtype_of(value))))


def _transposed(value: SSAValue) -> SSAValue | None:
    """The matrix that `value` is the transpose of, when it is one."""
    owner = value.owner
    if isinstance(owner, nn.PermuteOp) and ints(owner.dims) == (1, 0):
        return owner.input
    return None


@op("mm.default", "bmm.default", "matmul.default")
def matmul(b: Builder, node: Node) -> Result:
    """torch.matmul: vectors count as a row on the left and as a column on the right."""
    left = b.tensor(node, "self")
    right = b.tensor(node, "mat2" if node.argument("mat2") is not None else "other")
    source = _transposed(right)
    if source is not None and shape_of(left):
        return b.add(nn.LinearOp(left, source))
    return _matmul(b, left, right)


@op("dot.default", "mv.default")
def vector_product(b: Builder, node: Node) -> Result:
    """Products with a vector on the right."""
    return _matmul(b, b.tensor(node, "self"), b.tensor(node, "tensor" if node.argument("tensor") else "vec"))


@op("baddbmm.default")
def baddbmm(b: Builder, node: Node) -> Result:
    """beta * self + alpha * batch1 @ batch2."""
    product = _scale(b, _matmul(b, b.tensor(node, "batch1"), b.tensor(node, "batch2")), b.number(node, "alpha", 1))
    beta = b.number(node, "beta", 1)
    return product if beta == 0 else b.add(nn.AddOp(_scale(b, b.tensor(node, "self"), beta), product))


def _matmul(b: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
    ranks = len(shape_of(left)), len(shape_of(right))
    if 0 in ranks:
        raise QcompError("matmul of a 0-d tensor", code="malformed-graph")
    if ranks[0] == 1:
        left = _reshape(b, left, (1, *shape_of(left)))
    if ranks[1] == 1:
        right = _reshape(b, right, (*shape_of(right), 1))
    result = b.add(nn.MatmulOp(left, right))
    sizes = list(shape_of(result))
    if ranks[1] == 1:
        sizes.pop(-1)
    if ranks[0] == 1:
        sizes.pop(-1 if ranks[1] == 1 else -2)
    return _reshape(b, result, sizes)


def _reshape(b: Builder, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
    return value if shape_of(value) == tuple(sizes) else b.add(nn.ReshapeOp(value, sizes))
