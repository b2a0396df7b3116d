# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses, which some models return beside their results or judge their input by (reconstruction errors)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.distance import vector_norm
from qcomp.frontend.ops.norm import log_softmax_along
from qcomp.frontend.ops.operands import (
    Operand,
    choose,
    compare,
    difference,
    is_float,
    product,
    quotient,
    total,
    unary,
)
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_NONE, _MEAN, _SUM = 0, 1, 2


def _sum(b: Builder, value: SSAValue, axes: Sequence[int] | None = None) -> SSAValue:
    axes = range(len(shape_of(value))) if axes is None else axes
    return b.add(nn.SumOp(value, axes, False)) if len(axes) else value


def _reduced(b: Builder, node: Node, value: SSAValue) -> SSAValue:
    """The losses as they are, their mean or their sum."""
    how = b.integer(node, "reduction", _MEAN)
    if how == _NONE:
        return value
    if how == _SUM:
        return _sum(b, value)
    return quotient(b, _sum(b, value), b.scalar(prod(shape_of(value)), dtype_of(value)))


def _require_floats(*values: SSAValue) -> None:
    if not all(is_float(dtype_of(value)) for value in values):
        raise QcompError("of whole numbers is not supported", code="unsupported-dtype", hint="cast them to float first")


def _negative(b: Builder, value: SSAValue) -> SSAValue:
    return b.add(nn.NegOp(value))


def _positive(b: Builder, value: SSAValue) -> SSAValue:
    """max(value, 0)."""
    return b.add(nn.MaximumOp(value, b.scalar(0, dtype_of(value))))


Pointwise = Callable[[Builder, Node, SSAValue, SSAValue], SSAValue]


def _register(name: str, formula: Pointwise) -> None:
    @op(f"{name}.default")
    @in_float32
    def _(b: Builder, node: Node) -> Result:
        first = "input" if node.argument("self") is None else "self"
        return _reduced(b, node, formula(b, node, b.tensor(node, first), b.tensor(node, "target")))


