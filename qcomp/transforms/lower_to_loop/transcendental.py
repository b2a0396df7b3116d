# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""exp, log, tanh, erf and what is made of them as loop ops: the reference's own formulas, over `Reals`."""

from qcomp.interpreter.reference.formulas import erf, exp, gelu, gelu_tanh, log, sigmoid, silu, tanh

__all__ = ["erf", "exp", "gelu", "gelu_tanh", "log", "sigmoid", "silu", "tanh"]
