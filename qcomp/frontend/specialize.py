# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixing symbolic sizes from example inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

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
