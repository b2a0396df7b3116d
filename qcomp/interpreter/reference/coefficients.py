# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coefficients of the polynomials of `formulas` and `curves`: minimax fits by Remez' exchange; all are float32.

Those of float64 are in `coefficients64`, under the same names.
"""

from __future__ import annotations

from collections.abc import Sequence

Polynomial = Sequence[float]
"""Coefficients, the constant first; each is a float32."""


def _polynomial(text: str) -> Polynomial:
    return tuple(float.fromhex(word) for word in text.split())


LOG2_E = float.fromhex("0x1.715476p+0")
LN2_HIGH = float.fromhex("0x1.63p-1")
"""The first 9 bits of ln 2: times an exponent it is exact."""
LN2_LOW = float.fromhex("-0x1.bd0106p-13")
EXP_RANGE = (-104.0, 89.0)
"""Outside exp is 0 or infinite."""
EXP2_RANGE = (-152.0, 129.0)
"""So is 2^x."""
EXPM1_RANGE = (-20.0, 20.0)
"""Below, exp(x) - 1 is -1; above, taking off 1 loses nothing."""
EXP = _polynomial("0x1.fffffcp-2 0x1.55548ap-3 0x1.555916p-5 0x1.123fc6p-7 0x1.6a1a6ep-10")
"""(exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2."""
FRACTION = 23
"""Bits of a float behind its leading 1."""
SMALLEST_NORMAL = float.fromhex("0x1p-126")
SQRT_HALF = float.fromhex("0x1.6a09e6p-1")
SQRT_HALF_BITS = 0x3F3504F3
LOG = _polynomial(
    "0x1.555554p-2 -0x1.000232p-2 0x1.99a06p-3 -0x1.546f2ap-3 0x1.22cf4ep-3 -0x1.0d9a3ep-3 0x1.05b75cp-3 -0x1.392f36p-4"
)
"""(log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2)."""
TANH_SPLIT = float.fromhex("0x1.666666p-1")
TANH = _polynomial("-0x1.55555p-2 0x1.110f4cp-3 -0x1.b9bae4p-5 0x1.617fa4p-6 -0x1.029c78p-7 0x1.f28bd2p-10")
"""(tanh(x) / x - 1) / t for t = x^2 and x up to 0.7."""
ERF_SPLIT = float.fromhex("0x1.e66666p-1")
GELU_SPLIT = ERF_SPLIT
"""Below, gelu takes the error function, above what it lacks to 1."""
ERF_END = 4.0
"""erf rounds to 1 from here on."""
ERF = _polynomial(
    "0x1.06eba8p-3 -0x1.812742p-2 0x1.ce2dcap-4 -0x1.b80962p-6 0x1.549664p-8 -0x1.a88d8ap-11 0x1.574ec8p-14"
)
"""erf(x) / x - 1 in t = x^2 for x up to 0.95."""
ERF_TAIL = _polynomial(
    "0x1.7ea686p-13 -0x1.212a52p+0 -0x1.443c48p-1 -0x1.bbd958p-4 0x1.9c6a44p-6 -0x1.12a6f8p-8 "
    "0x1.cbd53cp-12 -0x1.67cc58p-16"
)
"""log(1 - erf(x)) for x between 0.95 and 4, its error weighted by (1 - erf) / erf."""
GELU_LINEAR = float.fromhex("0x1.988454p+0")
"""2 sqrt(2 / pi)."""
GELU_CUBIC = float.fromhex("0x1.2444f2p-4")
"""0.044715 times that."""
EXP2 = _polynomial("0x1.62e43p-1 0x1.ebfbep-3 0x1.c6b074p-5 0x1.3b2a5ep-7 0x1.5d9cd2p-10 0x1.440c56p-13 0x1.ec593p-17")
"""(2^f - 1) / f for |f| <= 1/2."""
SIN = _polynomial("-0x1.555556p-3 0x1.111176p-7 -0x1.a05bbcp-13 0x1.7cd93ap-19")
"""(sin(r) / r - 1) / t for t = r^2 and |r| <= pi/4."""
COS = _polynomial("0x1.555556p-5 -0x1.6c1762p-10 0x1.a075eap-16 -0x1.372526p-22")
"""(cos(r) - 1 + t / 2) / t^2."""
ASIN = _polynomial("0x1.55554cp-3 0x1.3338a6p-4 0x1.6ca8eap-5 0x1.04c116p-5 0x1.d66858p-7 0x1.34433ap-5")
"""(asin(x) / x - 1) / t for t = x^2 and |x| <= 1/2."""
ATAN = _polynomial("-0x1.555554p-2 0x1.99989p-3 -0x1.246fcp-3 0x1.c2f29cp-4 -0x1.533ce2p-4 0x1.643a2ep-5")
"""(atan(x) / x - 1) / t for t = x^2 and |x| <= tan(pi/8)."""
ATANH = _polynomial("0x1.555554p-2 0x1.999c26p-3 0x1.23d3cep-3 0x1.f1413cp-4")
"""(atanh(s) / s - 1) / t for t = s^2 and |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)."""
ERFC = _polynomial(
    "0x1.058672p+0 -0x1.5fd386p-1 0x1.1e2d82p-2 -0x1.2a886cp-5 -0x1.600bb6p-6 0x1.a82fe8p-8 0x1.85e60ep-9 "
    "-0x1.a5fc84p-11 -0x1.cda306p-12"
)
"""erfc(x) exp(x^2) (x + 2) in (x - 2) / (x + 2) for x between 0.47 and 10.2."""
LN2 = float.fromhex("0x1.62e43p-1")
LOG10_2_HIGH = float.fromhex("0x1.34p-2")
LOG10_2_LOW = float.fromhex("0x1.04d428p-12")
LOG10_E = float.fromhex("0x1.bcb7b2p-2")
LN2_TOP_HIGH = float.fromhex("0x1.62e43p+6")
"""128 ln 2: the power of two above the largest float."""
LN2_TOP_LOW = float.fromhex("-0x1.05c61p-22")
PI = float.fromhex("0x1.921fb6p+1")
PI_LOW = float.fromhex("-0x1.777a5cp-24")
HALF_PI = float.fromhex("0x1.921fb6p+0")
HALF_PI_LOW = float.fromhex("-0x1.777a5cp-25")
TAN_PI_8 = float.fromhex("0x1.a8279ap-2")
TAN_3_PI_8 = float.fromhex("0x1.3504f4p+1")
LOG1P_EXACT = 2.0**25
"""1 + x is x from here on."""
ERFC_END = 10.5
"""erfc is 0 from here on."""
TOP = 88.0
"""exp does not overflow up to here."""
HALF_TOP = 2.0**127
"""Half of the power of two above the largest float."""
LARGE = 4096.0
"""x^2 + 1 is x^2 from here on."""
CUT = 12
"""Low bits that are taken off so that products of two floats are exact."""
LARGEST = 3e38
POWER_RANGE = 180.0
POWER_END = 170.0
"""Logarithms to base 2 beyond which powers are 0 or infinite."""
TWO_LOG2_E = float.fromhex("0x1.715476p+1")
TWO_LOG2_E_HIGH = float.fromhex("0x1.714p+1")
TWO_LOG2_E_LOW = float.fromhex("0x1.47652cp-11")
