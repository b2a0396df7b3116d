# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Taking tensors apart and putting them together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic, modulo
from qcomp.dialects.guard import compare
from qcomp.dialects.nn.base import never_below
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op
from qcomp.frontend.size_facts import demand

_NO_END = 2**63 - 1
"""What torch's graphs have where no end is given."""
MAX_PIECES = 1 << 14
"""Most results of one op."""


def _slice(b: Builder, value: SSAValue, axis: int, start: int, end: int, step: int = 1) -> SSAValue:
    if (start, end, step) == (0, shape_of(value)[axis], 1):
        return value
    return b.add(nn.SliceOp(value, axis, start, end if is_symbolic(end - start) else max(start, end), step))


def axis_argument(b: Builder, node: Node, value: SSAValue, default: int = 0) -> int:
    """The argument `dim`, counted from 0. Raises QcompError for a 0-d tensor."""
    if not shape_of(value):
        raise QcompError(f"{node.target} of a 0-d tensor", code="malformed-graph")
    return axis_of(b.integer(node, "dim", default), len(shape_of(value)))


@op("slice.Tensor", "slice_copy.Tensor")
def slice_(b: Builder, node: Node) -> Result:
    """Python's slicing of one dimension; ends beyond the tensor are cut."""
    value = b.tensor(node, "self")
    axis = axis_argument(b, node, value)
    size, step = shape_of(value)[axis], b.integer(node, "step", 1)
    start = 0 if node.argument("start") is None else b.integer(node, "start")
    end = size if node.argument("end") is None else b.integer(node, "end")
    start, end = (_place(b, bound, size) for bound in (start, end))
    return _slice(b, value, axis, start, end, step)


def _place(b: Builder, bound: int, size: int) -> int:
    """Position that a slice's bound means; symbolic ones are taken to lie inside, which calls are checked for."""
    if is_symbolic(bound):
        return size + bound if b.assumptions.at_least_0(bound) is False else bound
    if is_symbolic(size):
        return size if bound == _NO_END else size + bound if bound < 0 else bound
    return min(max(bound + size if bound < 0 else bound, 0), size)


def _from_start(b: Builder, index: int, size: int, last: int) -> int:
    """`index`, which lies from -size to `last`, counted from the start of a dimension of `size`."""
    if is_symbolic(index) or is_symbolic(size):
        demand(b, compare(index + size, ">=", 0))
        demand(b, compare(index, "<=", last))
        if is_symbolic(index) and b.assumptions.facts.at_least_0(index) is None:
            # 0 counts from the start, its negative neighbours from the end: A[-n] at n = 0 and above.
            return modulo(index, size)
    return index + size if index < 0 else index


@op("narrow.default", "narrow_copy.default")
def narrow(b: Builder, node: Node) -> Result:
    """`length` elements from `start` on."""
    value = b.tensor(node, "self")
    axis, start = axis_argument(b, node, value), b.integer(node, "start")
    size, length = shape_of(value)[axis], b.integer(node, "length")
    start = _from_start(b, start, size, size - length)
    return _slice(b, value, axis, start, start + length)


@op("select.int", "select_copy.int")
def select(b: Builder, node: Node) -> Result:
    """One element of a dimension, which disappears."""
    value = b.tensor(node, "self")
    axis = axis_argument(b, node, value)
    return _select(b, value, axis, b.integer(node, "index"))


def _select(b: Builder, value: SSAValue, axis: int, index: int) -> SSAValue:
    shape = shape_of(value)
    index = _from_start(b, index, shape[axis], shape[axis] - 1)
    return reshape_to(b, _slice(b, value, axis, index, index + 1), (*shape[:axis], *shape[axis + 1 :]))


