# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes into parts of a tensor as values: through views, by slices and by indices."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.nn.base import ints
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Complex, Result, axis_of, dtype_of, element_of, shape_of
from qcomp.frontend.functional import INSERT_VIEW
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.ops.masks import mask_of, put_by_mask
from qcomp.frontend.ops.scattering import put_at
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import HANDLERS, op


def write_back(b: Builder, base: SSAValue, view: SSAValue, source: SSAValue, what: str) -> SSAValue:
    """`base` with `source` where `view`, made of it by reshapes, permutations, slices and bitcasts, shows it.

    Every step from `base` to `view` is undone, last one first. Raises QcompError when there are other steps.
    """
    source = b.expand(b.cast(source, dtype_of(view)), shape_of(view))
    while view is not base:
        step = view.owner
        match step:
            case nn.ReshapeOp():
                source = reshape_to(b, source, shape_of(step.input))
            case nn.PermuteOp():
                dims = ints(step.dims)
                source = permute_to(b, source, [dims.index(dim) for dim in range(len(dims))])
            case nn.BitcastOp():
                source = b.add(nn.BitcastOp(source, element_of(step.input)))
            case nn.SliceOp():
                dim, stride = step.dim.value.data, step.step.value.data
                source = b.add(nn.InsertSliceOp(step.input, source, dim, step.bounds[0], stride))
            case _:
                raise QcompError(
                    f"a write through {what} is not supported", code="unsupported-op", hint="clone it before the write"
                )
        view = step.operands[0]
    return source


@op(INSERT_VIEW)
def insert_view(b: Builder, node: Node) -> Result:
    """The view op is done again, to see which steps are to be undone."""
    target, index = b.text(node, "view"), b.integer(node, "result")
    arguments = tuple((name.removeprefix("view."), value) for name, value in node.arguments if name.startswith("view."))
    handler = HANDLERS.get(target)
    if handler is None:
        raise QcompError(f"a write through {target} is not supported", code="unsupported-op")
    base = b.tensor(node, "base")
    found = handler(b, Node(node.name, target, arguments, (Ref(node.name),), node.location))
    listed = [found] if isinstance(found, SSAValue | Complex | None) else found
    view = listed[0 if len(listed) == 1 else index]
    if not isinstance(view, SSAValue):
        raise QcompError(f"a write through result {index} of {target} is not supported", code="unsupported-op")
    return write_back(b, base, view, b.tensor(node, "source"), target)


def _register_scatter(view: str, *targets: str) -> None:
    """The functional write through `view`: the result is a tensor like self."""

    @op(*targets)
    def _(b: Builder, node: Node) -> Result:
        arguments = tuple((name, value) for name, value in node.arguments if name != "src")
        base = b.tensor(node, "self")
        found = HANDLERS[view](b, Node(node.name, view, arguments, node.outputs, node.location))
        assert isinstance(found, SSAValue)
        return write_back(b, base, found, b.tensor(node, "src"), view)


_register_scatter("aten.slice.Tensor", "slice_scatter.default")
_register_scatter("aten.select.int", "select_scatter.default")
_register_scatter("aten.diagonal.default", "diagonal_scatter.default")


@op("diagonal.default", "diagonal_copy.default", "linalg_diagonal.default")
def diagonal(b: Builder, node: Node) -> Result:
    """The elements [i, i + offset] of two dimensions, as a last one: in flat memory they are one slice with a step."""
    matrix = "linalg" in node.target
    value, offset = b.tensor(node, "A" if matrix else "self"), b.integer(node, "offset", 0)
    rank, defaults = len(shape_of(value)), (-2, -1) if matrix else (0, 1)
    first, second = (axis_of(b.integer(node, f"dim{place + 1}", defaults[place]), rank) for place in (0, 1))
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    moved = permute_to(b, value, [*rest, first, second])
    *lead, rows, columns = shape_of(moved)
    start = offset if offset >= 0 else -offset * columns
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    flat = reshape_to(b, moved, (*lead, rows * columns))
    if is_symbolic(columns):
        return _every(b, flat, start, count, columns + 1)
    start = min(start, rows * columns)
    end = min(start + count * (columns + 1), rows * columns) if count else start
    return b.add(nn.SliceOp(flat, len(lead), start, end, columns + 1))


def _every(b: Builder, flat: SSAValue, start: int, count: int, step: int) -> SSAValue:
    """`count` elements of the last dimension, a symbolic `step` apart: the first column of rows of so many elements."""
    if dtype_of(flat) == "bool":
        return b.cast(_every(b, b.cast(flat, "uint8"), start, count, step), "bool")
    *lead, _ = shape_of(flat)
    none, axis = (0,) * len(lead), len(lead)
    padded = b.add(nn.PadOp(flat, (*none, 0), (*none, step), 0.0))
    rows = reshape_to(b, b.add(nn.SliceOp(padded, axis, start, start + count * step)), (*lead, count, step))
    return reshape_to(b, b.add(nn.SliceOp(rows, axis + 1, 0, 1)), (*lead, count))


@op("fill.Scalar", "fill.Tensor")
def fill(b: Builder, node: Node) -> Result:
    """One value everywhere, in the type of `self`."""
    like = b.tensor(node, "self")
    if b.is_number(node.argument("value")):
        value = b.scalar(b.number(node, "value"), _number_type(b, node, dtype_of(like)))
    else:
        value = b.tensor(node, "value")
    return b.expand(b.cast(value, dtype_of(like)), shape_of(like))


def _number_type(b: Builder, node: Node, dtype: str) -> str:
    """The type to write a number in before it is cast: real numbers in integer tensors are cut off."""
    return "float32" if isinstance(b.number(node, "value"), float) and dtype not in ("float32", "float64") else dtype


@op("zero.default")
def zero(b: Builder, node: Node) -> Result:
    """Zeros like `self`."""
    like = b.tensor(node, "self")
    return b.expand(b.scalar(0, dtype_of(like)), shape_of(like))


@op("index_copy.default")
def index_copy(b: Builder, node: Node) -> Result:
    """Element index[i] of a dimension becomes element i of `source`."""
    base, source = b.tensor(node, "self"), b.tensor(node, "source")
    sizes = shape_of(base) or (1,)
    axis = axis_of(b.integer(node, "dim"), len(shape_of(base)))
    index = b.tensor(node, "index")
    indices = reshape_to(b, index, (prod(shape_of(index)),))
    parts = (*sizes[:axis], prod(shape_of(index)), *sizes[axis + 1 :])
    written = nn.IndexCopyOp(reshape_to(b, base, sizes), reshape_to(b, source, parts), indices, axis)
    return reshape_to(b, b.add(written), shape_of(base))


@op("index_put.default", "_unsafe_index_put.default")
def index_put(b: Builder, node: Node) -> Result:
    """`values` where index tensors point to: the dimensions that they index become one, and they one index into it."""
    base, masked = b.tensor(node, "self"), mask_of(b, node)
    if masked is not None:
        return put_by_mask(b, base, *masked, b.tensor(node, "values"), b.flag(node, "accumulate"))
    return put_at(b, node, base, b.flag(node, "accumulate"))