def _squared(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    apart = difference(b, value, target)
    return product(b, apart, apart)


def _absolute(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    return b.add(nn.AbsOp(difference(b, value, target)))


def _smooth(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    """A parabola below `beta` or `delta`, a line above; huber's is `delta` times the other."""
    huber = "huber" in node.target
    bound = b.real(node, "delta" if huber else "beta", 1.0)
    apart = _absolute(b, node, value, target)
    if bound == 0 and not huber:
        return apart
    curve = product(b, product(b, apart, apart), 0.5 if huber else 0.5 / bound)
    line = difference(b, apart, 0.5 * bound)
    return choose(b, compare(b, "lt", apart, bound), curve, product(b, line, bound) if huber else line)


def _divergence(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    if b.flag(node, "log_target"):
        return product(b, b.add(nn.ExpOp(target)), difference(b, target, value))
    entropy = b.add(nn.BinaryFunctionOp.of("xlogy", target, target))
    return difference(b, entropy, product(b, target, value))


def _soft_margin(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    return unary(b, "log1p", b.add(nn.ExpOp(_negative(b, product(b, target, value)))))


def _hinge(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    """The value where the target is 1, what lacks to the margin where it is -1."""
    zero = b.scalar(0.0, dtype_of(value))
    far = choose(b, compare(b, "ne", target, 1), _positive(b, difference(b, b.real(node, "margin", 1.0), value)), zero)
    return total(b, far, choose(b, compare(b, "ne", target, -1), value, zero))


def _poisson(b: Builder, node: Node, value: SSAValue, target: SSAValue) -> SSAValue:
    _require_floats(value, target)
    if b.flag(node, "log_input"):
        loss = difference(b, b.add(nn.ExpOp(value)), product(b, target, value))
    else:
        loss = difference(b, value, product(b, target, unary(b, "log", total(b, value, b.real(node, "eps")))))
    if not b.flag(node, "full"):
        return loss
    stirling = difference(b, product(b, target, unary(b, "log", target)), target)
    stirling = total(b, stirling, product(b, unary(b, "log", product(b, target, 2 * pi)), 0.5))
    return total(b, loss, choose(b, compare(b, "gt", target, 1), stirling, 0.0, dtype_of(stirling)))


for _name, _formula in (
    ("mse_loss", _squared), ("l1_loss", _absolute), ("smooth_l1_loss", _smooth), ("huber_loss", _smooth),
    ("kl_div", _divergence), ("soft_margin_loss", _soft_margin), ("hinge_embedding_loss", _hinge),
    ("poisson_nll_loss", _poisson),
):  # fmt: skip
    _register(_name, _formula)


@op("binary_cross_entropy.default", "binary_cross_entropy_with_logits.default")
@in_float32
def binary_cross_entropy(b: Builder, node: Node) -> Result:
    """-(t log p + (1 - t) log(1 - p)) with logarithms of at least -100; p is the sigmoid of logits."""
    value, target, weight = b.tensor(node, "self"), b.tensor(node, "target"), b.optional(node, "weight")
    rest = difference(b, 1.0, target)
    if "logits" in node.target:
        positive = b.optional(node, "pos_weight")
        factor = rest if positive is None else difference(b, 1.0, target)
        own = unary(b, "log_sigmoid", value)
        # log(1 - sigmoid(x)) = log_sigmoid(x) - x
        other = product(b, factor, difference(b, own, value))
        first = product(b, target, own) if positive is None else product(b, positive, target, own)
        loss = _negative(b, total(b, first, other))
    else:
        floor = b.scalar(-100.0, dtype_of(value))
        logs = [b.add(nn.MaximumOp(unary(b, name, part), floor)) for name, part in
                (("log", value), ("log1p", _negative(b, value)))]  # fmt: skip
        loss = _negative(b, total(b, product(b, target, logs[0]), product(b, rest, logs[1])))
    return _reduced(b, node, loss if weight is None else product(b, loss, weight))


@op("margin_ranking_loss.default")
@in_float32
def margin_ranking(b: Builder, node: Node) -> Result:
    """max(0, -target * (input1 - input2) + margin)."""
    first, second, target = (b.tensor(node, name) for name in ("input1", "input2", "target"))
    order = product(b, _negative(b, target), difference(b, first, second))
    return _reduced(b, node, _positive(b, total(b, order, b.real(node, "margin", 0.0))))


@op("triplet_margin_loss.default")
@in_float32
def triplet_margin(b: Builder, node: Node) -> Result:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin)."""
    anchor, near, far = (b.tensor(node, name) for name in ("anchor", "positive", "negative"))
    order, eps = b.real(node, "p", 2.0), b.real(node, "eps", 1e-6)

    def apart(left: SSAValue, right: SSAValue) -> SSAValue:
        moved = total(b, difference(b, left, right), eps)
        return vector_norm(b, moved, order, (len(shape_of(moved)) - 1,), False)

    distant = apart(anchor, far)
    if b.flag(node, "swap"):
        distant = b.add(nn.MinimumOp(distant, apart(near, far)))
    loss = total(b, difference(b, apart(anchor, near), distant), b.real(node, "margin", 1.0))
    return _reduced(b, node, _positive(b, loss))


def _picked(b: Builder, node: Node, logs: SSAValue, axis: int, smoothing: float) -> tuple[SSAValue, SSAValue]:
    """(losses of classes by number, their weights), both 0 where the class is `ignore_index`."""
    target, weight, dtype = b.cast(b.tensor(node, "target"), "int64"), b.optional(node, "weight"), dtype_of(logs)
    shape, classes = shape_of(logs), shape_of(logs)[axis]
    ignored = compare(b, "eq", target, b.integer(node, "ignore_index", -100))
    safe = choose(b, ignored, b.scalar(0, "int64"), target, "int64")
    index = reshape_to(b, safe, (*shape[:axis], 1, *shape[axis + 1 :]))
    own = _negative(b, reshape_to(b, b.add(nn.GatherOp(logs, index, axis)), shape_of(target)))
    weights = b.scalar(1.0, dtype)
    if weight is not None:
        flat = b.add(nn.GatherOp(weight, reshape_to(b, safe, (prod(shape_of(safe)),)), 0))
        weights = reshape_to(b, flat, shape_of(target))
    zero = b.scalar(0.0, dtype)
    weights = choose(b, ignored, zero, b.expand(weights, shape_of(target)), dtype)
    loss = product(b, choose(b, ignored, zero, own, dtype), weights)
    if smoothing:
        spread = logs if weight is None else product(b, logs, _per_class(b, weight, len(shape), axis))
        every = choose(b, ignored, zero, _negative(b, _sum(b, spread, (axis,))), dtype)
        loss = total(b, product(b, loss, 1.0 - smoothing), product(b, every, smoothing / classes))
    return loss, weights


def _per_class(b: Builder, weight: SSAValue, rank: int, axis: int) -> SSAValue:
    return reshape_to(b, weight, (*shape_of(weight), *(1 for _ in range(rank - axis - 1))))


def _of_classes(b: Builder, node: Node, logs: SSAValue, axis: int, smoothing: float = 0.0) -> list[SSAValue]:
    """(losses reduced, sum of the weights)"""
    loss, weights = _picked(b, node, logs, axis, smoothing)
    how, weight = b.integer(node, "reduction", _MEAN), _sum(b, weights)
    if how == _NONE:
        return [loss, b.scalar(0.0, dtype_of(logs))]
    return [quotient(b, _sum(b, loss), weight) if how == _MEAN else _sum(b, loss), weight]


@op("nll_loss.default", "nll_loss_nd.default", "nll_loss2d.default", "nll_loss_forward.default",
    "nll_loss2d_forward.default")  # fmt: skip
@in_float32
def nll_loss(b: Builder, node: Node) -> Result:
    """Minus the logarithm of the probability of the class; the mean is weighted."""
    value = b.tensor(node, "self")
    found = _of_classes(b, node, value, min(len(shape_of(value)) - 1, 1))
    return found if "forward" in node.target else found[0]


@op("cross_entropy_loss.default")
@in_float32
def cross_entropy(b: Builder, node: Node) -> Result:
    """The same of a softmax over the classes, or with probabilities of all classes as target."""
    value, target = b.tensor(node, "self"), b.tensor(node, "target")
    axis, smoothing = min(len(shape_of(value)) - 1, 1), b.real(node, "label_smoothing", 0.0)
    logs = log_softmax_along(b, value, axis)
    if not is_float(dtype_of(target)):
        return _of_classes(b, node, logs, axis, smoothing)[0]
    if shape_of(target) != shape_of(value):
        raise QcompError("probabilities of another shape than the input", code="malformed-graph")
    if smoothing:
        target = total(b, product(b, target, 1.0 - smoothing), smoothing / shape_of(value)[axis])
    weighted = product(b, logs, target)
    weight = b.optional(node, "weight")
    if weight is not None:
        weighted = product(b, weighted, _per_class(b, weight, len(shape_of(value)), axis))
    return _reduced(b, node, _negative(b, _sum(b, weighted, (axis,))))


@op("cosine_embedding_loss.default")
@in_float32
def cosine_embedding(b: Builder, node: Node) -> Result:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    first, second, target = (b.tensor(node, name) for name in ("input1", "input2", "target"))
    _require_floats(first, second)
    eps = 1e-12

    def dot(left: Operand, right: Operand) -> SSAValue:
        return _sum(b, product(b, left, right), (len(shape_of(first)) - 1,))

    sizes = product(b, total(b, dot(first, first), eps), total(b, dot(second, second), eps))
    cosine = quotient(b, dot(first, second), b.add(nn.SqrtOp(sizes)))
    zero = b.scalar(0.0, dtype_of(cosine))
    alike = choose(b, compare(b, "eq", target, 1), difference(b, 1.0, cosine), zero)
    apart = _positive(b, difference(b, cosine, b.real(node, "margin", 0.0)))
    return _reduced(b, node, total(b, alike, choose(b, compare(b, "eq", target, -1), apart, zero)))
