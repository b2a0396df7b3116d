# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What op handlers work with: the values so far, typed access to a node's arguments, and insertion of IR ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from qcomp.dialects.constant import ConstantData, DataAttr
from qcomp.dialects.dim import is_symbolic, substitute
from qcomp.dialects.dims import sizes_of, tensor_of
from qcomp.dialects.element import element_type, is_float, numpy_dtype
from qcomp.dialects.facts import Assumptions
from qcomp.dialects.location import location
from qcomp.dialects.nn import CastOp, ConstantOp, DimValueOp, ExpandOp
from qcomp.dialects.quant import CastStorageOp, encoding_of, storage_type
from qcomp.dialects.verification import type_problem
from qcomp.errors import QcompError
from qcomp.frontend.graph import Argument, DType, Graph, Location, Node, Ref, ScalarMeta
from qcomp.frontend.scalar_expressions import real_number, whole_number
from qcomp.frontend.size_facts import require_same
from qcomp.frontend.symbols import Dim, Expr
from qcomp.frontend.tensor_data import Array
from qcomp.limits import MAX_COMPUTED_BYTES

Tensor = TensorType[Attribute]
Number = bool | int | float
HALF = ("float16", "bfloat16")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Complex:
    """A complex tensor: two real ones of one dtype."""

    real: SSAValue
    imag: SSAValue

    def __iter__(self) -> Iterator[SSAValue]:
        return iter((self.real, self.imag))


Result = SSAValue | Complex | Sequence["SSAValue | Complex | None"] | None
"""What a handler returns: the value of a single result, or one value per result (None for one that is not offered)."""


def int_size(value: Number) -> int:
    """An integer argument as an int; a symbolic size stays what it is."""
    return cast(int, value) if is_symbolic(value) else int(value)


