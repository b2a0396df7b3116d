# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms as products with constant matrices, short-time ones as convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.dialects.dim import FIX, is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Complex, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import FloatArray, Node, Ref
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.complexes import complex_op, scaled, self_of
from qcomp.frontend.ops.shape import permute_to, reshape_to

MAX_LENGTH = 4096
"""A transform of N elements takes N * N products."""


def _waves(count: int, kept: int) -> tuple[FloatArray, FloatArray]:
    """cos and sin of 2 pi n k / count: [count, kept] float64."""
    if count > MAX_LENGTH:
        raise QcompError(f"a Fourier transform of {count} elements is not supported", code="unsupported-op")
    turns = np.outer(np.arange(count), np.arange(kept)) % max(count, 1) * (2 * np.pi / max(count, 1))
    return np.cos(turns), np.sin(turns)


def _length(value: SSAValue, axis: int) -> int:
    """How many elements are transformed; sizes of other dimensions may depend on symbols."""
    size = shape_of(value)[axis]
    if is_symbolic(size):
        reason = f"a Fourier transform along a symbolic size, {size}, is not supported"
        raise QcompError(reason, code="dynamic-shape", hint=FIX)
    return size


def _times(b: Builder, value: SSAValue, axis: int, matrix: FloatArray) -> SSAValue:
    """`value` with its dimension `axis` multiplied by `matrix` [old, new]."""
    rank = len(shape_of(value))
    order = [*(place for place in range(rank) if place != axis), axis]
    weight = b.cast(b.constant(np.ascontiguousarray(matrix.T).astype(np.float32)), dtype_of(value))
    if dtype_of(value) == "float64":
        weight = b.constant(np.ascontiguousarray(matrix.T))
    done = b.add(nn.LinearOp(permute_to(b, value, order), weight))
    return permute_to(b, done, [order.index(place) for place in range(rank)])


def _full(b: Builder, value: Complex, axis: int, inverse: bool) -> Complex:
    """From complex numbers to as many."""
    size = _length(value.real, axis)
    cosine, sine = _waves(size, size)
    sign = 1.0 if inverse else -1.0
    re, im = value
    real = arithmetic.subtract(b, _times(b, re, axis, cosine), _times(b, im, axis, sign * sine))
    return Complex(real, arithmetic.add(b, _times(b, im, axis, cosine), _times(b, re, axis, sign * sine)))


