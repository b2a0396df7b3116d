# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions."""

from __future__ import annotations

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op

_OPS: dict[int, type[nn.ConvolutionOp]] = {1: nn.Conv1dOp, 2: nn.Conv2dOp, 3: nn.Conv3dOp}


def _convolve(b: Builder, node: Node, padding: tuple[int, ...], value: SSAValue, spatial: int) -> SSAValue:
    weight = b.tensor(node, "weight")
    stride = b.sizes(node, "stride", spatial, (1,))
    dilation = b.sizes(node, "dilation", spatial, (1,))
    batched = len(shape_of(value)) == spatial + 2
    if not batched:
        value = b.add(nn.ReshapeOp(value, (1, *shape_of(value))))
    result = b.add(
        _OPS[spatial](
            value, weight, b.optional(node, "bias"),
            stride=stride, padding=padding, dilation=dilation, groups=b.integer(node, "groups", 1),
        )
    )  # fmt: skip
    return result if batched else b.add(nn.ReshapeOp(result, shape_of(result)[1:]))


def _spatial(b: Builder, node: Node) -> int:
    spatial = len(shape_of(b.tensor(node, "weight"))) - 2
    if spatial not in _OPS:
        raise QcompError(f"{spatial}-dimensional convolution is not supported", code="unsupported-op")
    return spatial


@op("conv1d.default", "conv2d.default", "conv3d.default")
def conv(b: Builder, node: Node) -> Result:
    """Cross-correlation with padding by numbers; without a batch dimension one is added and removed."""
    spatial = _spatial(b, node)
    return _convolve(b, node, b.sizes(node, "padding", spatial, (0,)), b.tensor(node, "input"), spatial)


@op("conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv_named_padding(b: Builder, node: Node) -> Result:
    """padding="valid" is none; "same" pads dilation * (kernel - 1) in all, the odd element at the end."""
    spatial = _spatial(b, node)
    mode = b.text(node, "padding", "valid")
    if mode == "valid":
        return _convolve(b, node, (0,) * spatial, b.tensor(node, "input"), spatial)
    if mode != "same" or any(step != 1 for step in b.sizes(node, "stride", spatial, (1,))):
        raise QcompError(f"padding={mode!r} with a stride is not supported", code="unsupported-op")
    kernel = shape_of(b.tensor(node, "weight"))[2:]
    total = [step * (size - 1) for step, size in zip(b.sizes(node, "dilation", spatial, (1,)), kernel, strict=True)]
    begins, ends = tuple(size // 2 for size in total), tuple(size - size // 2 for size in total)
    return _convolve(b, node, begins if begins == ends else begins + ends, b.tensor(node, "input"), spatial)


@op("convolution.default", "_convolution.default")
def convolution(b: Builder, node: Node) -> Result:
    """The core ATen form, which also covers transposed convolution."""
    spatial = _spatial(b, node)
    if b.flag(node, "transposed"):
        raise QcompError("transposed convolution is not supported", code="unsupported-op")
    return _convolve(b, node, b.sizes(node, "padding", spatial, (0,)), b.tensor(node, "input"), spatial)
