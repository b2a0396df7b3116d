# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that go by where an element stands: triangles, rolls, flips, repeats, one-hot codes, the identity matrix."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.operands import choose, compare
from qcomp.frontend.ops.shape import reshape_to

MAX_ELEMENTS = 1 << 24


def fixed_shape(value: SSAValue) -> tuple[int, ...]:
    """The shape of `value`. Raises QcompError when a size is symbolic."""
    shape = shape_of(value)
    if any(is_symbolic(size) for size in shape):
        raise QcompError("this op needs sizes that are fixed", code="dynamic", hint="give example_inputs")
    return shape


def flat(b: Builder, value: SSAValue) -> SSAValue:
    """All elements in one dimension."""
    return reshape_to(b, value, (-1,)) if 0 not in shape_of(value) else reshape_to(b, value, (0,))


def _triangle(b: Builder, node: Node, upper: bool) -> SSAValue:
    value, diagonal = b.tensor(node, "self"), b.integer(node, "diagonal", 0)
    rows, columns = fixed_shape(value)[-2:]
    apart = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    return choose(b, b.constant(apart >= diagonal if upper else apart <= diagonal), value, b.scalar(0, dtype_of(value)))


def triu(b: Builder, node: Node) -> Result:
    """What stands on or above a diagonal, 0 elsewhere."""
    return _triangle(b, node, True)


def tril(b: Builder, node: Node) -> Result:
    """What stands on or below a diagonal, 0 elsewhere."""
    return _triangle(b, node, False)


def eye(b: Builder, node: Node) -> Result:
    """Ones on the diagonal."""
    rows = b.integer(node, "n")
    columns = rows if node.target == "aten.eye.default" else b.integer(node, "m")
    if rows * columns > MAX_ELEMENTS:
        raise QcompError(f"an identity matrix of {rows} x {columns}", code="unsupported-op")
    return b.cast(b.constant(np.eye(rows, columns, dtype=np.float32)), b.dtype(node) or promotion.DEFAULT_FLOAT)


def one_hot(b: Builder, node: Node) -> Result:
    """A new last dimension of `num_classes` with a 1 where the number says."""
    value, classes = b.tensor(node, "self"), b.integer(node, "num_classes", -1)
    if classes < 0:
        raise QcompError("one_hot with a number of classes that data decide", code="unsupported-op", hint="give it")
    column = reshape_to(b, value, (*shape_of(value), 1))
    return b.cast(compare(b, "eq", column, b.constant(np.arange(classes))), "int64")


def _rolled(b: Builder, value: SSAValue, axis: int, shift: int) -> SSAValue:
    size = fixed_shape(value)[axis]
    cut = -shift % size if size else 0
    if cut == 0:
        return value
    parts = [nn.SliceOp(value, axis, cut, size), nn.SliceOp(value, axis, 0, cut)]
    return b.add(nn.CatOp([b.add(part) for part in parts], axis))


def roll(b: Builder, node: Node) -> Result:
    """Elements moved along dimensions, around the end; without `dims` along all elements in order."""
    value, shifts, dims = b.tensor(node, "self"), b.integers(node, "shifts"), b.integers(node, "dims", ())
    if not dims:
        return reshape_to(b, _rolled(b, flat(b, value), 0, shifts[0]), shape_of(value))
    for axis, shift in zip(dims, shifts, strict=True):
        value = _rolled(b, value, axis_of(axis, len(shape_of(value))), shift)
    return value


def flip(b: Builder, node: Node) -> Result:
    """Dimensions read from the end."""
    value = b.tensor(node, "self")
    shape = fixed_shape(value)
    for axis in {axis_of(axis, len(shape)) for axis in b.integers(node, "dims") if shape}:
        value = b.add(nn.TakeOp(value, axis, range(shape[axis] - 1, -1, -1)))
    return value


def repeat_interleave(b: Builder, node: Node) -> Result:
    """Each element `repeats` times, one behind the other."""
    value, repeats = b.tensor(node, "self"), b.integer(node, "repeats")
    value = flat(b, value) if node.argument("dim") is None else value
    axis = 0 if node.argument("dim") is None else axis_of(b.integer(node, "dim"), len(shape_of(value)))
    shape = shape_of(value)
    longer = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    apart = reshape_to(b, value, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    return reshape_to(b, b.expand(apart, longer), (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))
