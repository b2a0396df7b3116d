# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops on constants that qcomp has no form of, evaluated by torch where the program came from torch's own objects.

Only what the op table cannot import comes here, so that a .pt2 file, which is read without torch, gives the same bits
wherever it is imported. Imports torch; the importer loads it for programs in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np
import torch
from xdsl.ir import SSAValue

from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Number, dtype_of
from qcomp.frontend.fx_values import dtype_name, to_numpy
from qcomp.frontend.graph import Argument, DType, Keyword, Node, Ref, ScalarMeta, Subgraph, TensorMeta
from qcomp.frontend.known_values import KNOWN_LIMIT, known_array
from qcomp.frontend.symbols import Expr
from qcomp.frontend.tensor_data import HOLDERS


class _NotKnown(Exception):
    """An argument depends on inputs, or is of a kind that is not evaluated."""


def fold_by_torch(b: Builder, node: Node) -> list[SSAValue | None] | None:
    """The results of `node` as constants; None unless it is a pure aten op of known operands.

    Raises QcompError when torch refuses the operands.
    """
    overload = _overload(node.target)
    if overload is None or any(b.is_complex(name) for name in node.uses()) or _is_large(b, node):
        return None
    try:
        given = {name: _argument(b, value) for name, value in node.arguments if not isinstance(value, Keyword)}
    except _NotKnown:
        return None
    try:
        with torch.no_grad():
            found = overload(**given)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise QcompError(f"torch refuses it: {reason}") from None
    return _constants(b, found)


def _is_large(b: Builder, node: Node) -> bool:
    """Whether a result is more than is kept: torch would take the memory first."""
    for name in node.results():
        meta = b.graph.values.get(name)
        sizes = meta.shape if isinstance(meta, TensorMeta) else ()
        if 8 * prod(size for size in sizes if isinstance(size, int)) > KNOWN_LIMIT:
            return True
    return False


def _overload(target: str) -> Any:
    """The op called `target`; None when it writes its operands or draws random numbers."""
    namespace, _, rest = target.partition(".")
    name, _, overload = rest.partition(".")
    found = getattr(getattr(torch.ops.aten, name, None), overload, None) if namespace == "aten" else None
    if found is None or found._schema.is_mutable or torch.Tag.nondeterministic_seeded in found.tags:
        return None
    return found


def _argument(b: Builder, value: Argument) -> object:
    match value:
        case Ref() if b.is_number(value):
            return _number(b, value)
        case Ref():
            return _known_tensor(b, value)
        case DType():
            return getattr(torch, value.name)
        case Subgraph() | Keyword():
            raise _NotKnown
        case tuple():
            return [_argument(b, part) for part in value]
        case _:
            return value


def _number(b: Builder, value: Ref) -> Number:
    found = cast(ScalarMeta, b.graph.values[value.name]).value
    if not isinstance(found, Expr):
        return found
    if not found.symbols() <= set(b.symbols):
        raise _NotKnown
    return found.evaluate(b.symbols)


def _known_tensor(b: Builder, value: Ref) -> torch.Tensor:
    held = b.plain(b.of(value))
    array = known_array(b, held)
    if array is None:
        raise _NotKnown
    dtype = dtype_of(held)
    tensor = torch.as_tensor(np.array(array))
    return tensor if HOLDERS[dtype].name == dtype else tensor.view(getattr(torch, dtype))


def _constants(b: Builder, found: object) -> list[SSAValue | None] | None:
    if isinstance(found, list | tuple):
        parts = [_constants(b, part) for part in cast("Sequence[object]", found)]
        return None if any(part is None for part in parts) else [value for part in parts for value in part or []]
    if not isinstance(found, torch.Tensor) or found.is_complex() or found.nbytes > KNOWN_LIMIT:
        return None
    name = dtype_name(found.dtype)
    return [b.constant(to_numpy(found), name)] if name in HOLDERS else None
