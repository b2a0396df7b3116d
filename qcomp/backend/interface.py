# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What goes into a compiled program and what comes out: names, element types, shapes, and how the caller nests them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qcomp.dialects.binding import Symbol, bind, check_ranges, check_sizes
from qcomp.dialects.dim import is_symbolic, substitute, symbols_of
from qcomp.dialects.dim_json import from_plain, to_plain
from qcomp.dialects.guard import Guard
from qcomp.dialects.sample_sizes import sample_sizes
from qcomp.errors import QcompError
from qcomp.frontend.pytree import Tree

if TYPE_CHECKING:
    from qcomp.dialects.constant import Array


@dataclass(frozen=True)
class Port:
    """An input or output. dtype: numpy's name; low, high: the least and largest value of integers and codes.

    shape: sizes may depend on symbols (`qcomp.dialects.dim`). element: "bfloat16" where uint16 holds the bits of those,
    which numpy lacks; else empty.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int = 0
    high: int = 0
    element: str = ""

    def accept(self, value: object) -> Array:
        """`value` as an aligned array of consecutive elements. Raises QcompError when it does not fit."""
        if not isinstance(value, np.ndarray | np.generic):
            raise self._misfit(f"expected a numpy array or a torch tensor, got {type(value).__name__}")
        array = cast("Array", np.asarray(cast(Any, value)))
        if array.dtype != self.dtype:
            raise self._misfit(f"expected {self.dtype}, got {array.dtype}", f"convert it to {self.dtype}")
        symbolic = any(map(is_symbolic, self.shape))  # Then `Interface.bind` compares.
        if not symbolic and array.shape != self.shape:
            raise self._misfit(f"expected shape {list(self.shape)}, got {list(array.shape)}")
        flags = array.flags
        return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")

    def _misfit(self, problem: str, hint: str | None = None) -> QcompError:
        return QcompError(f"input {self.name}: {problem}", code="input", hint=hint)


@dataclass(frozen=True)
class Interface:
    """Inputs and outputs in order. in_tree: the structure of (args, kwargs); out_tree: that of the result.

    The last outputs are the values of the inputs that the model writes; `written` has the positions of these inputs.
    symbols: the sizes that calls choose, in order; conditions: what must hold for them beside their ranges.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    in_tree: Tree
    out_tree: Tree
    written: tuple[int, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    conditions: tuple[Guard, ...] = ()

    def bind(self, inputs: Sequence[Array]) -> dict[str, int]:
        """The sizes of the symbols for `inputs`. Raises QcompError for shapes that do not fit, naming the place."""
        if not self.symbols:
            return {}
        names, shapes = [port.name for port in self.inputs], [port.shape for port in self.inputs]
        values = bind(self.symbols, names, shapes, [array.shape for array in inputs])
        check_sizes(self.conditions, values)
        return values

    def at(self, sizes: Mapping[str, int]) -> Interface:
        """The interface for sizes of all symbols. Raises QcompError for sizes that the program does not take."""
        check_ranges(self.symbols, sizes)
        check_sizes(self.conditions, sizes)
        ports = [
            tuple(replace(port, shape=tuple(substitute(size, sizes) for size in port.shape)) for port in group)
            for group in (self.inputs, self.outputs)
        ]
        return Interface(ports[0], ports[1], self.in_tree, self.out_tree, self.written)

    def usual_sizes(self, wanted: int) -> dict[str, int]:
        """Sizes of all symbols: `wanted` where the ranges and conditions allow it, else the nearest larger that do."""
        return sample_sizes(self.symbols, self.conditions, {symbol.name: wanted for symbol in self.symbols})

    def flatten(self, inputs: Sequence[object], keywords: Mapping[str, object]) -> Sequence[object]:
        """The values for `self.inputs` out of a call. Raises QcompError naming the place that does not fit."""
        fits = not keywords and len(inputs) == len(self.inputs)
        if fits and not any(map(_is_nest, inputs)):
            return inputs
        flat = self.in_tree == flat_inputs(len(self.inputs))
        if flat and fits:
            return inputs
        ordered, named = self.in_tree.children
        if len(inputs) != len(ordered.children) or set(keywords) != set(named.keys):
            count = len(ordered.children)
            names = f" ({', '.join(port.name for port in self.inputs)})" if flat else ""
            wanted = f"{count} input{'' if count == 1 else 's'} in order{names}{_by_name(named.keys)}"
            raise QcompError(f"expected {wanted}, got {len(inputs)}{_by_name(keywords)}", code="input")
        found = [leaf for i, each in enumerate(inputs) for leaf in ordered.children[i].flatten(each, f"input {i}")]
        for name, child in zip(named.keys, named.children, strict=True):
            found += child.flatten(keywords[str(name)], f"input {name}")
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        ports = {name: [asdict(port) for port in getattr(self, name)] for name in ("inputs", "outputs")}
        for port in (*ports["inputs"], *ports["outputs"]):
            port["shape"] = [to_plain(size) for size in port["shape"]]
        trees = {"in_tree": self.in_tree.dump(), "out_tree": self.out_tree.dump()}
        found: dict[str, Any] = {**ports, **trees, "written": list(self.written)}
        if self.symbols:
            found["symbols"] = [asdict(symbol) for symbol in self.symbols]
            found["conditions"] = [guard.to_json() for guard in self.conditions]
        return found

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Interface:
        """What `to_json` gave. Raises KeyError, ValueError, TypeError or QcompError for anything else."""
        inputs, outputs = (tuple(map(_port, data[name])) for name in ("inputs", "outputs"))
        written = tuple(_integer(position) for position in data.get("written", ()))
        symbols = tuple(map(_symbol, data.get("symbols", ())))
        conditions = tuple(map(Guard.from_json, data.get("conditions", ())))
        trees = Tree.load(data["in_tree"]), Tree.load(data["out_tree"])
        found = Interface(inputs, outputs, *trees, written, symbols, conditions)
        found._check()
        return found

    def _check(self) -> None:
        """Raise ValueError unless the parts fit together."""
        counts = (self.in_tree.count(), self.out_tree.count() + len(self.written))
        nests = [child.kind for child in self.in_tree.children]
        sizes = [size for port in (*self.inputs, *self.outputs) for size in port.shape]
        sizes += [guard.size for guard in self.conditions]
        names = [symbol.name for symbol in self.symbols]
        good = (
            counts == (len(self.inputs), len(self.outputs))
            and (self.in_tree.kind, nests) == ("tuple", ["tuple", "dict"])
            and set(self.written) <= set(range(len(self.inputs)))
            and set(symbols_of(sizes)) <= set(names)
            and len(set(names)) == len(names)
        )
        if not good:
            raise ValueError("the parts of the interface do not fit together")


def _port(data: Mapping[str, Any]) -> Port:
    shape: Any = tuple(map(from_plain, data["shape"]))
    if np.dtype(data["dtype"]).kind not in "biuf" or data["dtype"] != np.dtype(data["dtype"]).name:
        raise ValueError("a port's elements are numbers")  # objects would be pointers from the file's author
    if any(not is_symbolic(size) and size < 0 for size in shape):
        raise ValueError("sizes are 0 or more")
    if not isinstance(data["name"], str) or data.get("element", "") not in ("", "bfloat16"):
        raise TypeError("a port has a name and an element type")
    for name in ("low", "high"):
        _integer(data.get(name, 0))
    return Port(**{**data, "shape": shape})


def _symbol(data: Mapping[str, Any]) -> Symbol:
    found = Symbol(**data)
    if not isinstance(cast(object, found.name), str):
        raise TypeError("a symbol has a name")
    for bound in (found.low, found.high):
        _integer(0 if bound is None else bound)
    return found


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def flat_inputs(count: int) -> Tree:
    """The structure of a call with `count` positional tensors."""
    return Tree("tuple", (Tree("tuple", (Tree(),) * count), Tree("dict")))


def _by_name(names: Iterable[str | int]) -> str:
    listed = ", ".join(map(str, names))
    return f" and by name {listed}" if listed else ""


def _is_nest(value: object) -> bool:
    return value is None or isinstance(value, dict | list | tuple | int | float | str)
