# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them in float32, each one fixed sequence of IEEE operations.

No fused multiply-add and no library function takes part, so the loop level and C, which spell out the same sequences
(`qcomp.transforms.lower_to_loop.transcendental`), give the same bits. Polynomials are minimax fits by Remez' exchange.
Largest errors over all floats, in units in the last place: exp 0.9, log 0.9, tanh 1.1, erf 1.3, sigmoid 1.8; silu and
gelu are products with these, silu within 2.7 above -85. Denormal results are rounded like others.

Narrower floats are computed in float32 and rounded; float64 has `transcendental64`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qcomp.interpreter.reference import transcendental64
from qcomp.interpreter.reference.array import Array

Polynomial = Sequence[float]
"""Coefficients, the constant first; each is a float32."""

LOG2_E = float.fromhex("0x1.715476p+0")
LN2_HIGH = float.fromhex("0x1.63p-1")
"""The first 9 bits of ln 2: times an exponent it is exact."""
LN2_LOW = float.fromhex("-0x1.bd0106p-13")
EXP_RANGE = (-104.0, 89.0)
"""Outside exp is 0 or infinite."""
EXP: Polynomial = tuple(
    map(float.fromhex, ("0x1.fffffcp-2", "0x1.55548ap-3", "0x1.555916p-5", "0x1.123fc6p-7", "0x1.6a1a6ep-10"))
)
"""(exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2."""

SMALLEST_NORMAL = float.fromhex("0x1p-126")
SQRT_HALF = float.fromhex("0x1.6a09e6p-1")
LOG: Polynomial = tuple(
    map(
        float.fromhex,
        ("0x1.555554p-2", "-0x1.000232p-2", "0x1.99a06p-3", "-0x1.546f2ap-3", "0x1.22cf4ep-3", "-0x1.0d9a3ep-3",
         "0x1.05b75cp-3", "-0x1.392f36p-4"),
    )
)  # fmt: skip
"""(log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2)."""

TANH_SPLIT = float.fromhex("0x1.666666p-1")
TANH: Polynomial = tuple(
    map(
        float.fromhex,
        ("-0x1.55555p-2", "0x1.110f4cp-3", "-0x1.b9bae4p-5", "0x1.617fa4p-6", "-0x1.029c78p-7", "0x1.f28bd2p-10"),
    )
)
"""(tanh(x) / x - 1) / t for t = x^2 and x up to 0.7."""

ERF_SPLIT = float.fromhex("0x1.e66666p-1")
ERF_END = 4.0
"""erf rounds to 1 from here on."""
ERF: Polynomial = tuple(
    map(
        float.fromhex,
        ("0x1.06eba8p-3", "-0x1.812742p-2", "0x1.ce2dcap-4", "-0x1.b80962p-6", "0x1.549664p-8", "-0x1.a88d8ap-11",
         "0x1.574ec8p-14"),
    )
)  # fmt: skip
"""erf(x) / x - 1 in t = x^2 for x up to 0.95."""
ERF_TAIL: Polynomial = tuple(
    map(
        float.fromhex,
        ("0x1.7ea686p-13", "-0x1.212a52p+0", "-0x1.443c48p-1", "-0x1.bbd958p-4", "0x1.9c6a44p-6", "-0x1.12a6f8p-8",
         "0x1.cbd53cp-12", "-0x1.67cc58p-16"),
    )
)  # fmt: skip
"""log(1 - erf(x)) for x between 0.95 and 4, its error weighted by (1 - erf) / erf."""

GELU_LINEAR = float.fromhex("0x1.988454p+0")
"""2 sqrt(2 / pi)."""
GELU_CUBIC = float.fromhex("0x1.2444f2p-4")
"""0.044715 times that."""


def exp(x: Array) -> Array:
    """e to the x: x = n ln 2 + r, then 2^n * (1 + r + r^2 p(r))."""
    return _in_float32(_exp, transcendental64.exp, x)


def log(x: Array) -> Array:
    """Natural logarithm; -inf at zeros, NaN below."""
    return _in_float32(_log, transcendental64.log, x)


def tanh(x: Array) -> Array:
    """Hyperbolic tangent: x + x (t p(t)) with t = x^2 for small x, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    return _in_float32(_tanh, transcendental64.tanh, x)


def erf(x: Array) -> Array:
    """The error function: x + x p(x^2) for small x, else 1 - exp(q(|x|)) with the sign of x."""
    return _in_float32(_erf, transcendental64.erf, x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)): with e = exp(-|x|) and q = e / (1 + e) it is e - e q for negative x, else 1 - q."""
    return _in_float32(_sigmoid, transcendental64.sigmoid, x)


