# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them, each one fixed sequence of IEEE operations.

No fused multiply-add and no library function takes part, so the loop level and C, which spell out the same sequences
(`qcomp.transforms.lower_to_loop.transcendental`), give the same bits. Largest errors over all float32, in units in the
last place: exp 0.9, log 0.9, tanh 1.1, erf 1.3, sigmoid 1.8; silu and gelu are products with these, silu within 2.7
above -85. Denormal results are rounded like others.

Float64 has coefficients of its own. Narrower floats are computed in float32 and rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qcomp.interpreter.reference import formulas
from qcomp.interpreter.reference.algebra import NumpyAlgebra
from qcomp.interpreter.reference.array import Array

_FLOAT32, _FLOAT64 = (NumpyAlgebra(np.dtype(kind)) for kind in (np.float32, np.float64))


def exp(x: Array) -> Array:
    """e to the x: x = n ln 2 + r, then 2^n * (1 + r + r^2 p(r))."""
    return _computed(formulas.exp, x)


def log(x: Array) -> Array:
    """Natural logarithm; -inf at zeros, NaN below."""
    return _computed(formulas.log, x)


def tanh(x: Array) -> Array:
    """Hyperbolic tangent: x + x (t p(t)) with t = x^2 for small x, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    return _computed(formulas.tanh, x)


def erf(x: Array) -> Array:
    """The error function: x + x p(x^2) for small x, else 1 - exp(q(|x|)) with the sign of x."""
    return _computed(formulas.erf, x)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)): with e = exp(-|x|) and q = e / (1 + e) it is e - e q for negative x, else 1 - q."""
    return _computed(formulas.sigmoid, x)


def silu(x: Array) -> Array:
    """x * sigmoid(x); NaN at -inf, as in torch."""
    return _computed(formulas.silu, x)


def gelu(x: Array, approximate: str = "none") -> Array:
    """torch's gelu, x times the normal distribution function; "tanh": x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)).

    NaN at -inf, as in torch.
    """
    formula = formulas.gelu_tanh if approximate == "tanh" else formulas.gelu
    return _computed(formula, x)


def _computed(formula: Callable[[NumpyAlgebra, Array], Array], x: Array) -> Array:
    with np.errstate(all="ignore"):
        if x.dtype == np.float64:
            return np.asarray(formula(_FLOAT64, x))
        return formula(_FLOAT32, x.astype(np.float32, copy=False)).astype(x.dtype, copy=False)
