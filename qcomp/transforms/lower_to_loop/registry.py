# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which ops are lowered to loops, on which element types: the table that lowering functions register in.

`refusal` is the one answer to "is this op lowered for that element type". The lowering itself obeys it, so nothing that
it refuses is lowered; rewrites ask it before they make an op (`Rule.makes`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import encoding_of

if TYPE_CHECKING:
    from qcomp.transforms.lower_to_loop.driver import Lowering

OpT = TypeVar("OpT", bound=Operation)
FunctionT = TypeVar("FunctionT", bound=Callable[..., None])
Lower = Callable[["Lowering", Operation], None]
Elements = frozenset[str]

HALVES: Elements = frozenset({"f16", "bf16"})
REALS: Elements = frozenset({"f32", "f64"})
FLOATS: Elements = REALS | HALVES
INTEGERS: Elements = frozenset({"i8", "ui8", "i16", "ui16", "i32", "i64"})
ALL: Elements = FLOATS | INTEGERS | {"i1"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The lowering of one op class."""

    function: Lower
    elements: Elements
    """Element types that its kernels compute on as they are."""
    symbolic: bool
    """Whether sizes may depend on symbols."""
    in_float32: Callable[[Operation], bool] | None
    """Which ops on `HALVES` are made ones of f32 all the same (`widen-halves`)."""


_ENTRIES: dict[type[Operation], Entry] = {}
_TOPICS = (
    "control",
    "writing",
    "along", "binary", "bitcast", "functions",
    "casts", "convolution", "dynamic", "dynamic_linear", "matmul", "movement", "norm", "picking",
    "pool_indices", "pooling", "recurrent", "reduction", "resample", "sampling", "sizes", "softmax", "sorting",
    "transposed", "unary",
)  # fmt: skip
"""The files that register."""


def lowers(
    *classes: type[OpT], elements: Elements, symbolic: bool = False, in_float32: Callable[[OpT], bool] | None = None,
) -> Callable[[FunctionT], FunctionT]:  # fmt: skip
    """Registers a function as the lowering of op classes; the arguments are the fields of `Entry`.

    Codes are no element type: what they are taken for is for the function to check, like attributes.
    """

    def register(function: FunctionT) -> FunctionT:
        entry = Entry(
            function=cast(Lower, function), elements=elements, symbolic=symbolic,
            in_float32=cast("Callable[[Operation], bool] | None", in_float32),
        )  # fmt: skip
        for kind in classes:
            assert kind not in _ENTRIES, f"two lowerings of {kind.name}"
            _ENTRIES[kind] = entry
        return function

    return register


@cache
def load_lowerings() -> None:
    """Register the lowerings of all ops."""
    for topic in _TOPICS:
        importlib.import_module(f"qcomp.transforms.lower_to_loop.{topic}")


def entry_of(kind: type[Operation]) -> Entry | None:
    """The lowering of ops of class `kind`, if there is one."""
    load_lowerings()
    return _ENTRIES.get(kind)


def lowered_elements(kind: type[Operation]) -> Elements:
    """The element types for which ops of class `kind` are lowered; f16 and bf16, if need be, by `widen-halves`."""
    entry = entry_of(kind)
    if entry is None:
        return frozenset()
    return entry.elements | HALVES if "f32" in entry.elements else entry.elements


def refusal(kind: type[Operation], element: Attribute) -> str | None:
    """Why an op of class `kind` that computes on `element` is not lowered; None when it is.

    An op may be refused all the same, for its attributes or the encodings of its operands.
    """
    return None if str(element) in lowered_elements(kind) else f"{kind.name} of {element} is not lowered to loops"


def takes_halves(op: Operation) -> bool:
    """Whether there is a lowering of `op` that works on f16 and bf16, or none at all."""
    entry = entry_of(type(op))
    if entry is None:
        return True
    return entry.elements >= HALVES and not (entry.in_float32 is not None and entry.in_float32(op))


def computed_element(op: Operation) -> Attribute | None:
    """The element type that `op` computes on: of its first operand, or a choice's second; None for codes."""
    values: list[SSAValue] = [*op.operands, *op.results]
    if isinstance(op, nn.SelectOp):
        values = values[1:]
    kind: Attribute | None = values[0].type if values else None
    if not isinstance(kind, TensorType) or encoding_of(values[0].type) is not None:
        return None
    return tensor(values[0]).element_type
