# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""specialize-dims: symbols become numbers.

    func.func @main(%x: tensor<?x8xf32, #nn.dims<[b, 8]>>) attributes {nn.symbols = [#nn.symbol<b, 0>]}
=>  specialize-dims{dims="b=1"}
    func.func @main(%x: tensor<1x8xf32>)

A symbol may also be named by a place whose size says what it is: ``x.0`` is dimension 0 of input x, b or 4 * b + 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.dialects.binding import can_bind, check_sizes
from qcomp.dialects.dim import substitute, symbols_of
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
    places = {place: size for op in module.walk() if isinstance(op, FuncOp) for place, size in _places(op)}
    values: dict[str, int] = {}
    for key, number in dims.items():
        if key not in names and key not in places:
            hint = f"there are {', '.join([*names, *places])}" if names else "all its sizes are fixed"
            raise QcompError(f"the program has no symbolic size {key}", code="option", hint=hint)
        name, size = (key, number) if key in names else _solved(key, places[key], number)
        if values.setdefault(name, size) != size:
            raise QcompError(f"two sizes for {name}: {values[name]} and {size}", code="option")
    known = [guard for guard in size_conditions(module) if values.keys() >= set(symbols_of([guard.size]))]
    check_sizes(known, values)
    return values


def _solved(place: str, size: int, number: int) -> tuple[str, int]:
    """The symbol of `size` and what it is where `size` is `number`."""
    name = symbols_of([size])[0]
    start = substitute(size, {name: 0})
    found, rest = divmod(number - start, substitute(size, {name: 1}) - start)
    if rest or found < 0:
        raise QcompError(f"{place} is {number}, which {size} cannot be", code="option")
    return name, found


def _places(main: FuncOp) -> list[tuple[str, int]]:
    """(input.dimension, size) where the size is a symbol, or a multiple of one and a number."""
    found: list[tuple[str, int]] = []
    for name, kind in zip(argument_names(main), main.function_type.inputs, strict=True):
        sizes = sizes_of(cast("TensorType[Attribute]", kind)) if isinstance(kind, TensorType) else ()
        for axis, size in enumerate(sizes):
            if can_bind([[size]]):
                found.append((f"{name}.{axis}", size))
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
