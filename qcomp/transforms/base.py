# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every qcomp pass is: an xDSL pass that declares what it does to numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from xdsl.passes import ModulePass


class Letter(StrEnum):
    """What a pass does to the program's numbers."""

    EXACT = "exact"
    """The same bits."""
    CODE = "code"
    """Fed the reference's codes, an op differs by at most 1 code in at most max(1, n/1000) of n elements."""
    REAL = "real"
    """Equal over the reals; float rounding may move."""
    LOSSY = "lossy"
    """Changes the numbers on purpose; runs only when the user names it."""


class QcompPass(ModulePass):
    """A pass with its letter. Options are fields of the frozen dataclass that the subclass is."""

    letter: ClassVar[Letter]
