# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Window functions and the frequencies of Fourier transforms, as constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qcomp.dialects.dim import FIX, is_symbolic
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Result
from qcomp.frontend.graph import Node
from qcomp.frontend.ops.table import op
from qcomp.frontend.tensor_data import FloatArray
from qcomp.limits import MAX_COMPUTED_BYTES


def _length(b: Builder, node: Node, name: str) -> int:
    size = b.integer(node, name)
    if is_symbolic(size):
        raise QcompError(f"{node.target} of a symbolic size, {size}, is not supported", code="dynamic-shape", hint=FIX)
    if not 0 <= size <= MAX_COMPUTED_BYTES // 8:
        raise QcompError(f"{node.target} of {size} elements is not supported", code="unsupported-op")
    return size


def _waves(places: FloatArray, *factors: float) -> FloatArray:
    """A sum of cosines of 0, 1, 2 ... turns over places from 0 to 1."""
    return sum((factor * np.cos(2 * np.pi * turns * places) for turns, factor in enumerate(factors)), np.zeros(1))


def _window(*targets: str) -> Callable[[Callable[[Builder, Node, FloatArray], FloatArray]], object]:
    """Register a window, given as a function of places from 0 to 1.

    A periodic one is one longer, without its last element.
    """

    def register(formula: Callable[[Builder, Node, FloatArray], FloatArray]) -> object:
        @op(*targets)
        def handler(b: Builder, node: Node) -> Result:
            size, dtype = _length(b, node, "window_length"), b.dtype(node) or promotion.DEFAULT_FLOAT
            span = size if b.flag(node, "periodic", True) else size - 1
            values = formula(b, node, np.arange(size) / span) if size > 1 else np.ones(size)
            return b.cast(b.constant(values.astype(np.float64 if dtype == "float64" else np.float32)), dtype)

        return handler

    return register


@_window("hann_window.default", "hann_window.periodic")
def hann(b: Builder, node: Node, places: FloatArray) -> FloatArray:
    """Half a cosine, raised."""
    return _waves(places, 0.5, -0.5)


@_window(*(f"hamming_window.{overload}" for overload in (
    "default", "periodic", "periodic_alpha", "periodic_alpha_beta",
)))  # fmt: skip
def hamming(b: Builder, node: Node, places: FloatArray) -> FloatArray:
    """A raised cosine that does not reach 0."""
    return _waves(places, b.real(node, "alpha", 0.54), -b.real(node, "beta", 0.46))


@_window("blackman_window.default", "blackman_window.periodic")
def blackman(b: Builder, node: Node, places: FloatArray) -> FloatArray:
    """Two cosines."""
    return _waves(places, 0.42, -0.5, 0.08)


@_window("bartlett_window.default", "bartlett_window.periodic")
def bartlett(b: Builder, node: Node, places: FloatArray) -> FloatArray:
    """A triangle."""
    return 1 - np.abs(2 * places - 1)


@_window("kaiser_window.default", "kaiser_window.periodic", "kaiser_window.beta")
def kaiser(b: Builder, node: Node, places: FloatArray) -> FloatArray:
    """A Bessel function of half a circle."""
    beta = b.real(node, "beta", 12.0)
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * places - 1) ** 2, 0))) / np.i0(beta)


@op("fft_fftfreq.default", "fft_rfftfreq.default")
def frequencies(b: Builder, node: Node) -> Result:
    """The frequencies of `n` samples `d` apart: those of positive sign, then, unless the input is real, the others."""
    size, dtype = _length(b, node, "n"), b.dtype(node) or promotion.DEFAULT_FLOAT
    places = np.arange(size // 2 + 1) if "rfft" in node.target else (np.arange(size) + size // 2) % size - size // 2
    held = np.float64 if dtype == "float64" else np.float32
    # torch multiplies by the reciprocal, rounded to the result's type.
    return b.cast(b.constant(places.astype(held) * held(1 / (size * b.real(node, "d", 1.0)))), dtype)
