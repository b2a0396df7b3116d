# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of every op: one numpy function each, rounding included.

Constant folding, interpreter and C emission all answer to these. They know arrays and `Encoding`, no IR: the binding
from ops to functions is `qcomp.interpreter.ops`. bfloat16 never reaches them: `narrow_floats` widens it first.
"""
