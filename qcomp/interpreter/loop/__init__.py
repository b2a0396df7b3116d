# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of loop-level modules: functions are compiled to Python over numpy, a register tile at a time.

A buffer is a flat uint8 array, longer than its memref type by `PADDING` bytes; a tile is a numpy array of the
vector's shape, a scalar a numpy scalar, an index a Python int. Iterations of a parallel loop run together, as one more
leading dimension of everything that depends on its variable (`batching`).
"""

from qcomp.interpreter.loop.program import LoopProgram, interpret_loop
from qcomp.interpreter.loop.runtime import PADDING

__all__ = ["PADDING", "LoopProgram", "interpret_loop"]
