# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbols replaced by numbers, in a whole module: what a symbolic module means is what its specializations mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, MemRefType, ModuleOp, TensorType, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Attribute, Operation, SSAValue

from qcomp.dialects.binding import Symbol
from qcomp.dialects.dim import is_symbolic, substitute
from qcomp.dialects.dims import (
    DimAttr,
    DimsAttr,
    declare_guards,
    declare_symbols,
    declared_guards,
    declared_symbols,
    has_symbols,
    memref_of,
    size_attribute,
    sizes_of,
    tensor_of,
)
from qcomp.dialects.guard import Guard
from qcomp.dialects.verification import check_sizes
from qcomp.errors import QcompError


def specialize(module: ModuleOp, values: Mapping[str, int]) -> None:
    """Replace the symbols of `values` in all types and ops of `module`.

    Raises QcompError for a size outside its symbol's range, or that makes a dimension negative or a tensor too large.
    """
    known: dict[Attribute, Attribute] = {}
    for op in module.walk():
        _operation(op, values, known)
    check_sizes(module)


def symbols_in(module: ModuleOp) -> list[Symbol]:
    """The symbols of the functions of `module`, each once."""
    found = {symbol.name: symbol for op in module.walk() if isinstance(op, FuncOp) for symbol in declared_symbols(op)}
    return list(found.values())


def _operation(op: Operation, values: Mapping[str, int], known: dict[Attribute, Attribute]) -> None:
    before = sizes_of(op.memref.type) if isinstance(op, AllocOp) else ()
    for value in (*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)):
        _retype(op, value, values, known)
    for table in (op.properties, op.attributes):
        for name, attribute in table.items():
            if isinstance(attribute, DimAttr):
                table[name] = size_attribute(substitute(attribute.data, values))
            elif isinstance(attribute, DimsAttr):
                sizes = [substitute(size, values) for size in attribute.data]
                symbolic = any(map(is_symbolic, sizes))
                table[name] = DimsAttr(tuple(sizes)) if symbolic else DenseArrayBase.from_list(i64, sizes)
    if isinstance(op, AllocOp):
        # One operand for each dimension that is still symbolic.
        pairs = zip([size for size in before if is_symbolic(size)], op.operands, strict=True)
        op.operands = [operand for size, operand in pairs if is_symbolic(substitute(size, values))]
        op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(op.operands), 0])
    if isinstance(op, FuncOp):
        lists = (
            [_type(op, kind, values, known) for kind in kinds]
            for kinds in (op.function_type.inputs, op.function_type.outputs)
        )
        op.function_type = FunctionType.from_lists(*lists)
        for symbol in declared_symbols(op):
            problem = symbol.check(values[symbol.name]) if symbol.name in values else None
            if problem:
                raise QcompError.at(op, problem, code="dynamic-shape")
        guards = _guards(op, values)
        declare_symbols(op, [symbol for symbol in declared_symbols(op) if symbol.name not in values])
        declare_guards(op, guards)


def _guards(func: FuncOp, values: Mapping[str, int]) -> list[Guard]:
    """What is left to check for the other symbols."""
    left: list[Guard] = []
    for guard in declared_guards(func):
        known = guard.at(values).known()
        if known is False:
            raise QcompError.at(func, guard.problem(values), code="dynamic-shape")
        if known is None:
            left.append(guard.at(values))
    return left


def _retype(op: Operation, value: SSAValue, values: Mapping[str, int], known: dict[Attribute, Attribute]) -> None:
    if has_symbols(value.type):
        value._type = _type(op, value.type, values, known)  # pyright: ignore[reportPrivateUsage]


def _type(op: Operation, kind: Attribute, values: Mapping[str, int], known: dict[Attribute, Attribute]) -> Attribute:
    if not has_symbols(kind):
        return kind
    if kind not in known:
        shaped = cast("TensorType[Attribute] | MemRefType[Attribute]", kind)
        sizes = tuple(substitute(size, values) for size in sizes_of(shaped))
        for old, new in zip(sizes_of(shaped), sizes, strict=True):
            if is_symbolic(old) and not is_symbolic(new) and new < 0:
                given = ", ".join(f"{name} = {size}" for name, size in values.items())
                raise QcompError.at(op, f"dimension {old} is {new} for {given}", code="dynamic-shape")
        make = tensor_of if isinstance(shaped, TensorType) else memref_of
        known[kind] = make(shaped.element_type, sizes)
    return known[kind]