def pieces(b: Builder, value: SSAValue, axis: int, sizes: Sequence[int]) -> list[SSAValue]:
    """`value` cut into pieces of `sizes`. Raises QcompError when they are not all of it."""
    if any(not never_below(size, 0) for size in sizes) or sum(sizes) != shape_of(value)[axis]:
        raise QcompError(f"pieces {list(sizes)[:8]} of a dimension of {shape_of(value)[axis]}", code="malformed-graph")
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [_slice(b, value, axis, start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _check_count(count: int) -> None:
    if count > MAX_PIECES:
        raise QcompError(f"a tensor in {count} pieces is not supported", code="unsupported-op")


def _even(total: int, size: int) -> list[int]:
    """Pieces of `size`, the last one smaller; one empty piece of an empty dimension."""
    if size <= 0:
        return [total]
    _check_count(-(-total // size))
    return [min(size, total - start) for start in range(0, total, size)] or [0]


@op("split.Tensor", "split_copy.Tensor", "unsafe_split.Tensor")
def split(b: Builder, node: Node) -> Result:
    """Pieces of one size."""
    value = b.tensor(node, "self")
    axis = axis_argument(b, node, value)
    return pieces(b, value, axis, _even(shape_of(value)[axis], b.integer(node, "split_size")))


@op(
    "split_with_sizes.default", "split.sizes", "split.default", "split_with_sizes_copy.default",
    "unsafe_split_with_sizes.default",
)  # fmt: skip
def split_with_sizes(b: Builder, node: Node) -> Result:
    """Pieces of given sizes."""
    value = b.tensor(node, "self")
    name = "split_sizes" if node.argument("split_sizes") is not None else "split_size"
    return pieces(b, value, axis_argument(b, node, value), b.integers(node, name))


@op("chunk.default", "unsafe_chunk.default")
def chunk(b: Builder, node: Node) -> Result:
    """About `chunks` pieces of equal size."""
    value = b.tensor(node, "self")
    axis = axis_argument(b, node, value)
    total, count = shape_of(value)[axis], b.integer(node, "chunks")
    if count < 1:
        raise QcompError(f"{count} chunks", code="malformed-graph")
    _check_count(count)
    return pieces(b, value, axis, _even(total, -(-total // count)) if total else [0] * count)


@op("unbind.int", "unbind_copy.int")
def unbind(b: Builder, node: Node) -> Result:
    """Every element of a dimension by itself."""
    value = b.tensor(node, "self")
    axis = axis_argument(b, node, value)
    _check_count(shape_of(value)[axis])
    return [_select(b, value, axis, index) for index in range(shape_of(value)[axis])]


def common(b: Builder, values: Sequence[SSAValue]) -> list[SSAValue]:
    """`values` in their common type."""
    dtype = promotion.result_type(promotion.of_tensor(dtype_of(value), len(shape_of(value))) for value in values)
    return [b.cast(value, dtype) for value in values]


def joined(b: Builder, values: Sequence[SSAValue], axis: int) -> SSAValue:
    """`values` one after another along `axis`."""
    return values[0] if len(values) == 1 else b.add(nn.CatOp(list(values), axis))


@op("cat.default", "concat.default", "concatenate.default")
def cat(b: Builder, node: Node) -> Result:
    """Tensors one after another; torch skips 1-d tensors without elements, whatever the others' rank."""
    everything = common(b, b.tensors(node, "tensors"))
    values = [value for value in everything if shape_of(value) != (0,)] or everything[:1]
    axis = axis_argument(b, node, values[0])
    return joined(b, values, axis)


@op("stack.default")
def stack(b: Builder, node: Node) -> Result:
    """Tensors of one shape along a new dimension."""
    values = common(b, b.tensors(node, "tensors"))
    shape = shape_of(values[0])
    axis = axis_of(b.integer(node, "dim", 0), len(shape) + 1)
    wide = [reshape_to(b, value, (*shape[:axis], 1, *shape[axis:])) for value in values]
    return joined(b, wide, axis)


@op("embedding.default")
def embedding(b: Builder, node: Node) -> Result:
    """Rows of a table; padding_idx only matters in training."""
    return b.add(nn.EmbeddingOp(b.tensor(node, "weight"), b.tensor(node, "indices")))
