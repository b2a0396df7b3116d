# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specialize-dims: symbols become numbers.

    func.func @main(%x: tensor<?x8xf32, #nn.dims<[b, 8]>>) attributes {nn.symbols = [#nn.symbol<b, 0>]}
=>  specialize-dims{dims="b=1"}
    func.func @main(%x: tensor<1x8xf32>)

A symbol may also be named by a place where it stands alone: ``x.0`` is dimension 0 of input x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.dialects.binding import check_sizes
from qcomp.dialects.dim import is_symbolic, symbols_of
from qcomp.dialects.dims import argument_names, sizes_of
from qcomp.dialects.nn.conditions import size_conditions
from qcomp.dialects.specialize import specialize, symbols_in
from qcomp.errors import QcompError
from qcomp.transforms.base import Letter, QcompPass


def resolve(module: ModuleOp, dims: Mapping[str, int]) -> dict[str, int]:
    """Sizes by symbol, of names of symbols and places.

    Raises QcompError for names that mean no symbol of `module` and sizes for which an op has no result.
    """
    names = [symbol.name for symbol in symbols_in(module)]
    places = {place: name for op in module.walk() if isinstance(op, FuncOp) for place, name in _places(op)}
    values: dict[str, int] = {}
    for key, size in dims.items():
        name = key if key in names else places.get(key)
        if name is None:
            hint = f"there are {', '.join([*names, *places])}" if names else "all its sizes are fixed"
            raise QcompError(f"the program has no symbolic size {key}", code="option", hint=hint)
        if values.setdefault(name, size) != size:
            raise QcompError(f"two sizes for {name}: {values[name]} and {size}", code="option")
    check_sizes([guard for guard in size_conditions(module) if values.keys() >= set(symbols_of([guard.size]))], values)
    return values


def _places(main: FuncOp) -> list[tuple[str, str]]:
    """(input.dimension, symbol) where a symbol stands alone."""
    found: list[tuple[str, str]] = []
    for name, kind in zip(argument_names(main), main.function_type.inputs, strict=True):
        sizes = sizes_of(cast("TensorType[Attribute]", kind)) if isinstance(kind, TensorType) else ()
        for axis, size in enumerate(sizes):
            if is_symbolic(size) and symbols_of([size]) == [str(size)]:
                found.append((f"{name}.{axis}", str(size)))
    return found


def parse_dims(texts: tuple[str, ...]) -> dict[str, int]:
    """``("b=1", "s=128")`` or ``("b=1,s=128",)`` as a mapping. Raises QcompError for other texts."""
    values: dict[str, int] = {}
    for text in ",".join(texts).split(",") if texts else ():
        name, mark, size = text.rpartition("=")
        if not mark or not name or not size.isdigit():
            raise QcompError(f"{text!r} is no NAME=SIZE", code="option", hint='as in "b=1"')
        values[name] = int(size)
    return values


@dataclass(frozen=True)
class SpecializeDimsPass(QcompPass):
    """Replace symbolic sizes by numbers."""

    name = "specialize-dims"
    letter: ClassVar[Letter] = Letter.EXACT
    dims: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        specialize(op, resolve(op, parse_dims(self.dims)))
