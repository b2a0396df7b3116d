# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The interface of a module at tensor level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, BFloat16Type, DictionaryAttr, IntegerType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.backend.interface import Interface, Port, flat_inputs
from qcomp.dialects.dims import declare_guards, declared_symbols, sizes_of
from qcomp.dialects.element import integer_range, numpy_dtype
from qcomp.dialects.nn.base import UNKNOWN
from qcomp.dialects.nn.conditions import size_conditions
from qcomp.dialects.quant import encoding_of, storage_type
from qcomp.dialects.state import WRITTEN, marked, states_of
from qcomp.errors import QcompError
from qcomp.frontend.pytree import Tree


def interface_of(module: ModuleOp) -> Interface:
    """The interface of main of a module at tensor level. Raises QcompError when it has none that C can have."""
    main = next((op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"), None)
    if main is None:
        raise QcompError("the module has no function main", code="no-function")
    hints = [value.name_hint for value in main.body.block.args]
    states = len(states_of(main))
    kinds, results = main.function_type.inputs.data, main.function_type.outputs.data
    inputs = _ports("input", kinds[: len(kinds) - states], main.arg_attrs, hints)
    outputs = _ports("output", results[: len(results) - states], main.res_attrs, [None] * len(results))
    written = _written(main, [port.name for port in inputs])
    count = len(outputs) - len(written)
    default = Tree() if count == 1 else Tree("tuple", (Tree(),) * count)
    in_tree, out_tree = _tree(main, "nn.in_tree"), _tree(main, "nn.out_tree")
    symbols, conditions = tuple(declared_symbols(main)), tuple(size_conditions(module))
    trees = in_tree or flat_inputs(len(inputs)), out_tree or default
    return Interface(inputs, outputs, *trees, written, symbols, conditions)


def keep_conditions(module: ModuleOp, interface: Interface) -> None:
    """Give main all conditions of the interface as guards: passes change or remove the ops that some come from."""
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            declare_guards(op, interface.conditions)


def _written(main: FuncOp, names: Sequence[str]) -> tuple[int, ...]:
    """The positions of the inputs whose last values are results."""
    found: list[int] = []
    for position in marked(main.res_attrs, WRITTEN):
        name = main.res_attrs.data[position].data[WRITTEN] if main.res_attrs else None
        if not isinstance(name, StringAttr) or name.data not in names:
            raise QcompError.at(main, f"{WRITTEN} is the name of an input", code="state")
        found.append(names.index(name.data))
    return tuple(found)


def _tree(main: FuncOp, name: str) -> Tree | None:
    attribute = main.attributes.get(name)
    return Tree.load(attribute.data) if isinstance(attribute, StringAttr) else None


def _ports(
    role: str, kinds: Sequence[Attribute], attributes: ArrayAttr[DictionaryAttr] | None, hints: Sequence[str | None]
) -> tuple[Port, ...]:
    ports: list[Port] = []
    given = attributes.data if attributes is not None else [DictionaryAttr({})] * len(kinds)
    for index, (kind, entry, hint) in enumerate(zip(kinds, given, hints, strict=False)):
        title = entry.data.get("nn.name")
        name = title.data if isinstance(title, StringAttr) else hint or f"{role}{index}"
        ports.append(_port(name, kind))
    return tuple(ports)


def _port(name: str, kind: Attribute) -> Port:
    if not isinstance(kind, TensorType):
        raise QcompError(f"{name} has type {kind}, only tensors are compiled", code="input")
    tensor = cast("TensorType[Attribute]", kind)
    stored = storage_type(tensor)
    shape = sizes_of(stored)
    if UNKNOWN in shape:
        raise QcompError(f"{name} has a size that is not known", code="dynamic", hint="export it static")
    dtype = numpy_dtype(stored.element_type)
    encoding = encoding_of(tensor)
    if encoding is not None:
        return Port(name, dtype.name, shape, encoding.qmin, encoding.qmax)
    element = stored.element_type
    low, high = integer_range(cast(Any, element)) if isinstance(element, IntegerType) else (0, 0)
    return Port(name, dtype.name, shape, low, high, "bfloat16" if isinstance(element, BFloat16Type) else "")
