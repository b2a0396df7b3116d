# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views by strides: which elements they mean follows from the strides of the tensor they look into."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node, Ref, TensorMeta
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

Places = NDArray[np.int64]

_MAX_ELEMENTS = 1 << 22
_FAR = 1 << 40


def pick(b: Builder, flat: SSAValue, indices: Places) -> SSAValue:
    """The elements `indices` of a tensor of rank 1, in the shape of `indices`."""
    count, listed = shape_of(flat)[0], indices.reshape(-1)
    if listed.size and np.array_equal(listed, int(listed[0]) + np.arange(listed.size, dtype=np.int64)):
        start, stop = int(listed[0]), int(listed[0]) + listed.size
        part = flat if listed.size == count else b.add(nn.SliceOp(flat, 0, start, stop, 1))
        return reshape_to(b, part, indices.shape)
    table = b.add(nn.ReshapeOp(flat, (count, 1)))
    return reshape_to(b, b.add(nn.EmbeddingOp(table, b.constant(listed))), indices.shape)


def _addresses(offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Places:
    """Where in its storage each element of a tensor lies."""
    places = np.full(tuple(sizes), offset, np.int64)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        places += (np.arange(size) * stride).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    return places


def _looked_at(b: Builder, node: Node, name: str, value: SSAValue) -> Places:
    """For each element of the view, which element of `value` it is."""
    source = node.argument(name)
    meta = b.graph.values.get(source.name) if isinstance(source, Ref) else None
    if not isinstance(meta, TensorMeta) or meta.place is None:
        raise QcompError("a view by strides of a tensor whose strides are not known", code="unsupported-op")
    offset, *strides = meta.place
    sizes = b.integers(node, "size")
    start = offset if node.argument("storage_offset") is None else b.integer(node, "storage_offset")
    if prod(sizes) > _MAX_ELEMENTS or prod(shape_of(value)) > _MAX_ELEMENTS:
        raise QcompError("a view by strides of more than 4 million elements", code="unsupported-op")
    steps = b.integers(node, "stride")
    if not all(0 <= number <= _FAR for number in (*meta.place, start, *steps)):
        raise QcompError("strides and offsets that no tensor has", code="malformed-graph")
    wanted = _addresses(start, sizes, steps)
    have = _addresses(offset, shape_of(value), strides).reshape(-1)
    order = np.argsort(have, kind="stable")
    if not wanted.size:
        return wanted
    at = np.searchsorted(have[order], wanted)
    if not have.size or np.any(at >= have.size) or np.any(have[order][np.minimum(at, have.size - 1)] != wanted):
        raise QcompError("a view by strides of memory outside its tensor", code="unsupported-op", hint="use reshape")
    return order[at]


@op("as_strided.default", "as_strided_copy.default")
def as_strided(b: Builder, node: Node) -> Result:
    """The elements of self that stand where size, stride and storage_offset say."""
    value = b.tensor(node, "self")
    indices = _looked_at(b, node, "self", value)
    return pick(b, reshape_to(b, value, (prod(shape_of(value)),)), indices)


@op("as_strided_scatter.default")
def as_strided_scatter(b: Builder, node: Node) -> Result:
    """self with those elements replaced by src."""
    value, written = b.tensor(node, "self"), b.tensor(node, "src")
    places = _looked_at(b, node, "self", value).reshape(-1)
    if len(np.unique(places)) != places.size:
        raise QcompError("as_strided_scatter writes a place twice", code="unsupported-op")
    count = prod(shape_of(value))
    indices = np.arange(count)
    indices[places] = np.arange(count, count + places.size)
    flat = [reshape_to(b, part, (prod(shape_of(part)),)) for part in (value, written)]
    return pick(b, b.add(nn.CatOp(flat, 0)), indices.reshape(shape_of(value)))
