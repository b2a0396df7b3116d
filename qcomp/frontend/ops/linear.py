# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import product as times
from qcomp.frontend.ops.operands import total as plus
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.table import op


@op("linear.default")
def linear(b: Builder, node: Node) -> Result:
    """input times weight transposed, plus bias."""
    value, weight = b.tensor(node, "input"), b.tensor(node, "weight")
    if len(shape_of(weight)) == 1:
        product = _matmul(b, value, weight)
        bias = b.optional(node, "bias")
        return product if bias is None else plus(b, product, bias)
    return b.add(nn.LinearOp(value, weight, b.optional(node, "bias")))


@op("addmm.default")
def addmm(b: Builder, node: Node) -> Result:
    """beta * self + alpha * mat1 @ mat2; a linear layer when mat2 is a transposed matrix and self a vector."""
    bias, left, right = (b.tensor(node, name) for name in ("self", "mat1", "mat2"))
    beta, alpha = b.number(node, "beta", 1), b.number(node, "alpha", 1)
    source = _transposed(right)
    if source is not None and beta == alpha == 1 and shape_of(bias) == shape_of(right)[1:]:
        return b.add(nn.LinearOp(left, source, bias))
    return _addmm(b, node)


@in_float32
def _addmm(b: Builder, node: Node) -> Result:
    bias, left, right = (b.tensor(node, name) for name in ("self", "mat1", "mat2"))
    beta, alpha = b.number(node, "beta", 1), b.number(node, "alpha", 1)
    product = _scale(b, b.add(nn.MatmulOp(left, right)), alpha)
    return product if beta == 0 else plus(b, _scale(b, bias, beta), product)


def _scale(b: Builder, value: SSAValue, factor: float) -> SSAValue:
    return value if factor == 1 else times(b, value, b.scalar(factor, dtype_of(value)))


def _transposed(value: SSAValue) -> SSAValue | None:
    """The matrix that `value` is the transpose of, when it is one."""
    owner = value.owner
    if isinstance(owner, nn.PermuteOp) and ints(owner.dims) == (1, 0):
        return owner.input
    return None


@op("mm.default", "bmm.default", "matmul.default", "linalg_matmul.default")
def matmul(b: Builder, node: Node) -> Result:
    """torch.matmul: vectors count as a row on the left and as a column on the right."""
    left = b.tensor(node, "self")
    right = b.tensor(node, "mat2" if node.argument("mat2") is not None else "other")
    source = _transposed(right)
    if source is not None and shape_of(left):
        return b.add(nn.LinearOp(left, source))
    return _matmul(b, left, right)


@op("dot.default", "mv.default", "vdot.default", "inner.default")
def vector_product(b: Builder, node: Node) -> Result:
    """Products with a vector on the right; `inner` sums over the last dimensions of both."""
    left = b.tensor(node, "self")
    name = next(name for name in ("tensor", "vec", "other") if node.argument(name) is not None)
    right = b.tensor(node, name)
    if node.target != "aten.inner.default":
        return _matmul(b, left, right)
    if not shape_of(left) or not shape_of(right):
        return times(b, left, right)
    rows = _reshape(b, right, (prod(shape_of(right)[:-1]), shape_of(right)[-1]))
    product = _matmul(b, left, b.add(nn.PermuteOp(rows, (1, 0))))
    return _reshape(b, product, (*shape_of(left)[:-1], *shape_of(right)[:-1]))


@op("outer.default", "ger.default")
def outer(b: Builder, node: Node) -> Result:
    """Each element of one vector times each of another."""
    left, right = b.tensor(node, "self"), b.tensor(node, "vec2")
    return times(b, _reshape(b, left, (*shape_of(left), 1)), right)


def _combined(b: Builder, node: Node, product: SSAValue) -> SSAValue:
    """beta * self + alpha * product; self is not read when beta is 0."""
    product = _scale(b, product, b.number(node, "alpha", 1))
    beta = b.number(node, "beta", 1)
    return product if beta == 0 else plus(b, _scale(b, b.tensor(node, "self"), beta), product)


@op("baddbmm.default")
@in_float32
def baddbmm(b: Builder, node: Node) -> Result:
    """beta * self + alpha * batch1 @ batch2."""
    return _combined(b, node, _matmul(b, b.tensor(node, "batch1"), b.tensor(node, "batch2")))


@op("addbmm.default")
@in_float32
def addbmm(b: Builder, node: Node) -> Result:
    """The same, summed over the batch."""
    left, right = b.tensor(node, "batch1"), b.tensor(node, "batch2")
    (batch, rows, inner), columns = shape_of(left), shape_of(right)[-1]
    flat = _reshape(b, b.add(nn.PermuteOp(left, (1, 0, 2))), (rows, batch * inner))
    return _combined(b, node, b.add(nn.MatmulOp(flat, _reshape(b, right, (batch * inner, columns)))))


@op("addmv.default")
@in_float32
def addmv(b: Builder, node: Node) -> Result:
    """beta * self + alpha * mat @ vec."""
    return _combined(b, node, _matmul(b, b.tensor(node, "mat"), b.tensor(node, "vec")))


@op("addr.default")
@in_float32
def addr(b: Builder, node: Node) -> Result:
    """beta * self + alpha * outer(vec1, vec2)."""
    left, right = b.tensor(node, "vec1"), b.tensor(node, "vec2")
    return _combined(b, node, times(b, _reshape(b, left, (*shape_of(left), 1)), right))


@op("_int_mm.default")
def int_mm(b: Builder, node: Node) -> Result:
    """A product of bytes, summed in int32."""
    left, right = (b.cast(b.tensor(node, name), "int32") for name in ("self", "mat2"))
    return b.add(nn.MatmulOp(left, right))


@op("linalg_multi_dot.default", "chain_matmul.default")
def multi_dot(b: Builder, node: Node) -> Result:
    """A product of several matrices; the first and the last may be vectors."""
    product, *rest = b.tensors(node, "tensors" if node.argument("tensors") is not None else "matrices")
    for matrix in rest:
        product = _matmul(b, product, matrix)
    return product


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
