# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting, running totals, extremes with their places, statistics."""

from __future__ import annotations

import math
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic, larger
from qcomp.frontend.builder import Builder, Number, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.arithmetic import centred
from qcomp.frontend.ops.operands import (
    HALF,
    choose,
    compare,
    difference,
    floating,
    is_float,
    quotient,
    unary,
)
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


def _line(b: Builder, node: Node, default: int = -1) -> tuple[SSAValue, int, tuple[int, ...]]:
    """(tensor of at least one dimension, axis, original shape)"""
    value = b.tensor(node, "self")
    shape = shape_of(value)
    wide = value if shape else reshape_to(b, value, (1,))
    return wide, axis_of(b.integer(node, "dim", default), len(shape_of(wide))), shape


def _sorted(b: Builder, value: SSAValue, axis: int, descending: bool) -> tuple[SSAValue, SSAValue]:
    places = b.add(nn.ArgsortOp(value, axis, descending))
    return b.add(nn.GatherOp(value, places, axis)), places


@op("sort.default", "sort.stable")
def sort(b: Builder, node: Node) -> Result:
    """Values and their places; equal ones keep their order."""
    value, axis, shape = _line(b, node)
    return [reshape_to(b, item, shape) for item in _sorted(b, value, axis, b.flag(node, "descending"))]


@op("argsort.default", "argsort.stable", "msort.default")
def argsort(b: Builder, node: Node) -> Result:
    """The places of sort; msort: its values along dimension 0."""
    if node.target == "aten.msort.default":
        value = b.tensor(node, "self")
        return _sorted(b, value, 0, False)[0] if shape_of(value) else value
    value, axis, shape = _line(b, node)
    return reshape_to(b, b.add(nn.ArgsortOp(value, axis, b.flag(node, "descending"))), shape)


@op("topk.default")
def topk(b: Builder, node: Node) -> Result:
    """The first k of a sort."""
    value, axis, shape = _line(b, node)
    count = b.integer(node, "k")
    places = b.add(nn.ArgsortOp(value, axis, b.flag(node, "largest", True)))
    places = b.add(nn.SliceOp(places, axis, 0, count)) if count != shape_of(value)[axis] else places
    found = (b.add(nn.GatherOp(value, places, axis)), places)
    return [item if shape else reshape_to(b, item, ()) for item in found]


@op("kthvalue.default")
def kthvalue(b: Builder, node: Node) -> Result:
    """Element k of a sort, counted from 1."""
    value, axis, shape = _line(b, node)
    count = b.integer(node, "k")
    places = b.add(nn.SliceOp(b.add(nn.ArgsortOp(value, axis, False)), axis, count - 1, count))
    kept = [size for place, size in enumerate(shape) if place != axis]
    found = (b.add(nn.GatherOp(value, places, axis)), places)
    keep = b.flag(node, "keepdim")
    return [reshape_to(b, item, shape if not shape else shape_of(item) if keep else kept) for item in found]


def _register_extreme(name: str, make: type[nn.ReduceOp], place: type[nn.ArgOp]) -> None:
    @op(f"{name}.dim")
    def _(b: Builder, node: Node) -> Result:
        value, axis, shape = _line(b, node)
        keep = b.flag(node, "keepdim")
        found = (b.add(make(value, (axis,), keep)), b.add(place(value, axis, keep)))
        return [item if shape else reshape_to(b, item, ()) for item in found]

    @op(f"arg{name}.default")
    def _(b: Builder, node: Node) -> Result:
        if node.argument("dim") is None:
            value = b.tensor(node, "self")
            shape = shape_of(value)
            found = b.add(place(reshape_to(b, value, (prod(shape),)), 0, False))
            return reshape_to(b, found, (1,) * len(shape) if b.flag(node, "keepdim") else ())
        value, axis, shape = _line(b, node)
        found = b.add(place(value, axis, b.flag(node, "keepdim")))
        return found if shape else reshape_to(b, found, ())


_register_extreme("max", nn.AmaxOp, nn.ArgmaxOp)
_register_extreme("min", nn.AminOp, nn.ArgminOp)


def _register_scan(name: str, kind: str) -> None:
    @op(f"{name}.default")
    def _(b: Builder, node: Node) -> Result:
        value, axis, shape = _line(b, node)
        dtype = b.dtype(node) or dtype_of(value)
        if b.dtype(node) is None and kind in ("add", "mul") and not is_float(dtype):
            dtype = "int64"
        value = b.cast(value, dtype)
        kinds = (kind, f"arg{kind}") if kind in ("max", "min") else (kind,)
        found = [reshape_to(b, b.add(nn.ScanOp(each, value, axis)), shape) for each in kinds]
        return found if len(found) > 1 else found[0]


for _name, _kind in (
    ("cumsum", "add"), ("cumprod", "mul"), ("cummax", "max"), ("cummin", "min"), ("logcumsumexp", "logaddexp"),
):  # fmt: skip
    _register_scan(_name, _kind)


def axes_of(b: Builder, node: Node, value: SSAValue) -> tuple[int, ...]:
    """The argument `dim`; all dimensions when it is missing or empty."""
    rank = len(shape_of(value))
    dims = b.integers(node, "dim") if node.argument("dim") is not None else ()
    return tuple(axis_of(axis, rank) for axis in dims) if dims and rank else tuple(range(rank))


