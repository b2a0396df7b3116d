# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `coefficients` has, for formulas of float64: fits through Chebyshev's nodes, relative errors below 2^-56."""

from __future__ import annotations

from collections.abc import Sequence

Polynomial = Sequence[float]


def _polynomial(text: str) -> Polynomial:
    return tuple(float.fromhex(word) for word in text.split())


EXP = _polynomial(
    "0x1.0000000000000p-1 0x1.5555555555557p-3 0x1.5555555555556p-5 0x1.11111111100dfp-7 "
    "0x1.6c16c16c162d6p-10 0x1.a01a01abe62ddp-13 0x1.a01a01a6d7807p-16 0x1.71de02375656cp-19 "
    "0x1.27e4db67b4486p-22 0x1.af4ddd84882fep-26 0x1.1f72fc72e6adfp-29"
)
LOG = _polynomial(
    "0x1.5555555555556p-2 -0x1.fffffffffffe7p-3 0x1.9999999999010p-3 -0x1.5555555558074p-3 "
    "0x1.24924925376fcp-3 -0x1.fffffffe03789p-4 0x1.c71c713ccb202p-4 -0x1.999999970efeap-4 "
    "0x1.745d343989cc1p-4 -0x1.555574ce0c2e4p-4 0x1.3b10575caa7c2p-4 -0x1.248bbb16fa5f9p-4 "
    "0x1.1148d71f7565cp-4 -0x1.009da02073165p-4 0x1.de2b239b1ed44p-5 -0x1.b7c4ec4fa6f46p-5 "
    "0x1.b8106561c49d5p-5 -0x1.f622726139b50p-5 0x1.d031e1695fa0fp-5 -0x1.9a9abd337d594p-6"
)
TANH = _polynomial(
    "-0x1.5555555555555p-2 0x1.11111111110dap-3 -0x1.ba1ba1ba1582fp-5 0x1.664f48809892cp-6 "
    "-0x1.226e34f8ecea4p-7 0x1.d6d3ba9cebad4p-9 -0x1.7da1d133fa48dp-10 0x1.3544ec6dcee2ap-11 "
    "-0x1.f4396d7d1849ep-13 0x1.8f0efc13f85e6p-14 -0x1.2b3dd9628f1bcp-15 0x1.6f019ef46673dp-17 "
    "-0x1.03afeffe1a8bfp-19"
)
ERF = _polynomial(
    "0x1.06eba8214db68p-3 -0x1.812746b0379dap-2 0x1.ce2f21a04213cp-4 -0x1.b82ce312518bbp-6 "
    "0x1.565bcd052d423p-8 -0x1.c02db22c339c9p-11 0x1.f9a2ec253eaa7p-14 -0x1.f4cd7ab157c2bp-17 "
    "0x1.b9a15347e380dp-20 -0x1.5ce240bf20bb0p-23 0x1.dd6d56a9c051dp-27 -0x1.bfd3e0f1947d5p-31"
)
EXP2 = _polynomial(
    "0x1.62e42fefa39efp-1 0x1.ebfbdff82c598p-3 0x1.c6b08d704a0c2p-5 0x1.3b2ab6fba1ddap-7 "
    "0x1.5d87fe78a5276p-10 0x1.430913096fd9fp-13 0x1.ffcbfc670dcd3p-17 0x1.62bfd47773353p-20 "
    "0x1.b524fae6278abp-24 0x1.e6063f7217bc6p-28 0x1.e9d3fe3947472p-32"
)
SIN = _polynomial(
    "-0x1.5555555555555p-3 0x1.1111111111110p-7 -0x1.a01a01a01992fp-13 0x1.71de3a545f836p-19 "
    "-0x1.ae645410e937bp-26 0x1.61217d9252c03p-33 -0x1.ab16f5caa198ap-41"
)
COS = _polynomial(
    "0x1.5555555555555p-5 -0x1.6c16c16c16963p-10 0x1.a01a019f4ddfdp-16 -0x1.27e4fa16cc2d1p-22 "
    "0x1.1eeb67d026ec6p-29 -0x1.907cd8ff5ede7p-37"
)
ASIN = _polynomial(
    "0x1.5555555555556p-3 0x1.3333333332ec4p-4 0x1.6db6db6e3292ep-5 0x1.f1c71c1d4aa0dp-6 0x1.6e8bb1d89492bp-6 "
    "0x1.1c4d343fa57f6p-6 0x1.c9cf3759fd8ffp-7 0x1.78246f32d075cp-7 0x1.524ea8b3aad31p-7 0x1.653a8f8cfd43cp-8 "
    "0x1.1d661531b222ep-6 -0x1.e7a24f548c99fp-7 0x1.d78189767524ep-6"
)
ATAN = _polynomial(
    "-0x1.5555555555555p-2 0x1.999999999933dp-3 -0x1.24924924355d5p-3 0x1.c71c7184c32bfp-4 "
    "-0x1.745d0b153ffadp-4 0x1.3b126143b5cbcp-4 -0x1.10fa5ee9ab25cp-4 0x1.dfe49b2919c4ep-5 "
    "-0x1.a090d1950d2b4p-5 0x1.41495cefb6c73p-5 -0x1.39f38ad451ea6p-6"
)
ATANH = _polynomial(
    "0x1.5555555555555p-2 0x1.999999999999ap-3 0x1.2492492492485p-3 0x1.c71c71c71f2a4p-4 0x1.745d17437a887p-4 "
    "0x1.3b13b26293059p-4 0x1.1110b873ac127p-4 0x1.e202b03b39658p-5 0x1.ab81e911b1079p-5 0x1.beeab7953f2f0p-5"
)
ERFC = _polynomial(
    "0x1.058671b52c776p+0 -0x1.5fd386754eff7p-1 0x1.1e2deea6b11aep-2 -0x1.2a88e6107ebe4p-5 "
    "-0x1.606e41553bc41p-6 0x1.a89eaffaa2259p-8 0x1.9517bb813318cp-9 -0x1.b6fbfb3b6d905p-11 "
    "-0x1.5ba43c0cb481dp-11 0x1.20556b2ef4e7cp-15 0x1.2efa9b9df0e5fp-13 0x1.1e6b743edcd70p-15 "
    "-0x1.6c0ec8e167c66p-16 -0x1.0e082495bbe8ep-16 -0x1.2d67df6de68f4p-20 0x1.ddc2928583097p-19 "
    "0x1.105502726e055p-19 0x1.6d311c120f0edp-23 -0x1.6f8e233e04678p-21 -0x1.10930fe7825c9p-21 "
    "0x1.8d8be498cf6fbp-23 0x1.914c287e26ac9p-23 -0x1.363f4fa06bedcp-24"
)
LOG2_E = float.fromhex("0x1.71547652b82fep+0")
LN2_HIGH = float.fromhex("0x1.62e42fefa4000p-1")
LN2_LOW = float.fromhex("-0x1.8432a1b0e2634p-43")
SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
GELU_LINEAR = float.fromhex("0x1.9884533d43651p+0")
GELU_CUBIC = float.fromhex("0x1.2444f2a4d8b4bp-4")
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
LOG10_2_HIGH = float.fromhex("0x1.34413509f8000p-2")
LOG10_2_LOW = float.fromhex("-0x1.80433b83b532ap-44")
LOG10_E = float.fromhex("0x1.bcb7b1526e50ep-2")
LN2_TOP_HIGH = float.fromhex("0x1.62e42fefa39efp+9")
LN2_TOP_LOW = float.fromhex("0x1.abc9e3b39803fp-46")
PI = float.fromhex("0x1.921fb54442d18p+1")
PI_LOW = float.fromhex("0x1.1a62633145c07p-53")
HALF_PI = float.fromhex("0x1.921fb54442d18p+0")
HALF_PI_LOW = float.fromhex("0x1.1a62633145c07p-54")
TAN_PI_8 = float.fromhex("0x1.a827999fcef32p-2")
TAN_3_PI_8 = float.fromhex("0x1.3504f333f9de6p+1")
TWO_LOG2_E = float.fromhex("0x1.71547652b82fep+1")
TWO_LOG2_E_HIGH = float.fromhex("0x1.7154768000000p+1")
TWO_LOG2_E_LOW = float.fromhex("-0x1.6a3e80f444178p-26")
EXP_RANGE = (-746.0, 710.0)
EXP2_RANGE = (-1078.0, 1025.0)
EXPM1_RANGE = (-40.0, 40.0)
FRACTION = 52
SMALLEST_NORMAL = float.fromhex("0x1p-1022")
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
TANH_SPLIT = 0.7
ERF_SPLIT = 0.95
GELU_SPLIT = 0.5
ERF_END = 28.0
ERFC_END = 28.0
TOP = 709.0
HALF_TOP = 2.0**1023
LARGE = 2.0**28
LOG1P_EXACT = 2.0**54
CUT = 27
LARGEST = 1.7e308
POWER_RANGE = 1100.0
POWER_END = 1090.0
