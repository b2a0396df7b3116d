# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements written by masks: which element goes where is a running count of the mask."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import broadcast_shapes
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.known_values import known_array
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.indexing import MASKS, pick
from qcomp.frontend.ops.operands import choose, function
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op


def _spread(b: Builder, mask: SSAValue, source: SSAValue, axis: int) -> SSAValue:
    """The elements along `axis` of `source` in order, one for each element of the 1-d `mask` that is set.

    What stands where the mask is not set is of no meaning.
    """
    count = shape_of(source)[axis]
    places = arithmetic.add(b, b.add(nn.ScanOp("add", b.cast(mask, "int64"), 0)), -1)
    places = b.add(nn.MaximumOp(places, b.scalar(0, "int64")))
    return pick(b, source, b.add(nn.MinimumOp(places, b.scalar(count - 1, "int64"))), axis)


def put_by_mask(b: Builder, base: SSAValue, axis: int, mask: SSAValue, values: SSAValue, accumulate: bool) -> SSAValue:
    """``base[:, ..., mask] = values`` with the mask over the dimensions from `axis` on.

    `values` hold one element for all that is set, or one for each. Raises QcompError when they do not go together.
    """
    shape, kind = shape_of(base), dtype_of(base)
    inner = axis + len(shape_of(mask))
    if shape_of(mask) != shape[axis:inner]:
        raise QcompError(f"a mask of shape {list(shape_of(mask))} for {list(shape)}", code="malformed-graph")
    rest, values = shape[inner:], b.cast(values, kind)
    wide = (*(1,) * (axis + 1 + len(rest) - len(shape_of(values))), *shape_of(values))
    values, count = reshape_to(b, values, wide), wide[axis]
    if count == 1:
        values = reshape_to(b, values, (*wide[:axis], *(1,) * len(shape_of(mask)), *wide[axis + 1 :]))
    elif count == 0:
        return base
    else:
        flat = reshape_to(b, mask, (prod(shape_of(mask)),))
        values = _spread(b, flat, values, axis)
        values = reshape_to(b, values, (*wide[:axis], *shape_of(mask), *wide[axis + 1 :]))
    values = b.expand(values, shape)
    if accumulate:
        values = function(b, "or", base, values) if kind == "bool" else arithmetic.add(b, base, values)
    return choose(b, reshape_to(b, mask, (*shape_of(mask), *(1 for _ in rest))), values, base, kind)


def mask_of(b: Builder, node: Node) -> tuple[int, SSAValue] | None:
    """The axis and the mask of ``indices`` that hold nothing else; None when index tensors say the same."""
    listed = node.argument("indices")
    parts = enumerate(listed if isinstance(listed, tuple) else ())
    found = {axis: b.plain(b.of(part)) for axis, part in parts if isinstance(part, Ref)}
    masks = [axis for axis, index in found.items() if dtype_of(index) in MASKS]
    if not masks:
        return None
    if len(found) > 1:
        if all(known_array(b, found[axis]) is not None for axis in masks):
            return None  # index tensors say the same

        raise QcompError(
            "masks beside other indices are not supported", code="unsupported-op", hint="use torch.where"
        )
    return masks[0], b.cast(found[masks[0]], "bool")


@op("masked_scatter.default")
def masked_scatter(b: Builder, node: Node) -> Result:
    """The elements of `source` in order where the mask is set."""
    base, mask, source = b.tensor(node, "self"), b.tensor(node, "mask"), b.tensor(node, "source")
    shape = broadcast_shapes(shape_of(base), shape_of(mask))
    count = prod(shape_of(source))
    if not count or not prod(shape):
        return b.expand(base, shape)
    flat = reshape_to(b, b.expand(b.cast(mask, "bool"), shape), (prod(shape),))
    picked = reshape_to(b, _spread(b, flat, reshape_to(b, source, (count,)), 0), shape)
    return choose(b, reshape_to(b, flat, shape), picked, b.expand(base, shape), dtype_of(base))