def tensor_type(value: SSAValue) -> Tensor:
    """The tensor type of `value`."""
    return cast(Tensor, value.type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of `value`."""
    return sizes_of(tensor_type(value))


def element_of(value: SSAValue) -> Attribute:
    """The element type of `value`."""
    return tensor_type(value).element_type


def dtype_of(value: SSAValue) -> str:
    """torch's name of the element type of a plain tensor."""
    return dtype_name(element_of(value))


def dtype_name(element: Attribute) -> str:
    """torch's name of a plain element type."""
    holder = numpy_dtype(element).name
    return "bfloat16" if is_float(element) and holder == "uint16" else holder


def axis_of(axis: int, rank: int) -> int:
    """`axis` counted from 0; torch lets a 0-d tensor be addressed as if 1-d. Raises QcompError when outside."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise QcompError(f"dimension {axis} of a tensor of rank {rank}", code="malformed-graph")
    return axis % max(rank, 1)


@dataclass
class Builder:
    """Builds the body of main. `symbols` gives the sizes of symbolic dimensions, and numbers read from constants."""

    graph: Graph
    block: Block
    symbols: dict[str, Number]
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    complexes: dict[str, Complex] = field(default_factory=dict[str, Complex])
    """The complex values, which are not among `values`."""
    items: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    """What tensors the numbers of data come from: symbols of ``item()``, 0-d."""
    place: LocationAttr | None = None
    bindable: frozenset[str] = frozenset()
    """The symbols that the shapes of the inputs give."""
    assumptions: Assumptions = field(default_factory=Assumptions)
    """What is known of sizes; see `qcomp.frontend.size_facts`."""
    shared: dict[object, object] = field(default_factory=dict[object, object])
    """What handlers keep so that equal things become one: encodings by sharing group, constants seen as codes."""
    _constants: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])
    _made: int = 0
    _half: str | None = None
    """While 16-bit floats are given in float32: the first of them that was read, or ""."""
    _last_constant: Operation | None = None
    outer: Builder | None = None
    """The builder of the program around a subgraph: it holds the constants."""
    import_body: Callable[[Graph, Block, Sequence[SSAValue]], list[SSAValue]] | None = None
    """Fills a block with the nodes of a subgraph, given values for its inputs; returns its outputs."""

    def nested(self, graph: Graph, block: Block) -> Builder:
        """A builder of a subgraph."""
        inner = Builder(
            graph, block, self.symbols, bindable=self.bindable, assumptions=self.assumptions, shared=self.shared,
            outer=self, import_body=self.import_body,
        )  # fmt: skip
        inner._constants = dict(self._constants)
        return inner

    def body(self, graph: Graph, block: Block, inputs: Sequence[SSAValue]) -> list[SSAValue]:
        """Fill `block` with the nodes of `graph`; its outputs."""
        assert self.import_body is not None
        return self.import_body(graph, block, inputs)

    def add(self, op: Operation) -> SSAValue:
        """Append `op` at the current location; its first result."""
        if self.place is not None:
            op.location = self.place
        for result in op.results:
            if (problem := type_problem(result.type)) is not None:
                raise QcompError(f"gives {problem}", code="limit", hint="docs/limits.md lists the limits")
        self.block.add_op(op)
        return op.results[0]

    def constant(self, array: Array, dtype: str | None = None, name: str | None = None) -> SSAValue:
        """A constant of `array`, whose bits are of torch dtype `dtype`."""
        if name is None:
            self._made += array.nbytes
            if self._made > MAX_COMPUTED_BYTES:
                raise QcompError(f"the program computes constants of {self._made} bytes", code="constant-limit")
        data = ConstantData(array, None if dtype is None else element_type(dtype))
        return self.add_constant(ConstantOp(DataAttr(data)), name)

    def room(self, *sizes: int) -> None:
        """Raise QcompError unless a handler may compute an array of these sizes: a number in a file asks for any."""
        count = prod(max(0, size) for size in sizes)
        if 8 * count > MAX_COMPUTED_BYTES:
            text = f"computes {count} numbers at import, more than {MAX_COMPUTED_BYTES // 8} (limit MAX_COMPUTED_BYTES)"
            raise QcompError(text, code="constant-limit")

    def add_constant(self, op: ConstantOp, name: str | None = None) -> SSAValue:
        """Insert a constant before all other ops, after the earlier constants."""
        op.location = location(name) if name else self.place or op.location
        if self.outer is not None:
            place, self.outer.place = self.outer.place, self.place
            value = self.outer.add_constant(op, name)
            self.outer.place = place
            return value
        if self._last_constant is not None:
            self.block.insert_op_after(op, self._last_constant)
        elif self.block.first_op is not None:
            self.block.insert_op_before(op, self.block.first_op)
        else:
            self.block.add_op(op)
        self._last_constant = op
        return op.result

    def add_quantized_constant(self, codes: ConstantOp, kind: Tensor) -> SSAValue:
        """The integer constant `codes` seen as quantized type `kind`."""
        op = ConstantOp(codes.value, kind)
        place = codes.location
        value = self.add_constant(op)
        op.location = place
        return value

    def scalar(self, value: Number, dtype: str) -> SSAValue:
        """A 0-d constant holding `value` as `dtype`. Raises QcompError when an integer type cannot hold it."""
        element = element_type(dtype)
        if is_symbolic(value):
            return self.cast(self.add(DimValueOp(int_size(value))), dtype)
        if dtype == "bfloat16":
            return self.cast(self.scalar(value, "float32"), dtype)
        try:
            return self.constant(np.array(value, numpy_dtype(element)), dtype)
        except OverflowError:
            raise QcompError(f"{value} does not fit {dtype}", code="unsupported-scalar") from None

    def cast(self, value: SSAValue, dtype: str) -> SSAValue:
        """`value` converted to `dtype`; itself when it already is."""
        element = element_type(dtype)
        if element_of(value) == element:
            return value
        return self.add(CastOp(value, tensor_of(element, shape_of(value))))

    def cast_to(self, value: SSAValue, element: Attribute) -> SSAValue:
        """`value` converted to `element`."""
        return self.cast(value, dtype_name(element))

    def expand(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` broadcast to `shape`, whose symbols become those of `value`; itself when it has it."""
        if shape_of(value) == tuple(shape):
            return value
        for size, wanted in zip(shape_of(value)[::-1], shape[::-1], strict=False):
            if size != 1 and is_symbolic(size - wanted):
                require_same(self, size, wanted)
        return self.add(ExpandOp(value, shape))

    def plain(self, value: SSAValue) -> SSAValue:
        """`value` with quantized elements seen as the integers that store them, as torch's graph has them."""
        if encoding_of(value.type) is None:
            return value
        key = ("plain", value)
        if key not in self._constants:
            self._constants[key] = self.add(CastStorageOp(value, storage_type(tensor_type(value))))
        return self._constants[key]

    def size(self, dim: Dim) -> int:
        """A dimension: a number, or symbolic. Raises QcompError for one that no input has."""
        if isinstance(dim, int):
            return dim
        if dim.symbols() <= set(self.symbols):
            return int(dim.evaluate(self.symbols))
        unknown = sorted(dim.symbols() - set(self.symbols) - self.bindable)
        if unknown:
            raise QcompError(
                f"dimension {dim} depends on {', '.join(unknown)}, which the shapes of the inputs do not give",
                code="dynamic-shape",
                hint="sizes that depend on data are not supported; example_inputs fix the sizes of inputs",
            )
        return substitute(dim.dim(), cast("Mapping[str, int]", self.symbols))

    def add_return(self, op: Operation) -> None:
        """Close the block."""
        self.block.add_op(op)

    def reads(self, node: Node, index: int) -> bool:
        """Whether the graph has a name for result `index` of `node`, so that something may read it."""
        names = [part for output in node.outputs for part in (output if isinstance(output, tuple) else (output,))]
        return index < len(names) and names[index] is not None

    # Arguments of nodes. All raise QcompError when the argument is of another kind than asked for.

    def raw(self, node: Node, name: str) -> SSAValue:
        """A tensor argument; codes keep their quantized type."""
        value = node.argument(name)
        if not isinstance(value, Ref):
            raise QcompError(f"argument {name} of {node.target} should be a tensor", code="malformed-graph")
        return self.of(value)

    def tensor(self, node: Node, name: str) -> SSAValue:
        """A tensor argument, codes as plain integers; 16-bit floats in float32 while `widened`."""
        return self._held(self.plain(self.raw(node, name)))

    def _held(self, value: SSAValue) -> SSAValue:
        if self._half is None or dtype_of(value) not in HALF:
            return value
        self._half = self._half or dtype_of(value)
        return self.cast(value, "float32")

    def widened(self, act: Callable[[], ResultT]) -> tuple[ResultT, str]:
        """What `act` does, for which `tensor` and its like give 16-bit floats in float32; and what they were, or ""."""
        outer, self._half = self._half, ""
        try:
            return act(), self._half
        finally:
            self._half = outer

    def optional(self, node: Node, name: str) -> SSAValue | None:
        """A tensor argument that may be None or missing."""
        return None if node.argument(name) is None else self.tensor(node, name)

    def tensors(self, node: Node, name: str) -> list[SSAValue]:
        """An argument that is a list of tensors."""
        value = node.argument(name)
        if not isinstance(value, tuple) or not all(isinstance(part, Ref) for part in value):
            raise QcompError(f"argument {name} of {node.target} should be a list of tensors", code="malformed-graph")
        return [self._held(self.plain(self.of(cast(Ref, part)))) for part in value]

    def of(self, ref: Ref) -> SSAValue:
        """The IR value of a tensor of the graph; constants appear when first read."""
        known = self.values.get(ref.name)
        if known is not None:
            return known
        constant = self.graph.constants.get(ref.name)
        if constant is None:
            raise QcompError(f"value {ref.name[:80]} is not defined", code="malformed-graph")
        value = self._constants.get(constant.data.identity)
        if value is None:
            value = self.constant(constant.data.array, constant.data.dtype, constant.name)
            self._constants[constant.data.identity] = value
            value.name_hint = ref.name if SSAValue.is_valid_name(ref.name) else None
        self.values[ref.name] = value
        return value

    def is_complex(self, name: str) -> bool:
        """Whether a value of the graph is complex."""
        constant = self.graph.constants.get(name)
        return name in self.complexes or (constant is not None and constant.data.dtype in ("complex64", "complex128"))

    def complex(self, ref: Ref) -> Complex:
        """The parts of a complex value."""
        known = self.complexes.get(ref.name)
        if known is None:
            constant = self.graph.constants[ref.name]
            array = constant.data.array
            parts = [np.ascontiguousarray(part).reshape(array.shape) for part in (array.real, array.imag)]
            known = Complex(*(self.constant(part, None, constant.name) for part in parts))
            self.complexes[ref.name] = known
        return known

    def is_number(self, value: Argument) -> bool:
        """Whether an argument is a number, literal or computed from sizes, and not a tensor."""
        if isinstance(value, Ref):
            return isinstance(self.graph.values.get(value.name), ScalarMeta)
        return isinstance(value, bool | int | float)

    def number(self, node: Node, name: str, default: Number | None = None) -> Number:
        """A number: literal, or computed from sizes that are known."""
        value = node.argument(name, default)
        return self._resolve(value, f"argument {name} of {node.target}")

    def _resolve(self, value: Argument, what: str) -> Number:
        if isinstance(value, Ref):
            meta = self.graph.values.get(value.name)
            if not isinstance(meta, ScalarMeta):
                raise QcompError(f"{what} is computed by the program", code="dynamic-value", hint="only sizes may be")
            found = meta.value
            if not isinstance(found, Expr) or found.symbols() <= set(self.symbols):
                return found.evaluate(self.symbols) if isinstance(found, Expr) else found
            if not found.symbols() <= {*self.symbols, *self.bindable}:
                raise QcompError(f"{what} is computed by the program", code="dynamic-value", hint="only sizes may be")
            if meta.kind == "int":
                return self.size(found)
            raise QcompError(
                f"{what} is {found}, which depends on sizes", code="dynamic-value", hint="only sizes may be"
            )
        if isinstance(value, bool | int | float):
            return value
        raise QcompError(f"{what} should be a number", code="malformed-graph")

    def operand(self, node: Node, name: str) -> SSAValue | Number:
        """A tensor or a number, a real number that depends on sizes as a tensor without dimensions."""
        value = node.argument(name)
        if not self.is_number(value):
            return self.tensor(node, name)
        meta = self.graph.values.get(value.name) if isinstance(value, Ref) else None
        if isinstance(meta, ScalarMeta) and isinstance(meta.value, Expr):
            if meta.kind == "int" and not self.items.keys().isdisjoint(meta.value.symbols()):
                return whole_number(self, meta.value)
            if meta.kind == "float" and not meta.value.symbols() <= set(self.symbols):
                return real_number(self, meta.value)
        return self.number(node, name)

    def integer(self, node: Node, name: str, default: int | None = None) -> int:
        """An integer argument."""
        value = self.number(node, name, default)
        if isinstance(value, float):
            raise QcompError(f"argument {name} of {node.target} should be an integer", code="malformed-graph")
        return int_size(value)

    def real(self, node: Node, name: str, default: float | None = None) -> float:
        """A float argument."""
        return float(self.number(node, name, default))

    def flag(self, node: Node, name: str, default: bool = False) -> bool:
        """A boolean argument."""
        return bool(self.number(node, name, default))

    def text(self, node: Node, name: str, default: str | None = None) -> str:
        """A string argument."""
        value = node.argument(name, default)
        if not isinstance(value, str):
            raise QcompError(f"argument {name} of {node.target} should be text", code="malformed-graph")
        return value

    def dtype(self, node: Node, name: str = "dtype") -> str | None:
        """A dtype argument, None when missing."""
        value = node.argument(name)
        return value.name if isinstance(value, DType) else None

    def integers(self, node: Node, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers; a single one counts as a list of one."""
        value = node.argument(name, None if default is None else tuple(default))
        parts = value if isinstance(value, tuple) else (value,)
        found = [self._resolve(part, f"argument {name} of {node.target}") for part in parts]
        if any(isinstance(part, float) for part in found):
            raise QcompError(f"argument {name} of {node.target} should hold integers", code="malformed-graph")
        return tuple(int_size(part) for part in found)

    def sizes(self, node: Node, name: str, count: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """`count` integers, of which a single one stands for all."""
        value = self.integers(node, name, default)
        if len(value) == 1:
            return value * count
        if len(value) != count:
            raise QcompError(
                f"argument {name} of {node.target} needs {count} entries, has {len(value)}", code="malformed-graph"
            )
        return value


def attribute_location(where: Location) -> LocationAttr | None:
    """A graph location as an IR attribute; None when nothing is known."""
    if where.module_path is None and where.file is None:
        return None
    return location(where.module_path, where.file, where.line, where.column)
