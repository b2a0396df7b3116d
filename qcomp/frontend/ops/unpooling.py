# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What maps pooled values back: places of adaptive pools, unpooling, and the gradients of pools and embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.indexing import Places, pick, static_shape
from qcomp.frontend.ops.operands import choose, compare
from qcomp.frontend.ops.scattering import scattered
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

Window = tuple[int, int]
"""From the first element on, up to but without the second."""


def adaptive_windows(length: int, count: int) -> list[Window]:
    """Windows of an adaptive pool: `count` of them cover `length` elements evenly."""
    return [(index * length // count, ceil((index + 1) * length / count)) for index in range(count)]


def _places(windows: Sequence[Window]) -> Places:
    """[windows, longest]: the elements of each; short ones repeat their last."""
    longest = max(end - start for start, end in windows)
    return np.stack([np.minimum(np.arange(start, start + longest), end - 1) for start, end in windows])


def adaptive_max_places(b: Builder, value: SSAValue, counts: Sequence[int]) -> SSAValue:
    """Where the largest elements of the windows of an adaptive pool lie, in the flat image: i64 [..., counts]."""
    sizes = static_shape(value)[-len(counts) :]
    lead = shape_of(value)[: -len(counts)]
    if not prod(counts) or not prod(sizes):
        raise QcompError("adaptive pooling of no elements", code="unsupported-op")
    b.room(*(count * (size // count + 2) for size, count in zip(sizes, counts, strict=True)))
    flat, longest = np.zeros([1] * 2 * len(counts), np.int64), list[int]()
    for axis, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        own = _places(adaptive_windows(size, count))
        longest.append(own.shape[1])
        shape = [1] * 2 * len(counts)
        shape[axis], shape[len(counts) + axis] = own.shape
        flat = flat * size + own.reshape(shape)
    table = flat.reshape(prod(counts) * prod(longest))
    rows = reshape_to(b, value, (prod(lead), 1, prod(sizes)))
    seen = pick(b, rows, b.constant(table, "int64"), 2)
    seen = reshape_to(b, seen, (prod(lead), prod(counts), prod(longest)))
    kernel = (1, prod(longest))
    found = b.add(nn.MaxPoolIndices2dOp(seen, kernel, kernel, (0, 0), (1, 1), False))
    places = pick(b, b.constant(table, "int64"), reshape_to(b, found, (prod(shape_of(found)),)), 0)
    return reshape_to(b, places, (*lead, *counts))


@op("max_unpool2d.default", "max_unpool3d.default")
def max_unpool(b: Builder, node: Node) -> Result:
    """Zeros, but for the elements at their places in the flat image."""
    value, places = b.tensor(node, "self"), b.tensor(node, "indices")
    sizes = b.integers(node, "output_size")
    return _placed(b, value, places, (*shape_of(value)[: -len(sizes)], *sizes), "none")


def _placed(b: Builder, value: SSAValue, places: SSAValue, shape: Sequence[int], reduce: str) -> SSAValue:
    """Elements put, or added up, at places of each flat image of zeros."""
    spatial = len(shape) - 2 if len(shape) > 3 else 2
    lead = tuple(shape[:-spatial])
    count = prod(shape_of(value)[-spatial:])
    rows = [reshape_to(b, item, (*lead, count)) for item in (value, b.cast(places, "int64"))]
    zeros = b.expand(b.scalar(0, dtype_of(value)), (*lead, prod(shape[-spatial:])))
    return reshape_to(b, scattered(b, zeros, rows[1], rows[0], len(lead), reduce), shape)


@op("max_pool2d_with_indices_backward.default", "max_pool3d_with_indices_backward.default")
def max_pool_backward(b: Builder, node: Node) -> Result:
    """The gradient goes to the largest element of each window."""
    gradient, places = b.tensor(node, "grad_output"), b.tensor(node, "indices")
    return _placed(b, gradient, places, static_shape(b.tensor(node, "self")), "add")


@op("_adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(b: Builder, node: Node) -> Result:
    """Each gradient is shared out evenly over its window."""
    gradient, sizes = b.tensor(node, "grad_output"), static_shape(b.tensor(node, "self"))[-2:]
    counts = static_shape(gradient)[-2:]
    for pair in zip(sizes, counts, strict=True):
        b.room(*pair)
    shares = [_share(adaptive_windows(*pair), pair[0]) for pair in zip(sizes, counts, strict=True)]
    return _shared_out(b, gradient, *shares)


def _share(windows: Sequence[Window], length: int, counted: Sequence[int] | None = None) -> np.ndarray:
    """[length, windows]: 1 / size in each window, of sizes `counted` where given."""
    share = np.zeros((length, len(windows)))
    for index, (start, end) in enumerate(windows):
        share[max(start, 0) : min(end, length), index] = 1 / (end - start if counted is None else counted[index])
    return share


def _shared_out(b: Builder, gradient: SSAValue, rows: np.ndarray, columns: np.ndarray) -> SSAValue:
    dtype = dtype_of(gradient)
    left, right = (b.cast(b.constant(part.astype(np.float32)), dtype) for part in (rows, columns.T))
    return b.add(nn.MatmulOp(left, b.add(nn.MatmulOp(gradient, right))))


@op("avg_pool2d_backward.default")
def avg_pool_backward(b: Builder, node: Node) -> Result:
    """Each gradient is shared out evenly over its window."""
    gradient, sizes = b.tensor(node, "grad_output"), static_shape(b.tensor(node, "self"))[-2:]
    kernel, padding = b.sizes(node, "kernel_size", 2), b.sizes(node, "padding", 2, (0,))
    stride = b.integers(node, "stride", ()) or kernel
    stride = stride * 2 if len(stride) == 1 else stride
    include, divisor = b.flag(node, "count_include_pad", True), node.argument("divisor_override")
    shares: list[np.ndarray] = []
    for axis, length in enumerate(sizes):
        starts = [index * stride[axis] - padding[axis] for index in range(static_shape(gradient)[-2:][axis])]
        ends = [min(start + kernel[axis], length + padding[axis]) for start in starts]
        inside = [min(end, length) - max(start, 0) for start, end in zip(starts, ends, strict=True)]
        full = [end - start for start, end in zip(starts, ends, strict=True)]
        counted = [1] * len(starts) if divisor is not None else full if include else inside
        shares.append(_share(list(zip(starts, ends, strict=True)), length, counted))
    if divisor is not None:
        shares[0] /= b.integer(node, "divisor_override")
    return _shared_out(b, gradient, *shares)


@op("embedding_dense_backward.default")
def embedding_backward(b: Builder, node: Node) -> Result:
    """The gradients of the rows that were read, added up; that of the padding row is 0."""
    gradient, index = b.tensor(node, "grad_output"), b.cast(b.tensor(node, "indices"), "int64")
    rows, padding = b.integer(node, "num_weights"), b.integer(node, "padding_idx", -1)
    if b.flag(node, "scale_grad_by_freq"):
        raise QcompError("gradients scaled by frequency are not supported", code="unsupported-op")
    count, width, dtype = prod(shape_of(index)), shape_of(gradient)[-1], dtype_of(gradient)
    gradient, index = reshape_to(b, gradient, (count, width)), reshape_to(b, index, (count, 1))
    if padding >= 0:
        gradient = choose(b, compare(b, "eq", index, padding), b.scalar(0, dtype), gradient, dtype)
    zeros = b.expand(b.scalar(0, dtype), (rows, width))
    return scattered(b, zeros, index, gradient, 0, "add")

