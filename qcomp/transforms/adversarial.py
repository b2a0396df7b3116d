# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs made from a function's types to bring mistakes of rewrites to light. The same seed makes the same inputs."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.dialects.binding import bind
from qcomp.dialects.constant import Array
from qcomp.dialects.dims import argument_names, declared_guards, declared_symbols, sizes_of
from qcomp.dialects.element import is_float, numpy_dtype
from qcomp.dialects.quant import encoding_of, storage_type
from qcomp.dialects.sample_sizes import sample_sizes
from qcomp.dialects.specialize import specialize, symbols_in
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import is_narrow, narrow
from qcomp.reading import require_memory

UNKNOWN_SIZE = 3
"""What a dimension that is not known before run time is taken to be."""
_PLANTED = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, -3.4e38, 3.4e38)


def public_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions with a body that are not private, main first."""
    found = [op for op in module.walk() if isinstance(op, FuncOp) and not op.is_declaration]
    public = [op for op in found if op.sym_visibility is None or op.sym_visibility.data != "private"]
    return sorted(public, key=lambda op: op.sym_name.data != "main")


def at_some_sizes(before: ModuleOp, after: ModuleOp) -> tuple[ModuleOp, ModuleOp]:
    """Two forms of a program, the later possibly with fewer symbols, with the same small sizes for all symbols."""
    symbols = symbols_in(after)
    guards = [guard for op in after.walk() if isinstance(op, FuncOp) for guard in declared_guards(op)]
    sizes = sample_sizes(symbols, guards, {symbol.name: 2 + place for place, symbol in enumerate(symbols)})
    static = _specialized(after, sizes)
    functions = {op.sym_name.data: op for op in static.walk() if isinstance(op, FuncOp)}
    for function in public_functions(before):
        declared, later = declared_symbols(function), functions.get(function.sym_name.data)
        if declared and later is not None:
            names = argument_names(function)  # Lowered functions take their results behind them.
            shapes = [_sizes(item)[: len(names)] for item in (function, later)]
            sizes |= bind(declared, names, *shapes)
    return _specialized(before, sizes), static


def _specialized(module: ModuleOp, sizes: dict[str, int]) -> ModuleOp:
    if not symbols_in(module):
        return module
    static = module.clone()
    specialize(static, sizes)
    return static


def _sizes(function: FuncOp) -> list[tuple[int, ...]]:
    kinds = function.function_type.inputs
    return [
        sizes_of(cast("TensorType[Attribute]", kind)) if isinstance(kind, TensorType | MemRefType) else ()
        for kind in kinds
    ]


def inputs_for(function: FuncOp, seed: int, planted: bool) -> list[Array]:
    """An array for each argument of `function`.

    Floats are normal with a spread of 2, a few of them a hundred times as large; `planted` puts NaN, infinities, -0.0,
    denormals and the largest numbers among them. Codes take all values, the extremes for sure. Integers of 32 bits and
    more are 0 or 1, so that they can be indices.
    """
    counts = [
        math.prod(max(size, 1) for size in cast("TensorType[Attribute]", kind).get_shape())
        for kind in function.function_type.inputs
        if isinstance(kind, TensorType | MemRefType)
    ]
    require_memory(8 * (sum(counts) + 2 * max(counts, default=0)), "running the program on made-up inputs")
    rng = np.random.default_rng(seed)
    return [_input(kind, rng, planted) for kind in function.function_type.inputs]


def _input(kind: Attribute, rng: np.random.Generator, planted: bool) -> Array:
    if not isinstance(kind, TensorType | MemRefType):
        raise QcompError(f"no inputs of type {kind} can be made up", code="unsupported-type")
    tensor = cast("TensorType[Attribute] | MemRefType[Attribute]", kind)
    shape = tuple(UNKNOWN_SIZE if size < 0 else size for size in tensor.get_shape())
    if isinstance(tensor, MemRefType):
        return _plain(tensor.element_type, shape, rng, planted)
    encoding = encoding_of(tensor)
    if encoding is None:
        return _plain(tensor.element_type, shape, rng, planted)
    codes = rng.integers(encoding.qmin, encoding.qmax + 1, shape)
    _plant(codes, (encoding.qmin, encoding.qmax), rng)
    return codes.astype(numpy_dtype(storage_type(tensor).element_type))


def _plain(element: Attribute, shape: tuple[int, ...], rng: np.random.Generator, planted: bool) -> Array:
    dtype = numpy_dtype(element)
    if is_float(element):
        values = rng.standard_normal(shape) * np.where(rng.random(shape) < 0.02, 200.0, 2.0)
        if planted:
            _plant(values, _PLANTED, rng)
        with np.errstate(over="ignore"):
            return narrow(values.astype(np.float32), element) if is_narrow(element) else values.astype(dtype)
    if dtype.itemsize >= 4 or dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype.name)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def _plant(
    values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], what: tuple[float, ...], rng: np.random.Generator
) -> None:
    """Put each of `what` somewhere, where there is room for half of the values to stay."""
    flat = values.reshape(-1)
    count = min(len(what), flat.size // 2)
    flat[rng.choice(flat.size, count, replace=False)] = what[:count]
