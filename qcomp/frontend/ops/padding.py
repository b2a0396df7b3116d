# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding: with a constant (negative amounts cut), mirrored, repeated, around; windows as columns and back."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.convolution import batched
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op


def _pairs(value: SSAValue, amounts: Sequence[int]) -> list[tuple[int, int]]:
    """(low, high) of each dimension; torch lists them from the last dimension backwards."""
    rank = len(shape_of(value))
    if len(amounts) % 2 or len(amounts) > 2 * rank:
        raise QcompError(f"padding {list(amounts)} of a tensor of rank {rank}", code="malformed-graph")
    missing = (0,) * (rank - len(amounts) // 2)
    return list(zip((*missing, *amounts[-2::-2]), (*missing, *amounts[::-2]), strict=True))


def _or_0(amount: int) -> int:
    """The larger of `amount` and 0. Asks for the sign of a symbolic amount: whether it is 0 does not matter."""
    return amount if amount >= 0 else 0


def _cut(b: Builder, value: SSAValue, pairs: Sequence[tuple[int, int]]) -> SSAValue:
    """`value` without what negative amounts take away."""
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            size = shape_of(value)[axis]
            value = b.add(nn.SliceOp(value, axis, _or_0(-before), size - _or_0(-after)))
    return value


@op("constant_pad_nd.default", "pad.default")
def pad(b: Builder, node: Node) -> Result:
    """`pad` lists (low, high) from the last dimension backwards; `mode` as the name of the other ops."""
    mode, value = b.text(node, "mode", "constant"), b.tensor(node, "self")
    pairs = _pairs(value, b.integers(node, "pad"))
    if mode != "constant":
        return _mirrored(b, _cut(b, value, pairs) if mode == "circular" else value, pairs, mode)
    value = _cut(b, value, pairs)
    low, high = ([_or_0(pair[side]) for pair in pairs] for side in (0, 1))
    if all(size == 0 for size in (*low, *high)):
        return value
    fill = b.number(node, "value", 0) if node.argument("value") is not None else 0
    if dtype_of(value) == "bool":
        return b.cast(b.add(nn.PadOp(b.cast(value, "uint8"), low, high, float(bool(fill)))), "bool")
    return b.add(nn.PadOp(value, low, high, float(fill)))


def _mirrored(b: Builder, value: SSAValue, pairs: Sequence[tuple[int, int]], mode: str) -> SSAValue:
    for axis, (before, after) in enumerate(pairs):
        if mode == "circular":
            before, after = max(before, 0), max(after, 0)
        if before or after:
            value = b.add(nn.TakeOp(value, axis, _places(shape_of(value)[axis], before, after, mode)))
    return value


def _places(size: int, before: int, after: int, mode: str) -> Sequence[int]:
    places = range(-before, size + after)
    match mode:
        case "reflect" if max(before, after) < size:
            return [size - 1 - abs(size - 1 - abs(place)) for place in places]
        case "replicate" if size:
            return [min(max(place, 0), size - 1) for place in places]
        case "circular" if max(before, after) <= size:
            return [place % max(size, 1) for place in places]
        case "reflect" | "replicate" | "circular":
            raise QcompError(f"{mode} padding ({before}, {after}) of {size} elements", code="malformed-graph")
        case _:
            raise QcompError(f"padding mode {mode!r} is not supported", code="unsupported-op")


@op(*(f"{mode}_pad{n}d.default" for mode in ("reflection", "replication") for n in (1, 2, 3)))
def mirrored_pad(b: Builder, node: Node) -> Result:
    """Mirrored without the edge, or the edge repeated."""
    value, mode = b.tensor(node, "self"), "reflect" if "reflection" in node.target else "replicate"
    return _mirrored(b, value, _pairs(value, b.integers(node, "padding")), mode)


@op("_pad_circular.default")
def circular_pad(b: Builder, node: Node) -> Result:
    """The tensor repeated."""
    value = b.tensor(node, "self")
    pairs = _pairs(value, b.integers(node, "pad"))
    return _mirrored(b, _cut(b, value, pairs), pairs, "circular")


@op("_pad_enum.default")
def numbered_pad(b: Builder, node: Node) -> Result:
    """The modes by number: 1 reflect, 2 replicate, 3 circular."""
    value, mode = b.tensor(node, "self"), b.integer(node, "mode")
    names = {1: "reflect", 2: "replicate", 3: "circular"}
    pairs = _pairs(value, b.integers(node, "pad"))
    return _mirrored(b, _cut(b, value, pairs) if mode == 3 else value, pairs, names.get(mode, str(mode)))


def _sliced(b: Builder, image: SSAValue, axis: int, starts: Sequence[int], stride: int, size: int) -> SSAValue:
    """For each of `starts` the `size` elements of `axis` from there on, `stride` apart; one after the other."""
    reach = (size - 1) * stride + 1
    parts = [b.add(nn.SliceOp(image, axis, start, start + reach, stride)) for start in starts]
    return b.add(nn.CatOp(parts, axis))


@op("im2col.default")
def im2col(b: Builder, node: Node) -> Result:
    """Windows of [N, C, H, W] as columns: [N, C * kernel, windows]."""
    kernel, dilation, padding, stride = (
        b.sizes(node, name, 2) for name in ("kernel_size", "dilation", "padding", "stride")
    )

    def columns(image: SSAValue) -> SSAValue:
        batch, channels = shape_of(image)[:2]
        if any(padding):
            sides = (0, 0, *padding)
            image = b.add(nn.PadOp(image, sides, sides, 0.0))
        sizes: list[int] = []
        for axis in (0, 1):
            size = (shape_of(image)[axis + 2] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
            if is_symbolic(size):
                starts = range(0, kernel[axis] * dilation[axis], dilation[axis])
                image = _sliced(b, image, axis + 2, starts, stride[axis], size)
            else:
                b.room(kernel[axis], size)
                taps = np.arange(kernel[axis])[:, None] * dilation[axis] + np.arange(size) * stride[axis]
                image = b.add(nn.TakeOp(image, axis + 2, [int(place) for place in taps.reshape(-1)]))
            sizes += [kernel[axis], size]
        split = permute_to(b, reshape_to(b, image, (batch, channels, *sizes)), (0, 1, 2, 4, 3, 5))
        return reshape_to(b, split, (batch, channels * prod(kernel), sizes[1] * sizes[3]))

    return batched(b, b.tensor(node, "self"), 4, columns)


@op("col2im.default")
def col2im(b: Builder, node: Node) -> Result:
    """Columns added up to an image where windows overlap: a transposed convolution that picks each tap once."""
    kernel, dilation, padding, stride = (
        b.sizes(node, name, 2) for name in ("kernel_size", "dilation", "padding", "stride")
    )
    output = b.sizes(node, "output_size", 2)
    windows = [(output[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in (0, 1)]
    extra = tuple(
        output[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1 - (windows[i] - 1) * stride[i] for i in (0, 1)
    )

    def image(columns: SSAValue) -> SSAValue:
        batch, rows, _ = shape_of(columns)
        channels = rows // prod(kernel)
        b.room(channels, prod(kernel), prod(kernel))
        picked = np.tile(np.eye(prod(kernel), dtype=np.float32).reshape(1, -1, *kernel), (channels, 1, 1, 1))
        value = reshape_to(b, columns, (batch, rows, *windows))
        weight = b.cast(b.constant(picked), dtype_of(columns))
        return b.add(
            nn.ConvTranspose2dOp(
                value, weight, stride=stride, padding=padding, output_padding=extra, dilation=dilation, groups=channels
            )
        )

    return batched(b, b.tensor(node, "self"), 3, image)
