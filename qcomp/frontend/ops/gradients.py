# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients that core ATen has ops for: of convolutions and normalizations, with those of activations beside them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.arithmetic import add, multiply, subtract, total
from qcomp.frontend.ops.convolution import output_major
from qcomp.frontend.ops.indexing import static_shape
from qcomp.frontend.ops.operands import choose, compare, function
from qcomp.frontend.ops.rounding import in_float32
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op

_FORWARD: dict[int, type[nn.ConvolutionOp]] = {1: nn.Conv1dOp, 2: nn.Conv2dOp, 3: nn.Conv3dOp}
_TRANSPOSED: dict[int, type[nn.ConvTransposeOp]] = {
    1: nn.ConvTranspose1dOp, 2: nn.ConvTranspose2dOp, 3: nn.ConvTranspose3dOp,
}  # fmt: skip


@op("convolution_backward.default")
@in_float32
def convolution_backward(b: Builder, node: Node) -> Result:
    """Gradients of the input, a transposed convolution; of the weight, one over the batch; of the bias, sums."""
    if b.flag(node, "transposed"):
        raise QcompError("gradients of transposed convolutions are not supported", code="unsupported-op")
    gradient, value, weight = (b.tensor(node, name) for name in ("grad_output", "input", "weight"))
    spatial = len(static_shape(weight)) - 2
    if spatial not in _FORWARD:
        raise QcompError(f"gradients of {spatial}-d convolutions are not supported", code="unsupported-op")
    sizes = {name: b.sizes(node, name, spatial) for name in ("stride", "padding", "dilation")}
    groups, wanted = b.integer(node, "groups"), b.integers(node, "output_mask")
    axes = (0, *range(2, spatial + 2))
    return [
        _of_input(b, gradient, value, weight, sizes, groups) if wanted[0] else None,
        _of_weight(b, gradient, value, weight, sizes, groups) if wanted[1] else None,
        total(b, gradient, axes) if wanted[2] else None,
    ]


Sizes = dict[str, tuple[int, ...]]


def _of_input(
    b: Builder, gradient: SSAValue, value: SSAValue, weight: SSAValue, sizes: Sizes, groups: int
) -> SSAValue:
    spatial = len(shape_of(weight)) - 2
    rest = [
        have - ((out - 1) * step - 2 * pad + spread * (kernel - 1) + 1)
        for have, out, step, pad, spread, kernel in zip(
            static_shape(value)[2:], static_shape(gradient)[2:], *sizes.values(), shape_of(weight)[2:], strict=True
        )
    ]
    # What is left over may be longer than a step, which output_padding cannot be: zeros below it are the same.
    short = [min(size, step - 1) for size, step in zip(rest, sizes["stride"], strict=True)]
    weight = output_major(b, weight, groups)
    made = _TRANSPOSED[spatial](
        gradient, weight, stride=sizes["stride"], padding=sizes["padding"], dilation=sizes["dilation"],
        output_padding=tuple(short), groups=groups,
    )  # fmt: skip
    found = b.add(made)
    high = [size - kept for size, kept in zip(rest, short, strict=True)]
    return b.add(nn.PadOp(found, (0,) * (spatial + 2), (0, 0, *high), 0.0)) if any(high) else found


def _of_weight(
    b: Builder, gradient: SSAValue, value: SSAValue, weight: SSAValue, sizes: Sizes, groups: int
) -> SSAValue:
    """Each tap is a product over batch and pixels: a convolution of the input by the gradient, batch as channels."""
    spatial, kernel = len(shape_of(weight)) - 2, shape_of(weight)[2:]
    order = (1, 0, *range(2, spatial + 2))
    parts: list[SSAValue] = []
    for group in range(groups):
        image, filters = (
            permute_to(b, _group(b, whole, group, groups), order) for whole in (value, gradient)
        )  # fmt: skip
        steps, spread = sizes["dilation"], sizes["stride"]
        made = _FORWARD[spatial](image, filters, stride=steps, padding=sizes["padding"], dilation=spread)
        found = b.add(made)
        for axis, size in enumerate(kernel):
            found = found if shape_of(found)[axis + 2] == size else b.add(nn.SliceOp(found, axis + 2, 0, size))
        parts.append(permute_to(b, found, order))
    return parts[0] if groups == 1 else b.add(nn.CatOp(parts, 0))


def _group(b: Builder, value: SSAValue, group: int, groups: int) -> SSAValue:
    size = shape_of(value)[1] // groups
    return value if groups == 1 else b.add(nn.SliceOp(value, 1, group * size, (group + 1) * size))


def _normal_gradient(
    b: Builder, gradient: SSAValue, normal: SSAValue, rstd: SSAValue, axes: Sequence[int]
) -> SSAValue:  # fmt: skip
    """rstd * (g - mean(g) - normal * mean(g * normal)), the means over what was normalized."""
    means = [b.add(nn.MeanOp(part, axes, True)) for part in (gradient, multiply(b, gradient, normal))]
    return multiply(b, subtract(b, subtract(b, gradient, means[0]), multiply(b, normal, means[1])), rstd)


