# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of the program under construction that follow from its constants alone, computed when something asks.

A size may be the sum of a mask that forward() makes, or the number of elements that a constant mask selects: the export
calls it an unbacked symbol (``u0``), but it is a number. The reference functions evaluate, so that a .pt2 file, which
is read without torch, gives the same bits as the ExportedProgram in memory. Inputs, states and results of ops with
regions are never known. Each op is evaluated at most once, and all results together are bounded by `KNOWN_LIMIT`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import Pure

from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import sizes_of
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn import ConstantOp, ReshapeOp
from qcomp.dialects.nn.base import UNKNOWN
from qcomp.dialects.quant import encoding_of
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Number, tensor_type
from qcomp.frontend.graph import Meta, Node, Ref, ScalarMeta, TensorMeta
from qcomp.frontend.symbols import Expr
from qcomp.frontend.tensor_data import Array
from qcomp.interpreter.dispatch import evaluate_op
from qcomp.interpreter.reference.narrow_floats import widen

KNOWN_LIMIT = 64 << 20
"""Bytes of all values of one program that are computed at import: a few characters can ask for any number."""

_ITEMS = ("aten.item.default", "aten._local_scalar_dense.default")


@dataclass
class _Evaluated:
    """The values evaluated so far; None for one that is not known."""

    arrays: dict[SSAValue, Array | None] = field(default_factory=dict[SSAValue, "Array | None"])
    nbytes: int = 0


def known_array(b: Builder, value: SSAValue) -> Array | None:
    """The elements of `value` as they are stored; None when they depend on inputs, states or symbolic sizes."""
    done = cast(_Evaluated, b.shared.setdefault(_Evaluated, _Evaluated()))
    pending = [value]
    while pending:
        last = pending[-1]
        owner = last.owner
        if last in done.arrays:
            pending.pop()
        elif not isinstance(owner, Operation) or not _can_evaluate(owner):
            done.arrays[last] = None
        elif isinstance(owner, ConstantOp):
            done.arrays[last] = owner.array
        elif missing := [operand for operand in owner.operands if operand not in done.arrays]:
            pending.append(missing[0])
        else:
            done.arrays[last] = _evaluate(owner, done)
    return done.arrays[value]


def _can_evaluate(op: Operation) -> bool:
    one = len(op.results) == 1 and not op.regions and isinstance(op.results[0].type, TensorType)
    return one and op.has_trait(Pure, value_if_unregistered=False)


def _evaluate(op: Operation, done: _Evaluated) -> Array | None:
    arrays = [array for operand in op.operands if (array := done.arrays[operand]) is not None]
    kind = cast("TensorType[Attribute]", op.results[0].type)
    if len(arrays) != len(op.operands) or encoding_of(kind) is not None or UNKNOWN in kind.get_shape():
        return None
    nbytes = numpy_dtype(kind.element_type).itemsize * math.prod(kind.get_shape())
    if done.nbytes + nbytes > KNOWN_LIMIT:
        return None
    done.nbytes += nbytes
    try:
        return evaluate_op(op, arrays)
    except QcompError:
        return None


def known_number(b: Builder, value: SSAValue) -> Number | None:
    """The one element of `value` as a Python number; None when it is not known."""
    array = known_array(b, value)
    if array is None or array.size != 1:
        return None
    return cast(Number, widen(array, tensor_type(value).element_type).reshape(-1)[0].item())


def has_known_operands(b: Builder, node: Node) -> bool:
    """Whether all that `node` reads is known."""
    refs = (Ref(name) for name in node.uses())
    tensors = (ref for ref in refs if not b.is_number(ref))
    return all(not b.is_complex(ref.name) and known_array(b, b.of(ref)) is not None for ref in tensors)


def read_item(b: Builder, node: Node) -> None:
    """Bind the symbol of ``item()`` to its number, or keep the tensor for those who compute with the number."""
    source, meta = node.argument("self"), b.graph.values.get(node.results()[0])
    if node.target not in _ITEMS or not isinstance(source, Ref) or not isinstance(meta, ScalarMeta):
        return
    if not isinstance(meta.value, Expr):
        return
    value, names = b.of(source), meta.value.symbols()
    number = known_number(b, value)
    # The number of a truth value is the symbol of ``Eq(u0, 1)``.
    if number is not None and len(names) == 1 and (meta.value.op == "symbol" or meta.kind == "bool"):
        b.symbols.update(dict.fromkeys(names, int(number) if meta.kind == "bool" else number))
        return
    for name in names:
        b.items[name] = b.add(ReshapeOp(value, ())) if sizes_of(tensor_type(value)) else value


def bind_result_sizes(b: Builder, meta: Meta | None, value: SSAValue) -> None:
    """Bind unbacked symbols in the export's shape of `value`, such as of ``nonzero()`` of a constant, to its sizes."""
    if not isinstance(meta, TensorMeta):
        return
    for dim, size in zip(meta.shape, sizes_of(tensor_type(value)), strict=False):
        if isinstance(dim, Expr) and dim.op == "symbol" and str(dim) not in b.bindable and _is_static(size):
            b.symbols.setdefault(str(dim), size)


def _is_static(size: int) -> bool:
    return not is_symbolic(size) and size != UNKNOWN
