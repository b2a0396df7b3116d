# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a program between calls of the interpreter.

state = qcomp.State(module)
qcomp.interpret(module, x, state=state)     # goes on from `state` and leaves the new one in it
state["cache"], state.reset()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from qcomp.dialects.state import initial_values
from qcomp.errors import QcompError
from qcomp.interpreter.reference.array import Array


class State(Mapping[str, Array]):
    """The current arrays of main's states by name, in order; they start as the module says."""

    def __init__(self, module: ModuleOp):
        main = next((op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"), None)
        if main is None:
            raise QcompError("the module has no function main", code="no-function")
        self._initial = initial_values(main)
        self._arrays: dict[str, Array] = {}
        self.reset()

    def reset(self) -> None:
        """Go back to the values before the first call."""
        self._arrays = dict(self._initial)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def update(self, arrays: Iterable[Array]) -> None:
        """Take new arrays, in order."""
        self._arrays = {name: np.asarray(array) for name, array in zip(self._arrays, arrays, strict=True)}