def _from_real(b: Builder, value: SSAValue, axis: int, onesided: bool) -> Complex:
    size = _length(value, axis)
    cosine, sine = _waves(size, size // 2 + 1 if onesided else size)
    return Complex(_times(b, value, axis, cosine), _times(b, value, axis, -sine))


def _to_real(b: Builder, value: Complex, axis: int, size: int) -> SSAValue:
    """The inverse of a one-sided transform of `size` elements."""
    kept = size // 2 + 1
    parts = [_fit(b, part, axis, kept) for part in value]
    weight = np.full(kept, 2.0)
    weight[0] = 1.0
    if size % 2 == 0:
        weight[-1] = 1.0
    cosine, sine = (wave.T * weight[:, None] for wave in _waves(size, kept))
    return arithmetic.subtract(b, _times(b, parts[0], axis, cosine), _times(b, parts[1], axis, sine))


def _fit(b: Builder, value: SSAValue, axis: int, size: int) -> SSAValue:
    """`axis` cut or filled with zeros to `size`."""
    shape, length = shape_of(value), _length(value, axis)
    if length > size:
        return b.add(nn.SliceOp(value, axis, 0, size))
    high = [size - length if place == axis else 0 for place in range(len(shape))]
    return b.add(nn.PadOp(value, (0,) * len(shape), high, 0.0)) if any(high) else value


def _normal(b: Builder, value: Complex | SSAValue, mode: int, count: int) -> Complex | SSAValue:
    """torch's normalization modes: 0 none, 1 by the root of the number of elements, 2 by the number."""
    factor = (1.0, 1.0 / math.sqrt(max(count, 1)), 1.0 / max(count, 1))[mode]
    if factor == 1.0:
        return value
    return scaled(b, value, factor) if isinstance(value, Complex) else arithmetic.multiply(b, value, factor)


@complex_op("_fft_r2c.default", makes=True)
def _fft_r2c(b: Builder, node: Node) -> Result:
    value = b.tensor(node, "self")
    axes = [axis_of(dim, len(shape_of(value))) for dim in b.integers(node, "dim")]
    result = _from_real(b, value, axes[-1], b.flag(node, "onesided"))
    for axis in axes[:-1]:
        result = _full(b, result, axis, False)
    count = math.prod(shape_of(value)[axis] for axis in axes)
    return _normal(b, result, b.integer(node, "normalization"), count)


@complex_op("_fft_c2c.default")
def _fft_c2c(b: Builder, node: Node) -> Result:
    value = self_of(b, node)
    axes = [axis_of(dim, len(shape_of(value.real))) for dim in b.integers(node, "dim")]
    count = math.prod(shape_of(value.real)[axis] for axis in axes)
    for axis in axes:
        value = _full(b, value, axis, not b.flag(node, "forward"))
    return _normal(b, value, b.integer(node, "normalization"), count)


@complex_op("_fft_c2r.default")
def _fft_c2r(b: Builder, node: Node) -> Result:
    value, size = self_of(b, node), b.integer(node, "last_dim_size")
    axes = [axis_of(dim, len(shape_of(value.real))) for dim in b.integers(node, "dim")]
    count = size * math.prod(shape_of(value.real)[axis] for axis in axes[:-1])
    for axis in axes[:-1]:
        value = _full(b, value, axis, True)
    return _normal(b, _to_real(b, value, axes[-1], size), b.integer(node, "normalization"), count)


_NORMS = {"forward": (2, 0), "ortho": (1, 1), "backward": (0, 2)}
"""norm: the modes of the transform and of its inverse."""


def _mode(b: Builder, node: Node, inverse: bool) -> int:
    return _NORMS[b.text(node, "norm", "backward") if node.argument("norm") is not None else "backward"][inverse]


def _axes(b: Builder, node: Node, value: SSAValue) -> tuple[list[int], list[int] | None]:
    """The dimensions transformed, and their sizes where they are given."""
    given = None
    for name in ("n", "s"):
        if node.argument(name) is not None:
            given = list(b.integers(node, name))
    if node.argument("dim") is not None:
        dims = b.integers(node, "dim")
    elif given is not None and "n." in node.target:
        dims = tuple(range(-len(given), 0))
    else:
        dims = {"2": (-2, -1), "n": tuple(range(len(shape_of(value))))}.get(node.target.split(".")[1][-1], (-1,))
    return [axis_of(dim, len(shape_of(value))) for dim in dims], given


@complex_op(
    "fft_fft.default", "fft_ifft.default", "fft_fft2.default", "fft_ifft2.default", "fft_fftn.default",
    "fft_ifftn.default", "fft_rfft.default", "fft_rfft2.default", "fft_rfftn.default",
    makes=True,
)  # fmt: skip
def _fft(b: Builder, node: Node) -> Result:
    name = node.target.split(".")[1]
    inverse, value = "ifft" in name, self_of(b, node)
    axes, sizes = _axes(b, node, value.real)
    whole = isinstance(source := node.argument("self"), Ref) and not b.is_complex(source.name)
    re, im = value
    for axis, size in zip(axes, sizes or (), strict=False):
        if size != -1:
            re, im = _fit(b, re, axis, size), im if whole else _fit(b, im, axis, size)
    count = math.prod(shape_of(re)[axis] for axis in axes)
    if whole and not inverse:
        result = _from_real(b, re, axes[-1], "rfft" in name)
        axes = axes[:-1]
    else:
        result = Complex(re, b.expand(im, shape_of(re)))
    for axis in axes:
        result = _full(b, result, axis, inverse)
    return _normal(b, result, _mode(b, node, inverse), count)


@complex_op("fft_irfft.default", "fft_irfft2.default", "fft_irfftn.default", makes=True)
def _irfft(b: Builder, node: Node) -> Result:
    value = self_of(b, node)
    axes, sizes = _axes(b, node, value.real)
    value = Complex(value.real, b.expand(value.imag, shape_of(value.real)))
    last = 2 * (shape_of(value.real)[axes[-1]] - 1) if sizes is None or sizes[-1] == -1 else sizes[-1]
    for axis, size in zip(axes[:-1], (sizes or [-1] * len(axes))[:-1], strict=True):
        if size != -1:
            value = Complex(*(_fit(b, part, axis, size) for part in value))
    count = last * math.prod(shape_of(value.real)[axis] for axis in axes[:-1])
    for axis in axes[:-1]:
        value = _full(b, value, axis, True)
    return _normal(b, _to_real(b, value, axes[-1], last), _mode(b, node, True), count)


def _window(b: Builder, node: Node, size: int) -> SSAValue | None:
    """The window in the middle of a frame of `size`, float32; None for ones."""
    length = size if node.argument("win_length") is None else b.integer(node, "win_length")
    window = b.optional(node, "window")
    if window is None:
        if length == size:
            return None
        b.room(length)
        window = b.constant(np.ones(length, np.float32))
    left = (size - length) // 2
    return b.add(nn.PadOp(window, (left,), (size - length - left,), 0.0)) if length < size else window


def _basis(b: Builder, node: Node, rows: Sequence[FloatArray], size: int) -> SSAValue:
    """Waves times the window, as weights of a convolution: [rows, 1, size]."""
    basis = b.constant(np.concatenate(rows).astype(np.float32).reshape(-1, 1, size))
    window = _window(b, node, size)
    return basis if window is None else arithmetic.multiply(b, basis, window)


@complex_op("stft.default", makes=True)
def _stft(b: Builder, node: Node) -> Result:
    """Frames of n_fft elements, hop_length apart, times the window, transformed: [..., frequencies, frames]."""
    value, size = b.tensor(node, "self"), b.integer(node, "n_fft")
    if dtype_of(value) != "float32":
        raise QcompError(f"stft of {dtype_of(value)} is not supported", code="unsupported-dtype")
    hop = size // 4 if node.argument("hop_length") is None else b.integer(node, "hop_length")
    onesided = node.argument("onesided") is None or b.flag(node, "onesided")
    kept = size // 2 + 1 if onesided else size
    cosine, sine = _waves(size, kept)
    scale = 1 / math.sqrt(size) if b.flag(node, "normalized") else 1.0
    *lead, length = shape_of(value)
    weight = _basis(b, node, (cosine.T * scale, -sine.T * scale), size)
    image = reshape_to(b, value, (math.prod(lead), 1, length))
    found = b.add(nn.Conv1dOp(image, weight, stride=(hop,)))
    frames = shape_of(found)[2]
    parts = [b.add(nn.SliceOp(found, 1, start, start + kept)) for start in (0, kept)]
    result = Complex(*(reshape_to(b, part, (*lead, kept, frames)) for part in parts))
    if node.argument("return_complex") is False:
        halves = [reshape_to(b, part, (*lead, kept, frames, 1)) for part in result]
        return b.add(nn.CatOp(halves, len(lead) + 2))
    return result


@complex_op("istft.default", makes=True)
def _istft(b: Builder, node: Node) -> Result:
    """The inverse: frames times the window, added up where they overlap, over the sum of the squares of the windows."""
    value, size = self_of(b, node), b.integer(node, "n_fft")
    if dtype_of(value.real) != "float32" or b.flag(node, "return_complex"):
        raise QcompError("istft is supported from complex64 to float32 only", code="unsupported-op")
    hop = size // 4 if node.argument("hop_length") is None else b.integer(node, "hop_length")
    *lead, kept, frames = shape_of(value.real)
    if kept != size // 2 + 1:
        raise QcompError("istft of a two-sided spectrum is not supported", code="unsupported-op")
    weight = np.full(kept, 2.0)
    weight[0] = 1.0
    weight[-1] = 1.0 if size % 2 == 0 else 2.0
    weight /= math.sqrt(size) if b.flag(node, "normalized") else size
    cosine, sine = (wave.T * weight[:, None] for wave in _waves(size, kept))
    basis = permute_to(b, _basis(b, node, (cosine, -sine), size), (1, 0, 2))
    parts = [reshape_to(b, part, (math.prod(lead), kept, frames)) for part in value]
    signal = b.add(nn.ConvTranspose1dOp(b.add(nn.CatOp(parts, 1)), basis, stride=(hop,)))
    window = _window(b, node, size)
    window = b.constant(np.ones(size, np.float32)) if window is None else window
    square = reshape_to(b, arithmetic.multiply(b, window, window), (1, 1, size))
    ones = b.expand(b.scalar(1.0, "float32"), (1, 1, frames))
    spread = b.add(nn.ConvTranspose1dOp(ones, square, stride=(hop,)))
    start = size // 2 if b.flag(node, "center", True) else 0
    end = shape_of(signal)[2] - start
    if node.argument("length") is not None:
        end = start + b.integer(node, "length")
    found, level = (_fit(b, item, 2, end) for item in (signal, spread))
    found, level = (b.add(nn.SliceOp(item, 2, start, end)) for item in (found, level))
    # Beyond the last frame torch has zeros.
    level = b.add(nn.MaximumOp(level, b.scalar(1e-11, "float32")))
    return reshape_to(b, arithmetic.divide(b, found, level), (*lead, end - start))
