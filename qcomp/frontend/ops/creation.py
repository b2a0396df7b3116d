# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made from numbers: a 0-d constant that is broadcast, or a short sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import ceil_divide, is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Number, Result, dtype_of, int_size, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.counting import has_symbols, places
from qcomp.frontend.ops.operands import compare, product, total
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_MAX_SEQUENCE = 1 << 24


def _filled(b: Builder, value: Number | SSAValue, dtype: str, sizes: Sequence[int]) -> SSAValue:
    return b.expand(b.cast(value, dtype) if isinstance(value, SSAValue) else b.scalar(value, dtype), sizes)


@op("full.default")
def full(b: Builder, node: Node) -> Result:
    """`size` elements of one value; the dtype follows the number unless given."""
    value = b.operand(node, "fill_value")
    dtype = dtype_of(value) if isinstance(value, SSAValue) else promotion.of_number(value).dtype
    return _filled(b, value, b.dtype(node) or dtype, b.integers(node, "size"))


@op("zeros.default", "ones.default", "empty.memory_format", "empty_strided.default", "empty_permuted.default")
def constant_fill(b: Builder, node: Node) -> Result:
    """Zeros or ones; zeros also where anything may be."""
    value = int(node.target == "aten.ones.default")
    return _filled(b, value, b.dtype(node) or promotion.DEFAULT_FLOAT, b.integers(node, "size"))


@op("full_like.default", "zeros_like.default", "ones_like.default", "empty_like.default")
def fill_like(b: Builder, node: Node) -> Result:
    """The shape, and the dtype unless given, of another tensor."""
    like = b.tensor(node, "self")
    fixed = None if ".full_like." in node.target else int(".ones_like." in node.target)
    value = b.operand(node, "fill_value") if fixed is None else fixed
    return _filled(b, value, b.dtype(node) or dtype_of(like), shape_of(like))


@op("new_full.default", "new_zeros.default", "new_ones.default", "new_empty.default", "new_empty_strided.default")
def new_fill(b: Builder, node: Node) -> Result:
    """The dtype, unless given, of another tensor."""
    fixed = None if ".new_full." in node.target else int(".new_ones." in node.target)
    value = b.operand(node, "fill_value") if fixed is None else fixed
    return _filled(b, value, b.dtype(node) or dtype_of(b.tensor(node, "self")), b.integers(node, "size"))


@op("scalar_tensor.default")
def scalar_tensor(b: Builder, node: Node) -> Result:
    """A 0-d tensor."""
    return _filled(b, b.operand(node, "s"), b.dtype(node) or promotion.DEFAULT_FLOAT, ())


@op(
    "item.default", "_local_scalar_dense.default", "sym_size.int", "sym_numel.default", "sym_stride.int",
    "sym_storage_offset.default", "sym_is_contiguous.default",
)  # fmt: skip
def number_of_tensor(b: Builder, node: Node) -> Result:
    """A number, which the importer reads through its metadata; it comes here when the graph has none."""
    raise QcompError("gives a number that the graph says nothing of", code="dynamic-value", hint="export the program")


def _count(start: int, end: int, step: int) -> int:
    """How many of start, start + step, ... come before `end`."""
    return ceil_divide(end - start, step) if step > 0 else ceil_divide(start - end, -step)


def _symbolic_arange(b: Builder, node: Node, start: Number, end: Number, step: Number) -> SSAValue:
    """As many numbers as a symbolic size says, counted in int64."""
    if step == 0 or any(isinstance(value, float) for value in (start, end, step)):
        raise QcompError(f"arange({start}, {end}, {step}) is not supported", code="unsupported-op")
    first, last, by = map(int_size, (start, end, step))
    if is_symbolic(by):
        numbers = total(b, product(b, places(b, _count(first, last, by)), by), first)
    else:
        numbers = b.add(nn.ArangeOp(first, _count(first, last, by), by))
    return b.cast(numbers, b.dtype(node) or "int64")


@op("arange.default", "arange.start", "arange.start_step")
def arange(b: Builder, node: Node) -> Result:
    """start, start + step, ... as far as `end`, as a constant."""
    start, end, step = b.number(node, "start", 0), b.number(node, "end"), b.number(node, "step", 1)
    if any(map(is_symbolic, (start, end, step))):
        return _symbolic_arange(b, node, start, end, step)
    if step == 0 or (count := -int(-(end - start) // step)) > _MAX_SEQUENCE:
        raise QcompError(f"arange({start}, {end}, {step}) is not supported", code="unsupported-op")
    floating = any(isinstance(value, float) for value in (start, end, step))
    dtype = b.dtype(node) or (promotion.DEFAULT_FLOAT if floating else "int64")
    if dtype == "bfloat16":
        raise QcompError("arange in bfloat16 is not supported", code="unsupported-dtype")
    values = start + np.arange(max(count, 0)) * step
    return b.constant(values.astype(dtype), dtype)


@op("eye.default", "eye.m")
def eye(b: Builder, node: Node) -> Result:
    """The identity matrix."""
    rows = b.integer(node, "n")
    columns = b.integer(node, "m") if node.argument("m") is not None else rows
    dtype = b.dtype(node) or promotion.DEFAULT_FLOAT
    if has_symbols((rows, columns)):
        return b.cast(compare(b, "eq", reshape_to(b, places(b, rows), (rows, 1)), places(b, columns)), dtype)
    b.room(rows, columns)
    return b.cast(b.constant(np.eye(rows, columns, dtype=np.float32)), dtype)


@op("linspace.default", "logspace.default")
def linspace(b: Builder, node: Node) -> Result:
    """`steps` numbers from start to end, each from the nearer end; for logspace, powers of `base` with them."""
    start, end, steps = b.real(node, "start"), b.real(node, "end"), b.integer(node, "steps")
    dtype = b.dtype(node) or promotion.DEFAULT_FLOAT
    if promotion.category(dtype) < 2 or steps > _MAX_SEQUENCE:
        raise QcompError(f"{node.target} of {dtype} is not supported", code="unsupported-op")
    held = np.float64 if dtype == "float64" else np.float32
    first, last, places = held(start), held(end), np.arange(steps)
    step = (last - first) / held(max(steps - 1, 1))
    values = np.where(
        places < max(steps // 2, 1), first + step * places.astype(held), last - step * (steps - 1 - places).astype(held)
    )
    if "log" in node.target:
        values = np.power(b.real(node, "base", 10.0), values.astype(np.float64))
    return b.cast(b.constant(values.astype(held)), dtype)


@op("tril_indices.default", "triu_indices.default")
def triangle_indices(b: Builder, node: Node) -> Result:
    """Rows and columns of what lies below or above a diagonal."""
    rows, columns, offset = b.integer(node, "row"), b.integer(node, "col"), b.integer(node, "offset", 0)
    b.room(rows, columns)
    find = np.tril_indices if "tril" in node.target else np.triu_indices
    found = np.stack(find(rows, offset, columns)).astype(np.int64)
    return b.cast(b.constant(found), b.dtype(node) or "int64")
