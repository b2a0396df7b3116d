# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""State: tensors of a program that live on between calls, such as a KV cache, a counter or running statistics.

A state is an argument of main with ``nn.state`` = its initial value (a constant) and a result with ``nn.state`` = its
name: the value that the next call gets. States come after the other arguments and results, both in the same order:

    func.func @main(%x: tensor<2xf32> {nn.name = "x"},
                    %n: tensor<i64> {nn.name = "count", nn.state = dense<0> : tensor<i64>})
        -> (tensor<2xf32> {nn.name = "output"}, tensor<i64> {nn.name = "count", nn.state = "count"})

An input that the program writes is a result too, with ``nn.written`` = the name of the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from qcomp.dialects.constant import Array, DataAttr
from qcomp.dialects.quant import storage_type
from qcomp.errors import QcompError

STATE = "nn.state"
WRITTEN = "nn.written"


@dataclass(frozen=True)
class State:
    """One state: positions of its argument and result among all of main's, and its value before the first call."""

    name: str
    argument: int
    result: int
    initial: DataAttr


def states_of(function: FuncOp) -> tuple[State, ...]:
    """The states of `function`, at tensor level. Raises QcompError when arguments and results do not pair up."""
    arguments = marked(function.arg_attrs, STATE)
    results = marked(function.res_attrs, STATE)
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    if len(arguments) != len(results):
        raise _malformed(function, f"{len(arguments)} arguments and {len(results)} results are marked {STATE}")
    if arguments != list(range(len(inputs) - len(arguments), len(inputs))) or results != list(
        range(len(outputs) - len(results), len(outputs))
    ):
        raise _malformed(function, "states come last among arguments and results")
    found: list[State] = []
    for argument, result in zip(arguments, results, strict=True):
        initial, name = _entry(function.arg_attrs, argument, STATE), _entry(function.res_attrs, result, STATE)
        kind = inputs[argument]
        if not isinstance(initial, DataAttr) or not isinstance(name, StringAttr):
            raise _malformed(function, f"{STATE} is a constant on arguments and a name on results")
        if (
            kind != outputs[result]
            or not isinstance(kind, TensorType)
            or not _fits(initial, cast(TensorType[Attribute], kind))
        ):
            raise _malformed(function, f"state {name.data}: argument, result and initial value differ in type")
        found.append(State(name.data, argument, result, initial))
    return tuple(found)


def initial_values(function: FuncOp) -> dict[str, Array]:
    """The value of each state of `function` before the first call, by name, at any level."""
    found: dict[str, Array] = {}
    for position in marked(function.arg_attrs, STATE):
        initial = _entry(function.arg_attrs, position, STATE)
        name = _entry(function.arg_attrs, position, "nn.name")
        if not isinstance(initial, DataAttr):
            raise _malformed(function, f"{STATE} is a constant on arguments and a name on results")
        text = name.data if isinstance(name, StringAttr) else f"state{len(found)}"
        found[text if text not in found else f"{text}.{position}"] = initial.array
    return found


def _fits(initial: DataAttr, kind: TensorType[Attribute]) -> bool:
    return initial.data.type == storage_type(kind)


def marked(attributes: ArrayAttr[DictionaryAttr] | None, name: str) -> list[int]:
    """The positions whose attributes have `name`."""
    entries: Sequence[DictionaryAttr] = () if attributes is None else attributes.data
    return [position for position, entry in enumerate(entries) if name in entry.data]


def _entry(attributes: ArrayAttr[DictionaryAttr] | None, position: int, name: str) -> Attribute | None:
    return None if attributes is None else attributes.data[position].data.get(name)


def _malformed(function: FuncOp, problem: str) -> QcompError:
    return QcompError.at(function, problem, code="state")