@op("native_layer_norm_backward.default")
@in_float32
def layer_norm_backward(b: Builder, node: Node) -> Result:
    """Gradients of input, weight and bias."""
    names = ("grad_out", "input", "mean", "rstd")
    gradient, value, mean, rstd = (b.tensor(node, name) for name in names)
    weight, wanted = b.optional(node, "weight"), b.integers(node, "output_mask")
    rank, inner = len(shape_of(value)), len(b.integers(node, "normalized_shape"))
    normal = multiply(b, subtract(b, value, mean), rstd)
    scaled = gradient if weight is None else multiply(b, gradient, weight)
    outer = range(rank - inner)
    return [
        _normal_gradient(b, scaled, normal, rstd, range(rank - inner, rank)) if wanted[0] else None,
        total(b, multiply(b, gradient, normal), outer) if wanted[1] and weight is not None else None,
        total(b, gradient, outer) if wanted[2] and node.argument("bias") is not None else None,
    ]


@op("native_group_norm_backward.default")
@in_float32
def group_norm_backward(b: Builder, node: Node) -> Result:
    """Gradients of input, weight and bias."""
    names = ("grad_out", "input", "mean", "rstd")
    gradient, value, mean, rstd = (b.tensor(node, name) for name in names)
    weight, wanted, groups = b.optional(node, "weight"), b.integers(node, "output_mask"), b.integer(node, "group")
    shape = static_shape(value)
    batch, channels, size = shape[0], shape[1], prod(shape[2:])
    wide = (batch, groups, channels // groups, size)
    gradient, value = (reshape_to(b, item, wide) for item in (gradient, value))
    mean, rstd = (reshape_to(b, item, (batch, groups, 1, 1)) for item in (mean, rstd))
    normal, scaled = multiply(b, subtract(b, value, mean), rstd), gradient
    if weight is not None:
        scaled = multiply(b, gradient, reshape_to(b, weight, (groups, channels // groups, 1)))
    sums = [reshape_to(b, total(b, part, (0, 3)), (channels,)) for part in (multiply(b, gradient, normal), gradient)]
    return [
        reshape_to(b, _normal_gradient(b, scaled, normal, rstd, (2, 3)), shape) if wanted[0] else None,
        sums[0] if wanted[1] else None,
        sums[1] if wanted[2] else None,
    ]


@op("_softmax_backward_data.default", "_log_softmax_backward_data.default")
@in_float32
def softmax_backward(b: Builder, node: Node) -> Result:
    """output * (g - sum(g * output)); of a log softmax, g - exp(output) * sum(g)."""
    gradient, output = b.tensor(node, "grad_output"), b.tensor(node, "output")
    if not shape_of(output):
        return b.scalar(0.0, dtype_of(output))
    axes = (axis_of(b.integer(node, "dim"), len(shape_of(output))),)
    if "log" in node.target:
        return subtract(b, gradient, multiply(b, b.add(nn.ExpOp(output)), total(b, gradient, axes, True)))
    product = multiply(b, gradient, output)
    return subtract(b, product, multiply(b, output, total(b, product, axes, True)))


@op("threshold_backward.default", "hardtanh_backward.default")
def threshold_backward(b: Builder, node: Node) -> Result:
    """The gradient where the input is above the threshold, or strictly inside the bounds."""
    gradient, value = b.tensor(node, "grad_output"), b.tensor(node, "self")
    zero = b.scalar(0, dtype_of(gradient))
    if "hardtanh" not in node.target:
        return choose(b, compare(b, "le", value, b.number(node, "threshold")), zero, gradient, dtype_of(gradient))
    inside = function(
        b, "and", compare(b, "gt", value, b.number(node, "min_val")), compare(b, "lt", value, b.number(node, "max_val"))
    )
    return choose(b, inside, gradient, zero, dtype_of(gradient))


@op("sigmoid_backward.default", "tanh_backward.default")
@in_float32
def curve_backward(b: Builder, node: Node) -> Result:
    """g * y * (1 - y); of tanh g * (1 - y * y)."""
    gradient, output = b.tensor(node, "grad_output"), b.tensor(node, "output")
    one = b.scalar(1.0, dtype_of(output))
    if "tanh" in node.target:
        return multiply(b, gradient, subtract(b, one, multiply(b, output, output)))
    return multiply(b, gradient, multiply(b, subtract(b, one, output), output))


@op("silu_backward.default")
@in_float32
def silu_backward(b: Builder, node: Node) -> Result:
    """g * s * (1 + x * (1 - s)) with s = sigmoid(x)."""
    gradient, value = b.tensor(node, "grad_output"), b.tensor(node, "self")
    half, one = b.add(nn.SigmoidOp(value)), b.scalar(1.0, dtype_of(value))
    slope = add(b, multiply(b, value, subtract(b, one, half)), 1.0)
    return multiply(b, gradient, multiply(b, half, slope))


@op("native_dropout_backward.default")
def dropout_backward(b: Builder, node: Node) -> Result:
    """g * mask * scale."""
    gradient, mask = b.tensor(node, "grad_output"), b.tensor(node, "mask")
    kept = multiply(b, gradient, b.cast(mask, dtype_of(gradient)))
    return arithmetic.multiply(b, kept, b.real(node, "scale"))
