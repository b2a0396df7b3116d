# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which op does not verify: xDSL's exception does not say."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException


def first_invalid(module: ModuleOp) -> Operation | None:
    """The op at which ``module.verify()`` fails, None when the failure is not an op's own (an empty block, say)."""
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return op
    return None
