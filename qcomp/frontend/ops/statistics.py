# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variances, norms of vectors, and logarithms of sums of exponentials."""

from __future__ import annotations

from math import inf, prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Number, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.arithmetic import add, divide, multiply, subtract
from qcomp.frontend.ops.operands import choose, compare, floating, is_float, unary
from qcomp.frontend.ops.places import fixed_shape
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


def axes_of(b: Builder, node: Node, value: SSAValue) -> list[int]:
    """The argument `dim`, counted from 0; all dimensions without one."""
    rank = len(shape_of(value))
    given = node.argument("dim")
    dims = () if given is None else (b.integer(node, "dim"),) if isinstance(given, int) else b.integers(node, "dim")
    return [axis_of(axis, rank) for axis in dims] if dims and rank else list(range(rank))


def _raised(b: Builder, value: SSAValue) -> SSAValue:
    """A scalar as one element."""
    return value if shape_of(value) else reshape_to(b, value, (1,))


@op("special_logsumexp.default")
def logsumexp(b: Builder, node: Node) -> Result:
    """max + log(sum(exp(x - max))); where the maximum is infinite it counts as 0."""
    value = floating(b, b.tensor(node, "self"))
    axes, shape = axes_of(b, node, value), fixed_shape(value)
    if 0 in shape:
        raise QcompError("logsumexp of an empty tensor", code="unsupported-op")
    raised = _raised(b, value)
    axes = axes or [0]
    largest = b.add(nn.AmaxOp(raised, axes, True))
    largest = choose(b, compare(b, "eq", b.add(nn.AbsOp(largest)), inf), 0.0, largest, dtype_of(value))
    total = b.add(nn.SumOp(b.add(nn.ExpOp(subtract(b, raised, largest))), axes, True))
    return _shaped(b, node, add(b, unary(b, "log", total), largest), shape, axes)


def _shaped(b: Builder, node: Node, kept: SSAValue, shape: tuple[int, ...], axes: list[int]) -> SSAValue:
    """A result with its reduced dimensions kept, as `keepdim` wants it."""
    if not shape:
        return reshape_to(b, kept, ())
    keep = b.flag(node, "keepdim")
    return kept if keep else reshape_to(b, kept, [size for axis, size in enumerate(shape) if axis not in axes])


def _correction(b: Builder, node: Node) -> Number:
    if node.target.endswith(".correction"):
        return 1 if node.argument("correction") is None else b.number(node, "correction")
    return int(b.flag(node, "unbiased", True))


def _variance(b: Builder, node: Node) -> tuple[SSAValue, SSAValue]:
    """(variance, mean): the squared distance from the mean, summed, over the count less the correction."""
    value = b.tensor(node, "self")
    if not is_float(dtype_of(value)):
        raise QcompError("a variance of integers", code="unsupported-dtype")
    axes, shape = axes_of(b, node, value), fixed_shape(value)
    raised = _raised(b, value)
    axes = axes or [0]
    mean = b.add(nn.MeanOp(raised, axes, True))
    moved = subtract(b, raised, mean)
    total = b.add(nn.SumOp(multiply(b, moved, moved), axes, True))
    count = prod(shape_of(raised)[axis] for axis in axes)
    spread = divide(b, total, float(max(count - _correction(b, node), 0)))
    return _shaped(b, node, spread, shape, axes), _shaped(b, node, mean, shape, axes)


def var(b: Builder, node: Node) -> Result:
    """Variance."""
    return _variance(b, node)[0]


def std(b: Builder, node: Node) -> Result:
    """Standard deviation."""
    return b.add(nn.SqrtOp(_variance(b, node)[0]))


def var_mean(b: Builder, node: Node) -> Result:
    """Variance and mean."""
    return list(_variance(b, node))


def std_mean(b: Builder, node: Node) -> Result:
    """Standard deviation and mean."""
    variance, mean = _variance(b, node)
    return [b.add(nn.SqrtOp(variance)), mean]


def vector_norm(b: Builder, node: Node) -> Result:
    """The norm of order 0, 1, 2, inf or -inf over `dim`."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    value = value if dtype is None else b.cast(value, dtype)
    axes, shape = axes_of(b, node, value), fixed_shape(value)
    raised, axes, order = _raised(b, value), axes or [0], b.number(node, "ord", 2)
    return _shaped(b, node, _norm(b, raised, axes, order), shape, axes)


def _norm(b: Builder, value: SSAValue, axes: list[int], order: Number) -> SSAValue:
    size = b.add(nn.AbsOp(value))
    if order == 2:
        return b.add(nn.SqrtOp(b.add(nn.SumOp(multiply(b, value, value), axes, True))))
    if order == 1:
        return b.add(nn.SumOp(size, axes, True))
    if order == 0:
        return b.add(nn.SumOp(b.cast(compare(b, "ne", value, 0.0), dtype_of(value)), axes, True))
    if order == inf:
        return b.add(nn.AmaxOp(size, axes, True))
    if order == -inf:
        return b.add(nn.NegOp(b.add(nn.AmaxOp(b.add(nn.NegOp(size)), axes, True))))
    raise QcompError(f"a norm of order {order}", code="unsupported-op", hint="0, 1, 2, inf and -inf are")


def _not_zero(b: Builder, node: Node, invert: bool) -> SSAValue:
    """Whether any element over `dim` is not 0; inverted: is 0. Counted in float32, which never misses one."""
    value = b.tensor(node, "self")
    axes, shape = axes_of(b, node, value), fixed_shape(value)
    hit = b.cast(compare(b, "eq" if invert else "ne", _raised(b, value), b.scalar(0, dtype_of(value))), "float32")
    count = b.add(nn.SumOp(hit, axes or [0], True))
    found = compare(b, "eq" if invert else "ne", count, 0.0)
    found = b.cast(found, "uint8") if dtype_of(value) == "uint8" else found
    return _shaped(b, node, found, shape, axes or [0])


def any_(b: Builder, node: Node) -> Result:
    """Whether an element is not 0."""
    return _not_zero(b, node, False)


def all_(b: Builder, node: Node) -> Result:
    """Whether no element is 0."""
    return _not_zero(b, node, True)
