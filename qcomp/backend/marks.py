# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names by which values are found again after passes.

xDSL drops a numeric suffix behind an underscore from names, so that the values of an imported program share theirs.
A suffix behind a dot stays; passes hand names on, and the same program always gets the same ones.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue


def mark_values(module: ModuleOp) -> None:
    """Give every result of an op of `module` a name of its own: ``relu`` becomes ``relu.17``."""
    for index, op in enumerate(module.walk()):
        for result in op.results:
            result.name_hint = f"{result.name_hint or op.name.rpartition('.')[2]}.{index}"


def unmarked(value: SSAValue) -> str | None:
    """The name that `value` had before `mark_values`."""
    hint = (value.name_hint or "").removesuffix(".dq")  # by which insert-qdq tells a dequantize from its quantize
    name, dot, number = hint.rpartition(".")
    return name if dot and number.isdigit() else value.name_hint
