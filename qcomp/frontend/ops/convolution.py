# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op

_OPS: dict[int, type[nn.ConvolutionOp]] = {1: nn.Conv1dOp, 2: nn.Conv2dOp, 3: nn.Conv3dOp}
_TRANSPOSED: dict[int, type[nn.ConvTransposeOp]] = {
    1: nn.ConvTranspose1dOp, 2: nn.ConvTranspose2dOp, 3: nn.ConvTranspose3dOp,
}  # fmt: skip


def batched(b: Builder, value: SSAValue, rank: int, compute: Callable[[SSAValue], SSAValue]) -> SSAValue:
    """`compute` of a tensor of `rank` dimensions; one that lacks the batch gets one of 1, removed afterwards."""
    if len(shape_of(value)) == rank:
        return compute(value)
    result = compute(b.add(nn.ReshapeOp(value, (1, *shape_of(value)))))
    return b.add(nn.ReshapeOp(result, shape_of(result)[1:]))


def _convolve(b: Builder, node: Node, padding: tuple[int, ...], value: SSAValue, spatial: int) -> SSAValue:
    weight = b.tensor(node, "weight")
    stride = b.sizes(node, "stride", spatial, (1,))
    dilation = b.sizes(node, "dilation", spatial, (1,))
    bias, groups = b.optional(node, "bias"), b.integer(node, "groups", 1)

    def compute(image: SSAValue) -> SSAValue:
        make = _OPS[spatial]
        return b.add(make(image, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups))

    return batched(b, value, spatial + 2, compute)


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


@op("conv1d.padding", "conv2d.padding", "conv3d.padding", "_convolution_mode.default")
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


@op("convolution.default", "_convolution.default", "_convolution.deprecated", "conv_tbc.default")
def convolution(b: Builder, node: Node) -> Result:
    """The core ATen form, which also covers transposed convolution."""
    if node.target == "aten.conv_tbc.default":
        raise QcompError("convolution over [time, batch, channels] is not supported", code="unsupported-op")
    spatial = _spatial(b, node)
    if b.flag(node, "transposed"):
        return _transpose(b, node, b.tensor(node, "input"), spatial)
    return _convolve(b, node, b.sizes(node, "padding", spatial, (0,)), b.tensor(node, "input"), spatial)


@op("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(b: Builder, node: Node) -> Result:
    """Transposed convolution; without a batch dimension one is added and removed."""
    return _transpose(b, node, b.tensor(node, "input"), _spatial(b, node))


def _transpose(b: Builder, node: Node, value: SSAValue, spatial: int) -> SSAValue:
    stride, dilation = (b.sizes(node, name, spatial, (1,)) for name in ("stride", "dilation"))
    padding, extra = (b.sizes(node, name, spatial, (0,)) for name in ("padding", "output_padding"))
    groups, bias = b.integer(node, "groups", 1), b.optional(node, "bias")
    weight = output_major(b, b.tensor(node, "weight"), groups)

    def compute(image: SSAValue) -> SSAValue:
        return b.add(
            _TRANSPOSED[spatial](
                image, weight, bias,
                stride=stride, padding=padding, output_padding=extra, dilation=dilation, groups=groups,
            )
        )  # fmt: skip

    return batched(b, value, spatial + 2, compute)


def output_major(b: Builder, weight: SSAValue, groups: int) -> SSAValue:
    """torch's weight [C, C_out / groups, *kernel] of a transposed convolution as [C_out, C / groups, *kernel]."""
    inputs, outputs, *kernel = shape_of(weight)
    if groups < 1 or inputs % groups:
        raise QcompError(f"{inputs} input channels in {groups} groups", code="malformed-graph")
    spatial = range(len(kernel))
    if groups == 1:
        return permute_to(b, weight, (1, 0, *(axis + 2 for axis in spatial)))
    split = reshape_to(b, weight, (groups, inputs // groups, outputs, *kernel))
    moved = permute_to(b, split, (0, 2, 1, *(axis + 3 for axis in spatial)))
    return reshape_to(b, moved, (groups * outputs, inputs // groups, *kernel))
