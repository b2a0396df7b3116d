# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixing symbolic sizes from example inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from qcomp.dialects.binding import Symbol
from qcomp.errors import QcompError
from qcomp.frontend.graph import Graph, Input, Ref, TensorMeta


def bind_symbols(graph: Graph, example_inputs: Sequence[object] | None) -> dict[str, int]:
    """The sizes that `example_inputs` give to the symbols of the inputs of `graph`; empty without examples.

    Raises QcompError when an example's rank or a fixed size differs, or a size is outside its symbol's range.
    """
    symbols: dict[str, int] = {}
    if example_inputs is None:
        return symbols
    leaves = [value for value in example_inputs for value in _leaves(value)]
    for entry, value in zip(graph.inputs, leaves, strict=False):
        meta = graph.values.get(entry.value.name) if isinstance(entry.value, Ref) else None
        if isinstance(meta, TensorMeta) and hasattr(value, "shape"):
            _bind(graph, entry, meta, tuple(int(size) for size in cast(Any, value).shape), symbols)
    return symbols


def fixed_symbols(graph: Graph, dims: Mapping[str, int] | None) -> dict[str, int]:
    """The sizes that `dims` gives to symbols, by their names or by places, such as "x.0".

    Raises QcompError for a name that means no symbol, two sizes for one, and a size outside its symbol's range.
    """
    found: dict[str, int] = {}
    places = {place: name for name, place in _lone_symbols(graph)}
    for key, size in (dims or {}).items():
        name = key if key in places.values() else places.get(key)
        problem = f"the program has no symbolic size {key}" if name is None else symbol_of(graph, name).check(size)
        if name is None or problem:
            raise QcompError(problem or "", code="option" if name is None else "dynamic-shape")
        if found.setdefault(name, size) != size:
            raise QcompError(f"two sizes for {name}: {found[name]} and {size}", code="option")
    return found


def _lone_symbols(graph: Graph) -> Iterator[tuple[str, str]]:
    """(symbol, input.dimension) where a symbol stands alone."""
    for entry in graph.inputs:
        meta = graph.values.get(entry.value.name) if isinstance(entry.value, Ref) else None
        for axis, dim in enumerate(meta.shape if isinstance(meta, TensorMeta) else ()):
            if not isinstance(dim, int) and dim.op == "symbol":
                yield str(dim), f"{entry.name}.{axis}"


def symbol_of(graph: Graph, name: str) -> Symbol:
    """A symbol with its range; a least size of 2 is what torch writes for any."""
    limits = graph.ranges.get(name)
    low, high = (limits.low or 0, limits.high) if limits else (0, None)
    return Symbol(name, low if low > 2 else 0, high)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        value = list(cast(dict[object, object], value).values())
    if isinstance(value, list | tuple):
        for part in cast(Sequence[object], value):
            yield from _leaves(part)
    else:
        yield value


def _bind(graph: Graph, entry: Input, meta: TensorMeta, sizes: tuple[int, ...], symbols: dict[str, int]) -> None:
    if len(sizes) != len(meta.shape):
        raise QcompError(
            f"example for {entry.name} has rank {len(sizes)}, not {len(meta.shape)}", code="example-inputs"
        )
    for dim, size in zip(meta.shape, sizes, strict=True):
        if isinstance(dim, int):
            matches = dim == size
        elif dim.op == "symbol":
            matches = symbols.setdefault(str(dim), size) == size
            limits = graph.ranges.get(str(dim))
            matches &= limits is None or ((limits.low or 0) <= size and (limits.high is None or size <= limits.high))
        else:
            matches = not dim.symbols() <= set(symbols) or dim.evaluate(symbols) == size
        if not matches:
            raise QcompError(
                f"example for {entry.name} has shape {list(sizes)}, not ({', '.join(str(dim) for dim in meta.shape)})",
                code="example-inputs",
            )
