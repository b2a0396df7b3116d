# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops whose result has a size that depends on elements: supported where those elements are known at import."""

from __future__ import annotations

from math import prod
from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.known_values import known_array
from qcomp.frontend.ops.indexing import at_least_1d, pick, static_shape
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op
from qcomp.frontend.tensor_data import Array, IntArray

_FAR = 1 << 32
"""More repetitions than a limit allows, but not so many that their sum overflows."""


def known_elements(b: Builder, value: SSAValue) -> Array:
    """The elements of `value`. Raises QcompError unless they follow from constants alone."""
    found = known_array(b, value)
    if found is None:
        raise QcompError(
            "makes a result whose size depends on data", code="data-dependent",
            hint="keep all elements and a mask instead, or leave it out of the exported module",
        )  # fmt: skip
    return found


def _tensor(b: Builder, node: Node, name: str = "self") -> Array:
    if dtype_of(value := b.tensor(node, name)) == "bfloat16":
        value = b.cast(value, "float32")
    return known_elements(b, value)


def _int64(b: Builder, array: Array) -> SSAValue:
    return b.constant(np.ascontiguousarray(array).astype(np.int64), "int64")


@op("nonzero.default", "argwhere.default")
def nonzero(b: Builder, node: Node) -> Result:
    """The places of elements that are not 0: [count, rank]."""
    value = _tensor(b, node)
    b.room(int(np.count_nonzero(value)), value.ndim)
    return _int64(b, np.argwhere(value) if value.ndim else np.zeros((int(value.any()), 0)))


@op("nonzero_numpy.default")
def nonzero_numpy(b: Builder, node: Node) -> Result:
    """The places of elements that are not 0, a tensor for each dimension."""
    value = np.atleast_1d(_tensor(b, node))
    b.room(int(np.count_nonzero(value)), value.ndim)
    return [_int64(b, places) for places in np.nonzero(value)]


@op("masked_select.default")
def masked_select(b: Builder, node: Node) -> Result:
    """The elements where a mask is set, in order; the mask broadcasts."""
    value, mask = b.tensor(node, "self"), _tensor(b, node, "mask")
    shape = broadcast_shapes(static_shape(value), mask.shape)
    b.room(*shape)
    places = np.flatnonzero(np.broadcast_to(mask, shape))
    return pick(b, reshape_to(b, b.expand(value, shape), (prod(shape),)), _int64(b, places), 0)


@op("_unique2.default", "unique_consecutive.default", "unique_dim.default")
def unique(b: Builder, node: Node) -> Result:
    """The distinct elements, which of them each element is, and how often each occurs.

    `_unique2` sorts them; `unique_consecutive` drops what is equal to the element before it.
    """
    value = _tensor(b, node)
    flat = value.reshape(-1)
    if node.argument("dim") is not None:
        raise QcompError(f"{node.target} along a dimension is not supported", code="unsupported-op")
    if "consecutive" in node.target:
        first = np.append(True, flat[1:] != flat[:-1])[: flat.size]
        values, inverse = flat[first], np.cumsum(first) - 1
        counts = np.diff(np.append(np.flatnonzero(first), flat.size))
    else:
        # torch's CPU kernel sorts whether it is asked to or not.
        values, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
    dtype = dtype_of(b.tensor(node, "self"))
    found = b.cast(b.constant(np.ascontiguousarray(values)), dtype)
    asked = [b.flag(node, f"return_{name}") for name in ("inverse", "counts")]
    inverse, counts = (inverse.reshape(value.shape) if asked[0] else inverse[:0]), (counts if asked[1] else counts[:0])
    return [found, _int64(b, inverse), _int64(b, counts)]


def _repeated(b: Builder, repeats: IntArray) -> Array:
    """Each place as often as its element says."""
    if repeats.size and repeats.min() < 0:
        raise QcompError("elements are repeated a negative number of times", code="malformed-graph")
    b.room(sum(map(int, repeats)))
    return np.repeat(np.arange(repeats.size), repeats)


@op("repeat_interleave.Tensor")
def repeat_places(b: Builder, node: Node) -> Result:
    """Each place as often as its element says."""
    repeats = cast(IntArray, _tensor(b, node, "repeats"))
    b.room(int(repeats.clip(0, _FAR).sum()))
    return _int64(b, _repeated(b, repeats))


@op("repeat_interleave.self_Tensor")
def repeat_elements(b: Builder, node: Node) -> Result:
    """Each element of a dimension as often as `repeats` says; without a dimension, of the flat tensor."""
    value, repeats = at_least_1d(b, b.tensor(node, "self")), cast(IntArray, _tensor(b, node, "repeats"))
    if node.argument("dim") is None:
        value = reshape_to(b, value, (prod(shape_of(value)),))
    dim = axis_of(0 if node.argument("dim") is None else b.integer(node, "dim"), len(shape_of(value)))
    size = static_shape(value)[dim]
    times = np.broadcast_to(repeats.reshape(-1), (size,))
    b.room(size + int(times.clip(0, _FAR).sum()))
    places = np.repeat(np.arange(size), times)
    return pick(b, value, _int64(b, places), dim)


@op("bincount.default")
def bincount(b: Builder, node: Node) -> Result:
    """How often each number from 0 on occurs."""
    if node.argument("weights") is not None:
        raise QcompError("bincount with weights is not supported", code="unsupported-op")
    value, least = cast(IntArray, _tensor(b, node)), b.integer(node, "minlength", 0)
    b.room(max(int(value.max(initial=0)) + 1, least))
    return _int64(b, np.bincount(value, minlength=least))
