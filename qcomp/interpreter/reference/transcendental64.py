# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them in float64 by numpy: what the formulas are measured by."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

Float64Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_NODES_PER_UNIT = 32
_ERF_END = 6.0
"""erf(x) is 1 in float64 from here on."""


def exp(x: Float64Array) -> Float64Array:
    """e to the x."""
    return np.exp(x)


def log(x: Float64Array) -> Float64Array:
    """Natural logarithm."""
    return np.log(x)


def tanh(x: Float64Array) -> Float64Array:
    """Hyperbolic tangent."""
    return np.tanh(x)


def sigmoid(x: Float64Array) -> Float64Array:
    """1 / (1 + exp(-x))."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def silu(x: Float64Array) -> Float64Array:
    """x * sigmoid(x); NaN at -inf, as in torch."""
    return x * sigmoid(x)


def gelu(x: Float64Array, approximate: str = "none") -> Float64Array:
    """torch's gelu: x/2 * (1 + erf(x / sqrt(2))), or with tanh(sqrt(2/pi) * (x + 0.044715 x**3)) for "tanh"."""
    if approximate == "tanh":
        inner = np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))
    else:
        inner = erf(x * math.sqrt(0.5))
    return x * 0.5 * (1.0 + inner)


def erf(x: Float64Array) -> Float64Array:
    """erf in float64, error below 1e-15: Taylor's series around the nearest of nodes 1/32 apart.

    The k-th derivative is 2/sqrt(pi) * exp(-x**2) * (-1)**(k-1) * H_{k-1}(x) with Hermite's polynomials.
    """
    size = np.minimum(np.abs(x), _ERF_END)
    index = np.where(np.isnan(size), 0, np.rint(size * _NODES_PER_UNIT)).astype(np.intp)
    table = _erf_table()
    step = size - index / _NODES_PER_UNIT
    total = table[-1][index]
    for coefficients in table[-2::-1]:
        total = total * step + coefficients[index]
    return np.copysign(np.minimum(total, 1.0), x)


def erfc(x: Float64Array) -> Float64Array:
    """1 - erf(x), each element by the platform's function: its tail is no difference."""
    return np.vectorize(math.erfc, otypes=[np.float64])(x)


@cache
def _erf_table() -> list[Float64Array]:
    nodes = np.arange(int(_ERF_END * _NODES_PER_UNIT) + 1) / _NODES_PER_UNIT
    slope = 2.0 / math.sqrt(math.pi) * np.exp(-nodes * nodes)
    table: list[Float64Array] = [np.array([math.erf(node) for node in nodes])]
    previous, current = np.zeros_like(nodes), np.ones_like(nodes)
    for order in range(1, 9):
        table.append((-1.0) ** (order - 1) * slope * current / math.factorial(order))
        previous, current = current, 2.0 * nodes * current - 2.0 * (order - 1) * previous
    return table
