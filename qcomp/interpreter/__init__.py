# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs mean: reference functions of all ops, and interpreters at tensor and at loop level."""

from qcomp.interpreter.dispatch import evaluate_op, meaning
from qcomp.interpreter.run import Observer, interpret

__all__ = ["Observer", "evaluate_op", "interpret", "meaning"]
