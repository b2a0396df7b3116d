# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cross-correlation on arrays, by matrix products over gathered windows; depthwise ones tap by tap.

Everything happens in the dtype of the operands. In float64 (and in float32 below 2**24) integer operands give exact
integers whatever the order of summation, which is what makes the BLAS usable for the integer reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from qcomp.interpreter.reference.array import Array

_BLOCK_BYTES = 1 << 26
"""Gathered windows are kept to about this size."""


def convolve(
    value: Array,
    weight: Array,
    *,
    stride: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """[N, C, *spatial] with [C_out, C / groups, *kernel] -> [N, C_out, *out], in the operands' common dtype.

    padding: (begin, end) per spatial dimension, filled with 0.
    """
    value = pad_spatial(value, padding)
    kernel = weight.shape[2:]
    out = tuple(
        (size - step * (taps - 1) - 1) // pitch + 1
        for size, taps, pitch, step in zip(value.shape[2:], kernel, stride, dilation, strict=True)
    )
    if weight.shape[1] == 1 and groups > 1:
        return _depthwise(value, weight, stride, dilation, out)
    result = np.empty((value.shape[0], weight.shape[0], *out), value.dtype)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    for image, target in zip(value, result, strict=True):
        for first, last in _blocks(image, kernel, out):
            rows = (last - first, *out[1:])
            windows = _gather(image[:, first * stride[0] :], kernel, stride, dilation, rows)
            columns = windows.reshape(groups, matrix.shape[2], -1)
            target[:, first:last] = np.matmul(matrix, columns).reshape(-1, *rows)
    return result


def transpose_convolve(
    value: Array, weight: Array, *, stride: Sequence[int], padding: Sequence[int], output_padding: Sequence[int],
    dilation: Sequence[int], groups: int = 1,
) -> Array:  # fmt: skip
    """[N, C, *spatial] with [C_out, C / groups, *kernel] -> [N, C_out, *out], in the operands' common dtype.

    The convolution with the flipped kernel of `value` with stride - 1 zeros between its elements.
    """
    spatial = len(stride)
    sizes = [(size - 1) * step + 1 if size else 0 for size, step in zip(value.shape[2:], stride, strict=True)]
    spread = np.zeros((*value.shape[:2], *sizes), value.dtype)
    spread[(..., *(slice(None, None, step) for step in stride))] = value
    reach = [step * (taps - 1) for step, taps in zip(dilation, weight.shape[2:], strict=True)]
    borders = [(size, size + extra) for size, extra in zip(reach, output_padding, strict=True)]
    flipped = weight[(slice(None), slice(None), *(slice(None, None, -1),) * spatial)]
    whole = convolve(spread, flipped, stride=(1,) * spatial, padding=borders, dilation=dilation, groups=groups)
    return whole[(..., *(slice(cut, size - cut) for cut, size in zip(padding, whole.shape[2:], strict=True)))]


def pad_spatial(value: Array, padding: Sequence[tuple[int, int]], fill: float = 0) -> Array:
    """`value` [..., *spatial] with borders of `fill`; `value` itself when there are none."""
    if not any(begin or end for begin, end in padding):
        return value
    lead, spatial = value.shape[: -len(padding)], value.shape[-len(padding) :]
    sizes = [size + begin + end for size, (begin, end) in zip(spatial, padding, strict=True)]
    padded = np.full((*lead, *sizes), fill, value.dtype)
    inner = tuple(slice(begin, begin + size) for size, (begin, _) in zip(spatial, padding, strict=True))
    padded[(..., *inner)] = value
    return padded


def taps(
    value: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], out: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Each kernel position, in row-major order, with the view of `value` [..., *spatial] that it sees: [..., *out]."""
    for position in product(*(range(size) for size in kernel)):
        starts = [tap * step for tap, step in zip(position, dilation, strict=True)]
        window = tuple(
            slice(start, start + pitch * (size - 1) + 1, pitch)
            for start, pitch, size in zip(starts, stride, out, strict=True)
        )
        yield position, value[(..., *window)]


def _depthwise(
    value: Array, weight: Array, stride: Sequence[int], dilation: Sequence[int], out: tuple[int, ...]
) -> Array:
    multiplier = weight.shape[0] // value.shape[1]
    result = np.zeros((value.shape[0], value.shape[1], multiplier, *out), value.dtype)
    factors = weight.reshape(value.shape[1], multiplier, *weight.shape[2:])
    for position, view in taps(value, weight.shape[2:], stride, dilation, out):
        factor = factors[(slice(None), slice(None), *position)]
        result += view[:, :, None] * factor.reshape(*factor.shape, *(1 for _ in out))
    return result.reshape(value.shape[0], weight.shape[0], *out)


def _blocks(image: Array, kernel: Sequence[int], out: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    row = image.shape[0] * int(np.prod(kernel)) * int(np.prod(out[1:])) * image.dtype.itemsize
    rows = max(1, _BLOCK_BYTES // max(row, 1))
    for first in range(0, out[0], rows):
        yield first, min(first + rows, out[0])


def _gather(
    image: Array, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], out: Sequence[int]
) -> Array:
    """[C, *spatial] -> [C, *kernel, *out]."""
    if all(size == 1 for size in (*kernel, *stride)):
        return image[(slice(None), *(slice(size) for size in out))]
    windows = np.empty((image.shape[0], *kernel, *out), image.dtype)
    for position, view in taps(image, kernel, stride, dilation, out):
        windows[(slice(None), *position)] = view
    return windows
