# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of whole modules: the op that does not verify, which xDSL's exception does not name; sizes beyond limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import VerifyException

from qcomp.errors import QcompError
from qcomp.limits import misfit


def first_invalid(module: ModuleOp) -> Operation | None:
    """The op at which ``module.verify()`` fails, None when the failure is not an op's own (an empty block, say)."""
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException:
            return op
    return None


def check_sizes(module: ModuleOp) -> None:
    """Raise QcompError, naming op and line, for a tensor of more dimensions or elements than `qcomp.limits` allows."""
    sound: set[Attribute] = set()
    for op in module.walk():
        for kind in _types(op):
            if kind in sound:
                continue
            problem = type_problem(kind)
            if problem:
                raise QcompError.at(op, problem, code="limit", hint="docs/limits.md lists the limits")
            sound.add(kind)


def type_problem(kind: Attribute) -> str | None:
    """The limit that a tensor, memref or vector type exceeds, in words; None for one that a program may have."""
    if not isinstance(kind, TensorType | MemRefType | VectorType):
        return None
    problem = misfit(cast("TensorType[Attribute]", kind).get_shape())
    return None if problem is None else f"a {kind.name} of {problem}"


def _types(op: Operation) -> Iterator[Attribute]:
    for value in op.results:
        yield value.type
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.args)
    if isinstance(op, FuncOp):
        yield from (*op.function_type.inputs, *op.function_type.outputs)
