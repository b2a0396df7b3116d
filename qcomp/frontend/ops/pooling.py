# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling. One-dimensional forms get a dimension of 1 in front of the pooled one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.counting import has_symbols
from qcomp.frontend.ops.table import op
from qcomp.frontend.ops.unpooling import adaptive_max_places


def _window(b: Builder, node: Node, count: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """kernel, stride (the kernel when missing or empty) and padding."""
    kernel = b.sizes(node, "kernel_size", count)
    stride = b.integers(node, "stride", ()) if node.argument("stride") is not None else ()
    stride = stride * count if len(stride) == 1 else stride or kernel
    return kernel, stride, b.sizes(node, "padding", count, (0,))


def _as_2d(b: Builder, value: SSAValue, pool: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """`pool` over [..., 1, L] in place of [..., L]."""
    shape = shape_of(value)
    result = pool(b.add(nn.ReshapeOp(value, (*shape[:-1], 1, shape[-1]))))
    sizes = shape_of(result)
    return b.add(nn.ReshapeOp(result, (*sizes[:-2], sizes[-1])))


_MAX: dict[int, type[nn.MaxPoolOp]] = {2: nn.MaxPool2dOp, 3: nn.MaxPool3dOp}
_AVG: dict[int, type[nn.AvgPoolOp]] = {2: nn.AvgPool2dOp, 3: nn.AvgPool3dOp}
_ADAPTIVE_AVG: dict[int, type[nn.AdaptivePoolOp]] = {2: nn.AdaptiveAvgPool2dOp, 3: nn.AdaptiveAvgPool3dOp}
_ADAPTIVE_MAX: dict[int, type[nn.AdaptivePoolOp]] = {2: nn.AdaptiveMaxPool2dOp, 3: nn.AdaptiveMaxPool3dOp}


def _spatial(node: Node) -> int:
    """The number in the name of the op: ``max_pool2d``."""
    return int(re.findall(r"(\d)d", node.target)[0])


def _max_pool(b: Builder, node: Node) -> SSAValue:
    spatial, value = _spatial(node), b.tensor(node, "self")
    kernel, stride, padding = _window(b, node, spatial)
    dilation, ceil = b.sizes(node, "dilation", spatial, (1,)), b.flag(node, "ceil_mode")
    if spatial > 1:
        return b.add(_MAX[spatial](value, kernel, stride, padding, dilation, ceil))
    return _as_2d(
        b,
        value,
        lambda image: b.add(nn.MaxPool2dOp(image, (1, *kernel), (1, *stride), (0, *padding), (1, *dilation), ceil)),
    )


@op("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(b: Builder, node: Node) -> Result:
    """The largest element of each window."""
    return _max_pool(b, node)


@op("max_pool1d_with_indices.default", "max_pool2d_with_indices.default", "max_pool3d_with_indices.default")
def max_pool_with_indices(b: Builder, node: Node) -> Result:
    """The same, and where those elements lie."""
    spatial, value = _spatial(node), b.tensor(node, "self")
    kernel, stride, padding = _window(b, node, spatial)
    dilation, ceil = b.sizes(node, "dilation", spatial, (1,)), b.flag(node, "ceil_mode")
    if spatial > 1:
        make = nn.MaxPoolIndices2dOp if spatial == 2 else nn.MaxPoolIndices3dOp
        return [_max_pool(b, node), b.add(make(value, kernel, stride, padding, dilation, ceil))]
    sizes = ((1, *kernel), (1, *stride), (0, *padding), (1, *dilation))
    return [_max_pool(b, node), _as_2d(b, value, lambda image: b.add(nn.MaxPoolIndices2dOp(image, *sizes, ceil)))]


@op("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(b: Builder, node: Node) -> Result:
    """The mean of each window."""
    spatial, value = _spatial(node), b.tensor(node, "self")
    kernel, stride, padding = _window(b, node, spatial)
    divisor = None if node.argument("divisor_override") is None else b.integer(node, "divisor_override")
    ceil, include = b.flag(node, "ceil_mode"), b.flag(node, "count_include_pad", True)
    if spatial > 1:
        return b.add(_AVG[spatial](value, kernel, stride, padding, ceil, include, divisor))
    return _as_2d(
        b,
        value,
        lambda image: b.add(nn.AvgPool2dOp(image, (1, *kernel), (1, *stride), (0, *padding), ceil, include)),
    )


def _adaptive(b: Builder, node: Node, table: Mapping[int, type[nn.AdaptivePoolOp]]) -> SSAValue:
    spatial, value, size = _spatial(node), b.tensor(node, "self"), node.argument("output_size")
    if isinstance(size, tuple) and None in size:
        raise QcompError("adaptive pooling with an output size of None", code="unsupported-op", hint="give the size")
    sizes = b.sizes(node, "output_size", spatial)
    if spatial > 1:
        return b.add(table[spatial](value, sizes))
    return _as_2d(b, value, lambda image: b.add(table[2](image, (1, *sizes))))


@op(
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default",
)  # fmt: skip
def adaptive_avg_pool(b: Builder, node: Node) -> Result:
    """Means over windows that cover the input evenly."""
    return _adaptive(b, node, _ADAPTIVE_AVG)


@op("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(b: Builder, node: Node) -> Result:
    """The largest elements of windows that cover the input evenly."""
    spatial, value = _spatial(node), b.tensor(node, "self")
    wanted = b.reads(node, 1) and not has_symbols(shape_of(value)[-spatial:])
    places = adaptive_max_places(b, value, b.sizes(node, "output_size", spatial)) if wanted else None
    return [_adaptive(b, node, _ADAPTIVE_MAX), places]
