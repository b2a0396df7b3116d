# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements written, and combined, at index tensors."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.indexing import Indexed, at_least_1d, wrapped
from qcomp.frontend.ops.operands import function, is_float, operand, quotient
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op
from qcomp.frontend.size_facts import require_same

_REDUCTIONS = {
    "sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min",
}  # fmt: skip


def put_at(b: Builder, node: Node, base: SSAValue, accumulate: bool) -> SSAValue:
    """`values` put, or added, where the index tensors of an index_put point to."""
    found = Indexed(b, node, base)
    values = b.expand(b.cast(b.tensor(node, "values"), dtype_of(base)), found.shape)
    count = prod(found.grid)
    source = reshape_to(b, values, (*found.sizes[: found.first], count, *found.sizes[found.last :]))
    joined = found.joined(base)
    if accumulate:
        return found.parted(scattered(b, joined, found.number, source, found.first, "add"))
    indices = reshape_to(b, found.number, (count,))
    return found.parted(b.add(nn.IndexCopyOp(joined, source, indices, found.first)))


def scattered(
    b: Builder, base: SSAValue, index: SSAValue, source: SSAValue, dim: int, reduce: str
) -> SSAValue:  # fmt: skip
    """nn.scatter; 16-bit floats are combined in float32 and rounded once, truth values by or and and.

    Where the index has elements of its own it is as long as `source`, which the export does not check.
    """
    for length, size in zip(shape_of(index), shape_of(source), strict=True):
        if length != 1:
            require_same(b, length, size)
    dtype = dtype_of(base)
    wide = "float32" if reduce != "none" and dtype in ("float16", "bfloat16") else dtype
    if dtype == "bool" and reduce != "none":
        wide = "int32"
    done = b.add(nn.ScatterOp(b.cast(base, wide), index, b.cast(source, wide), dim, reduce))
    return b.cast(done, dtype)


def _neutral(dtype: str, reduce: str) -> float | int:
    """What a combination starts from."""
    if reduce in ("add", "mul"):
        return int(reduce == "mul")
    if dtype == "bool":
        return int(reduce == "min")
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        return int(limits.min if reduce == "max" else limits.max)
    return -np.inf if reduce == "max" else np.inf


def _scatter(
    b: Builder,
    node: Node,
    source: SSAValue | None,
    reduce: str,
    include_self: bool = True,
    base: SSAValue | None = None,
) -> SSAValue:
    """scatter of a tensor, or of the number `value`, into `base`, in the shape of the index."""
    base = b.tensor(node, "self") if base is None else base
    sizes, dtype = shape_of(base), dtype_of(base)
    index = b.cast(at_least_1d(b, b.tensor(node, "index")), "int64")
    picked, wide = shape_of(index), at_least_1d(b, base)
    dim = axis_of(b.integer(node, "dim"), len(sizes))
    given = b.scalar(b.number(node, "value"), dtype) if source is None else at_least_1d(b, b.cast(source, dtype))
    if source is not None:
        for axis, size in enumerate(picked):
            if size != shape_of(given)[axis]:
                given = b.add(nn.SliceOp(given, axis, 0, size))
    if not include_self:
        start = b.expand(b.scalar(_neutral(dtype, reduce), dtype), picked)
        wide = scattered(b, wide, index, start, dim, "none")
    return reshape_to(b, scattered(b, wide, index, b.expand(given, picked), dim, reduce), sizes)


def _reduction(b: Builder, node: Node) -> str:
    name = b.text(node, "reduce")
    if name not in _REDUCTIONS:
        raise QcompError(f"scatter with reduce {name} is not supported", code="unsupported-op")
    return _REDUCTIONS[name]


