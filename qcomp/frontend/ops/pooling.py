# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pooling. One-dimensional forms get a dimension of 1 in front of the pooled one."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op


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


def _max_pool2d(b: Builder, node: Node) -> SSAValue:
    kernel, stride, padding = _window(b, node, 2)
    dilation, ceil = b.sizes(node, "dilation", 2, (1,)), b.flag(node, "ceil_mode")
    return b.add(nn.MaxPool2dOp(b.tensor(node, "self"), kernel, stride, padding, dilation, ceil))


@op("max_pool2d.default")
def max_pool2d(b: Builder, node: Node) -> Result:
    """The largest element of each window."""
    return _max_pool2d(b, node)


@op("max_pool2d_with_indices.default")
def max_pool2d_with_indices(b: Builder, node: Node) -> Result:
    """The same; the indices are not offered."""
    return [_max_pool2d(b, node), None]


@op("max_pool1d.default")
def max_pool1d(b: Builder, node: Node) -> Result:
    """The largest element of each window of the last dimension."""
    kernel, stride, padding = _window(b, node, 1)
    dilation, ceil = b.sizes(node, "dilation", 1, (1,)), b.flag(node, "ceil_mode")
    return _as_2d(
        b,
        b.tensor(node, "self"),
        lambda value: b.add(nn.MaxPool2dOp(value, (1, *kernel), (1, *stride), (0, *padding), (1, *dilation), ceil)),
    )


@op("avg_pool2d.default")
def avg_pool2d(b: Builder, node: Node) -> Result:
    """The mean of each window."""
    kernel, stride, padding = _window(b, node, 2)
    divisor = None if node.argument("divisor_override") is None else b.integer(node, "divisor_override")
    ceil, include = b.flag(node, "ceil_mode"), b.flag(node, "count_include_pad", True)
    return b.add(nn.AvgPool2dOp(b.tensor(node, "self"), kernel, stride, padding, ceil, include, divisor))


@op("avg_pool1d.default")
def avg_pool1d(b: Builder, node: Node) -> Result:
    """The mean of each window of the last dimension."""
    kernel, stride, padding = _window(b, node, 1)
    ceil, include = b.flag(node, "ceil_mode"), b.flag(node, "count_include_pad", True)
    return _as_2d(
        b,
        b.tensor(node, "self"),
        lambda value: b.add(nn.AvgPool2dOp(value, (1, *kernel), (1, *stride), (0, *padding), ceil, include)),
    )


@op("adaptive_avg_pool2d.default", "_adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(b: Builder, node: Node) -> Result:
    """Means over windows that cover the input evenly; an output size of None keeps the input's."""
    value, size = b.tensor(node, "self"), node.argument("output_size")
    if isinstance(size, tuple) and None in size:
        raise QcompError("adaptive pooling with an output size of None", code="unsupported-op", hint="give the size")
    return b.add(nn.AdaptiveAvgPool2dOp(value, b.sizes(node, "output_size", 2)))


@op("adaptive_avg_pool1d.default")
def adaptive_avg_pool1d(b: Builder, node: Node) -> Result:
    """Means over windows that cover the last dimension evenly."""
    (size,) = b.sizes(node, "output_size", 1)
    return _as_2d(b, b.tensor(node, "self"), lambda value: b.add(nn.AdaptiveAvgPool2dOp(value, (1, size))))
