# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Embedding bags: rows of a table, put together bag by bag."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.known_values import known_array
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_MAX_BAGS = 1 << 12
"""Most bags that differ in size."""


@op(
    "embedding_bag.padding_idx",
    "embedding_bag.default",
    "_embedding_bag_forward_only.default",
    "_embedding_bag.default",
)
def embedding_bag(b: Builder, node: Node) -> Result:
    """Sums, means or the largest of rows of a table, per bag; where the bags start must be known."""
    starts = known_array(b, b.tensor(node, "offsets"))
    if starts is None:
        raise QcompError(
            "bags of sizes that are computed are not supported", code="unsupported-op", hint="use bags of one size"
        )
    if node.argument("padding_idx") is not None and b.integer(node, "padding_idx") >= 0:
        raise QcompError("embedding_bag with a padding_idx is not supported", code="unsupported-op")
    rows = b.add(nn.EmbeddingOp(b.tensor(node, "weight"), b.tensor(node, "indices")))
    weights, total = b.optional(node, "per_sample_weights"), shape_of(rows)[0]
    if weights is not None:
        rows = b.add(nn.MulOp(rows, reshape_to(b, weights, (total, 1))))
    bounds = [int(start) for start in starts]  # pyright: ignore[reportArgumentType]
    bounds = bounds if b.flag(node, "include_last_offset") else [*bounds, total]
    make = (nn.SumOp, nn.MeanOp, nn.AmaxOp)[b.integer(node, "mode", 0)]
    return [_bags(b, rows, bounds, make), None, None, None]


def _bags(b: Builder, rows: SSAValue, bounds: Sequence[int], make: type[nn.ReduceOp]) -> SSAValue:
    pairs = list(pairwise(bounds))
    lengths = {end - start for start, end in pairs}
    total, size = shape_of(rows)
    if min(lengths, default=1) < 1 or not 0 <= bounds[0] <= bounds[-1] <= total:
        raise QcompError("embedding_bag with empty bags is not supported", code="unsupported-op")
    if len(lengths) == 1 and (bounds[0], bounds[-1]) == (0, total):
        return b.add(make(reshape_to(b, rows, (len(pairs), *lengths, size)), (1,), False))
    if len(pairs) > _MAX_BAGS:
        raise QcompError(f"{len(pairs)} bags of different sizes are not supported", code="unsupported-op")
    bags = [b.add(make(b.add(nn.SliceOp(rows, 0, start, end)), (0,), True)) for start, end in pairs]
    return bags[0] if len(bags) == 1 else b.add(nn.CatOp(bags, 0))
