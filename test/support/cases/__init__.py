# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs on which compilers of quantized models have failed, each named after the public report.

`CASES` maps a name to a `Case`. Every one is seeded and built to show the fault by numbers: sizes differ, scales
differ, zero points are not 0, and what must not be clamped is negative.
"""

from cases import arithmetic, programs, shapes, weights, windows
from cases.base import CASES, Case

__all__ = ["CASES", "Case", "arithmetic", "programs", "shapes", "weights", "windows"]
