# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The array type of the reference functions: numpy arrays of any dtype, on which arithmetic type-checks."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