@op("amin.default", "min.default")
def amin(b: Builder, node: Node) -> Result:
    """Smallest element."""
    value = b.tensor(node, "self")
    return b.add(nn.AminOp(value, axes_of(b, node, value), b.flag(node, "keepdim")))


@op("aminmax.default")
def aminmax(b: Builder, node: Node) -> Result:
    """Smallest and largest element."""
    value = b.tensor(node, "self")
    axes, keep = axes_of(b, node, value), b.flag(node, "keepdim")
    return [b.add(make(value, axes, keep)) for make in (nn.AminOp, nn.AmaxOp)]


@op("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def any_all(b: Builder, node: Node) -> Result:
    """Whether one, or each, is not 0."""
    value = b.tensor(node, "self")
    dtype, whole = dtype_of(value), "all" in node.target
    truth = b.cast(value, "bool")
    axes, keep = axes_of(b, node, value), b.flag(node, "keepdim")
    # A sum and a count of zeros are right for no elements too.
    counted = choose(b, truth, 0, 1, "int32") if whole else b.cast(truth, "int32")
    total = b.add(nn.SumOp(counted, axes, keep)) if shape_of(value) else counted
    found = compare(b, "eq" if whole else "ne", total, b.scalar(0, "int32"))
    return b.cast(found, "uint8") if dtype == "uint8" else found


@op("prod.default", "prod.dim_int")
def product(b: Builder, node: Node) -> Result:
    """Product; of integers in int64."""
    value = b.tensor(node, "self")
    dtype = b.dtype(node) or (dtype_of(value) if is_float(dtype_of(value)) else "int64")
    axes = axes_of(b, node, value)
    value = b.cast(value, dtype)
    return b.add(nn.ProdOp(value, axes, b.flag(node, "keepdim"))) if shape_of(value) else value


@op("count_nonzero.default", "count_nonzero.dim_IntList")
def count_nonzero(b: Builder, node: Node) -> Result:
    """How many are not 0."""
    value = b.tensor(node, "self")
    counted = b.cast(b.cast(value, "bool"), "int64")
    return b.add(nn.SumOp(counted, axes_of(b, node, value), False)) if shape_of(value) else counted


def _divisor(b: Builder, count: int, less: Number, dtype: str) -> SSAValue:
    """count - less, at least 0."""
    if not is_symbolic(count):
        return b.scalar(float(max(count - less, 0)), dtype)
    if int(less) == less:
        return b.scalar(larger(count - int(less), 0), dtype)
    left = difference(b, b.scalar(count, dtype), less)
    return b.add(nn.ClampOp.of(left, 0.0, math.inf))


def _moments(b: Builder, node: Node) -> tuple[SSAValue, SSAValue, str]:
    """(variance, mean, dtype), computed in float32 for 16-bit floats."""
    value = b.tensor(node, "self")
    dtype = dtype_of(value)
    value = b.cast(value, "float32") if dtype in HALF else value
    axes, keep = axes_of(b, node, value), b.flag(node, "keepdim")
    less: Number = 1
    if node.argument("unbiased") is not None:
        less = int(b.flag(node, "unbiased"))
    elif node.argument("correction") is not None:
        less = b.number(node, "correction")
    sizes = shape_of(value)
    count = prod(sizes[axis] for axis in axes)
    mean, apart = centred(b, value, axes)
    total = b.add(nn.SumOp(b.add(nn.MulOp(apart, apart)), axes, keep))
    variance = quotient(b, total, _divisor(b, count, less, dtype_of(value)))
    shown = mean if keep else reshape_to(b, mean, [size for axis, size in enumerate(sizes) if axis not in axes])
    return variance, shown, dtype


def _register_moments(name: str, root: bool, both: bool) -> None:
    @op(f"{name}.correction", f"{name}.default", f"{name}.dim")
    def _(b: Builder, node: Node) -> Result:
        variance, mean, dtype = _moments(b, node)
        spread = b.cast(b.add(nn.SqrtOp(variance)) if root else variance, dtype)
        return [spread, b.cast(mean, dtype)] if both else spread


for _name in ("var", "std", "var_mean", "std_mean"):
    _register_moments(_name, _name.startswith("std"), _name.endswith("mean"))


@op("logsumexp.default", "special_logsumexp.default")
def logsumexp(b: Builder, node: Node) -> Result:
    """The logarithm of a sum of exponentials, from the largest on."""
    value = floating(b, b.tensor(node, "self"))
    dtype = dtype_of(value)
    value = b.cast(value, "float32") if dtype in HALF else value
    axes, keep = axes_of(b, node, value), b.flag(node, "keepdim")
    if not shape_of(value):
        return b.cast(value, dtype)
    largest = b.add(nn.AmaxOp(value, axes, True))
    zero = b.scalar(0, dtype_of(value))
    infinite = compare(b, "eq", b.add(nn.AbsOp(largest)), b.scalar(math.inf, dtype_of(value)))
    shift = choose(b, infinite, zero, largest)
    total = b.add(nn.SumOp(b.add(nn.ExpOp(difference(b, value, shift))), axes, keep))
    shown = shift if keep else reshape_to(b, shift, shape_of(total))
    return b.cast(b.add(nn.AddOp(unary(b, "log", total), shown)), dtype)