def silu(x: Array) -> Array:
    """x * sigmoid(x); NaN at -inf, as in torch."""
    return _in_float32(lambda v: v * _sigmoid(v), transcendental64.silu, x)


def gelu(x: Array, approximate: str = "none") -> Array:
    """torch's gelu, x times the normal distribution function; "tanh": x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).

    NaN at -inf, as in torch.
    """
    single = _gelu_tanh if approximate == "tanh" else _gelu
    return _in_float32(single, lambda v: transcendental64.gelu(v, approximate), x)


def _in_float32(single: Callable[[Array], Array], double: Callable[[Array], Array], x: Array) -> Array:
    with np.errstate(all="ignore"):
        if x.dtype == np.float64:
            return double(x)
        return single(x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)


def _f(value: float) -> np.float32:
    return np.float32(value)


def _horner(coefficients: Polynomial, x: Array) -> Array:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + _f(coefficient)
    return total


def _clamp(x: Array, low: float, high: float) -> Array:
    x = np.where(x < _f(low), _f(low), x)
    return np.where(x > _f(high), _f(high), x)


def _exp(x: Array) -> Array:
    x = _clamp(x, *EXP_RANGE)
    n = np.rint(x * _f(LOG2_E))
    high, low = x - n * _f(LN2_HIGH), n * _f(LN2_LOW)
    r = high - low
    mantissa = (high + (_horner(EXP, r) * (r * r) - low)) + _f(1)
    return np.where(np.isnan(n), n, np.ldexp(mantissa, np.where(np.isnan(n), _f(0), n).astype(np.int32)))


def _log(x: Array) -> Array:
    tiny = x < _f(SMALLEST_NORMAL)
    bits = np.where(tiny, x * _f(2.0**23), x).view(np.int32)
    n = (bits - _f(SQRT_HALF).view(np.int32)) >> 23
    f = (bits - n * np.int32(2**23)).view(np.float32) - _f(1)
    n = n.astype(np.float32) - np.where(tiny, _f(23), _f(0))
    square = f * f
    rest = ((square * f) * _horner(LOG, f) + n * _f(LN2_LOW)) - square * _f(0.5)
    result = (f + rest) + n * _f(LN2_HIGH)
    result = np.where(x == _f(np.inf), x, result)
    result = np.where(x == _f(0), _f(-np.inf), result)
    return np.where(x >= _f(0), result, _f(np.nan))


def _tanh(x: Array) -> Array:
    size, t = np.abs(x), x * x
    small = x + x * (t * _horner(TANH, t))
    large = _f(1) - _f(2) / (_exp(size + size) + _f(1))
    return np.where(size < _f(TANH_SPLIT), small, np.copysign(large, x))


def _erf(x: Array) -> Array:
    size = np.abs(x)
    return np.where(size < _f(ERF_SPLIT), _erf_small(x), np.copysign(_f(1) - _erf_tail(size), x))


def _erf_small(x: Array) -> Array:
    return x + x * _horner(ERF, x * x)


def _erf_tail(size: Array) -> Array:
    """1 - erf(size) for size of ERF_SPLIT or more."""
    return _exp(_horner(ERF_TAIL, np.where(size > _f(ERF_END), _f(ERF_END), size)))


def _sigmoid(x: Array) -> Array:
    power = _exp(-np.abs(x))
    quotient = power / (_f(1) + power)
    whole = np.where(x < _f(0), power, _f(1))
    return whole - whole * quotient


def _gelu(x: Array) -> Array:
    # With the tail itself, which is never a difference, nothing cancels below 0.
    size = np.abs(x) * _f(SQRT_HALF)
    tail = _f(0.5) * np.where(size > _f(ERF_END), _f(0), _erf_tail(size))
    outer = np.where(x < _f(0), tail, _f(1) - tail)
    inner = _f(0.5) + _f(0.5) * np.copysign(_erf_small(size), x)
    return x * np.where(size < _f(ERF_SPLIT), inner, outer)


def _gelu_tanh(x: Array) -> Array:
    return x * _sigmoid(x * (_f(GELU_LINEAR) + _f(GELU_CUBIC) * (x * x)))