@op("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(b: Builder, node: Node) -> Result:
    """Elements of src, or a number, put at index."""
    source = None if "value" in node.target else b.tensor(node, "src")
    return _scatter(b, node, source, _reduction(b, node) if "reduce" in node.target else "none")


@op("scatter_add.default")
def scatter_add(b: Builder, node: Node) -> Result:
    """Elements of src added at index."""
    return _scatter(b, node, b.tensor(node, "src"), "add")


@op("scatter_reduce.two")
def scatter_reduce(b: Builder, node: Node) -> Result:
    """Elements of src combined with what is at index."""
    include = b.flag(node, "include_self", True)
    if b.text(node, "reduce") != "mean":
        return _scatter(b, node, b.tensor(node, "src"), _reduction(b, node), include)
    source = b.tensor(node, "src")
    base, ones = (b.expand(b.scalar(1, "int64"), shape_of(value)) for value in (b.tensor(node, "self"), source))
    total = _scatter(b, node, source, "add", include)
    return _shared(b, total, _scatter(b, node, ones, "add", include, base))


def _shared(b: Builder, total: SSAValue, count: SSAValue) -> SSAValue:
    """The mean; that of whole numbers is rounded down."""
    dtype = dtype_of(total)
    count = b.cast(count, dtype)
    return quotient(b, total, count) if is_float(dtype) else function(b, "floor_divide", total, count)


@op("index_reduce.default")
def index_reduce(b: Builder, node: Node) -> Result:
    """Elements of source combined with elements of one dimension."""
    base, source, include = b.tensor(node, "self"), b.tensor(node, "source"), b.flag(node, "include_self", True)
    dim, spread = _rows(b, node, base)
    name = b.text(node, "reduce")

    def combined(start: SSAValue, given: SSAValue, reduce: str) -> SSAValue:
        wide, given = at_least_1d(b, start), at_least_1d(b, given)
        if not include:
            neutral = b.scalar(_neutral(dtype_of(start), reduce), dtype_of(start))
            wide = scattered(b, wide, spread, b.expand(neutral, shape_of(given)), dim, "none")
        return reshape_to(b, scattered(b, wide, spread, given, dim, reduce), shape_of(base))

    if name != "mean":
        return combined(base, source, _reduction(b, node))
    start, ones = (b.expand(b.scalar(1, "int64"), shape_of(value)) for value in (base, source))
    return _shared(b, combined(base, source, "add"), combined(start, ones, "add"))


def _rows(b: Builder, node: Node, base: SSAValue) -> tuple[int, SSAValue]:
    """(dimension, index tensor shaped to broadcast along it)"""
    rank = max(len(shape_of(base)), 1)
    dim = axis_of(b.integer(node, "dim"), rank)
    index = b.cast(at_least_1d(b, b.tensor(node, "index")), "int64")
    return dim, reshape_to(b, index, (*(1,) * dim, *shape_of(index), *(1,) * (rank - dim - 1)))


@op("index_add.default")
def index_add(b: Builder, node: Node) -> Result:
    """alpha * source added to elements of one dimension."""
    base, source, alpha = b.tensor(node, "self"), b.tensor(node, "source"), b.number(node, "alpha", 1)
    sizes = shape_of(base)
    wide, given = at_least_1d(b, base), at_least_1d(b, source)
    if alpha != 1:
        given = b.add(nn.MulOp(given, b.scalar(alpha, dtype_of(given))))
    dim, spread = _rows(b, node, base)
    return reshape_to(b, scattered(b, wide, spread, given, dim, "add"), sizes)


@op("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(b: Builder, node: Node) -> Result:
    """One number put at elements of one dimension."""
    base, value = b.tensor(node, "self"), operand(b, node, "value")
    sizes = shape_of(base)
    wide = at_least_1d(b, base)
    dim = axis_of(b.integer(node, "dim"), len(sizes))
    index = at_least_1d(b, b.tensor(node, "index"))
    rank = len(shape_of(wide))
    spread = wrapped(
        b, reshape_to(b, index, (*(1,) * dim, *shape_of(index), *(1,) * (rank - dim - 1))), shape_of(wide)[dim]
    )
    dtype = dtype_of(base)
    number = b.cast(value, dtype) if isinstance(value, SSAValue) else b.scalar(value, dtype)
    source = b.expand(number, (*shape_of(wide)[:dim], *shape_of(index), *shape_of(wide)[dim + 1 :]))
    return reshape_to(b, b.add(nn.ScatterOp(wide, spread, source, dim, "none")), sizes)


