# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowering of main: a buffer for every tensor, a call of a kernel for every op.

`Lowering` is what the lowering functions of the ops (registered with `lowers`, by topic in the files beside this one)
work with: operands as buffers, results as buffers, constants, calls. Equal kernels are one function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from qcomp.backend.target import GENERIC, Target
from qcomp.dialects import loop, nn
from qcomp.dialects.constant import Array, ConstantData, DataAttr
from qcomp.dialects.dim import FIX, is_symbolic, larger
from qcomp.dialects.dims import declare_symbols, declared_symbols, memref_of, sizes_of
from qcomp.dialects.element import is_float
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import ObserveOp, encoding_of
from qcomp.dialects.spool import spooled
from qcomp.dialects.state import states_of
from qcomp.errors import QcompError
from qcomp.interpreter.reference.narrow_floats import is_narrow, widen
from qcomp.refusals import RefusalError, refusal_of
from qcomp.transforms.coded_weights import CodedWeight, coded_weight
from qcomp.transforms.lower_to_loop.buffers import (
    Border,
    Buffer,
    Layout,
    lies_as_itself,
    no_border,
    physical_shape,
    static_shape,
    storage_element,
)
from qcomp.transforms.lower_to_loop.builder import Builder, doubled, real_buffer, real_type
from qcomp.transforms.lower_to_loop.layouts import Layouts
from qcomp.transforms.lower_to_loop.registry import HALVES, Elements, Entry, computed_element, entry_of, load_lowerings
from qcomp.transforms.lower_to_loop.tied import TiedTables
from qcomp.transforms.rewriting import located
from qcomp.writing import WriteError

MemRef = MemRefType[Attribute]
MAY_ALIAS = "qcomp.may_alias"
"""On a call: pairs (result argument, operand argument) that may share memory when the operand is dead after it."""


class Lowering:
    """The state of lowering one module."""

    def __init__(self, module: ModuleOp, target: Target):
        load_lowerings()
        self.target = target
        mains = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        if len(mains) != 1 or mains[0].sym_name.data != "main":
            place = mains[0] if mains else module
            raise QcompError.at(place, "only modules with the one function main are lowered to loops", code="lower")
        self.source = mains[0]
        self.layouts = Layouts(self.source)
        self.kernels: dict[str, FuncOp] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self._constants: dict[tuple[ConstantData, MemRef], SSAValue] = {}
        self._coded: dict[SSAValue, CodedWeight | None] = {}
        self._names: dict[str, int] = {}
        self._converted: dict[tuple[SSAValue, Layout], Buffer] = {}
        self.block = self._entry = Block()
        self.own: set[SSAValue] = set()
        """Buffers that the caller gives to be changed: those of the state."""
        self.states = states_of(self.source)
        self._positions = {op: position for position, op in enumerate(self.source.walk())}
        self.main = Builder(self.block)
        self._outputs: dict[SSAValue, list[SSAValue]] = {}
        self._refusals: list[QcompError] = []
        self._later: list[tuple[Block, Operation | None, Callable[[], None]]] = []
        self.tied = TiedTables(self)

    def run(self) -> list[FuncOp]:
        """The loop-level functions: kernels and main. Raises QcompError; a RefusalError when it refuses several ops."""
        returned = list(cast(ReturnOp, self.source.body.block.last_op).arguments)
        results, kept = returned[: len(returned) - len(self.states)], returned[len(returned) - len(self.states) :]
        for value in self.source.body.block.args:
            self._port(value, self._argument)
        self.own.update(self.block.args[len(self.block.args) - len(self.states) :])
        for value in results:
            self._port(value, self._result)
        for op in self.source.body.block.ops:
            self._operation(op)
        if self._refusals:
            raise self._error()
        self._do_later()
        for value in results:
            self._deliver(value)
        self._keep(kept)
        self.block.add_op(ReturnOp())
        return [*self.kernels.values(), self._main(results)]

    def _port(self, value: SSAValue, act: Callable[[SSAValue], None]) -> None:
        """Do `act` for an argument or result of main; a refusal is kept."""
        try:
            with located(self.source):
                act(value)
        except QcompError as problem:
            self._refusals.append(problem)
            if isinstance(value, BlockArgument):
                self._stand_in(value, self.source.location)

    def _result(self, value: SSAValue) -> None:
        kind = memref_of(storage_element(value), static_shape(value))
        place = self.block.insert_arg(kind, len(self.block.args))
        place.name_hint = "y"
        self._outputs.setdefault(value, []).append(place)

    def _argument(self, value: SSAValue) -> None:
        sizes, element = static_shape(value), storage_element(value)
        place = self.block.insert_arg(memref_of(element, sizes), len(self.block.args))
        place.name_hint = value.name_hint
        self.buffers[value] = Buffer(place, sizes, Layout(False), encoding_of(value.type), element)

    def _operation(self, op: Operation) -> None:
        if isinstance(op, nn.ConstantOp | ReturnOp | nn.YieldOp) or self.half(op.results[0] if op.results else None):
            return
        if any(self.coded(value) is not None for value in op.results):
            return
        try:
            entry = entry_of(type(op))
            if entry is None:
                hint = "run insert-qdq first" if isinstance(op, ObserveOp) else None
                raise QcompError.at(op, "is not lowered to loops", code="lower", hint=hint)
            _check_element(op, entry)
            with self._reals_of(op, entry), located(op):
                self._lower(entry, op)
        except WriteError:
            raise  # The disk is full: no op's fault.
        except QcompError as problem:
            self._refusals.append(problem)
        except Exception:
            if not self._refusals:  # else it may come from a stand-in
                raise
        else:
            return
        for value in op.results:
            self._stand_in(value, op.location)

    @contextmanager
    def _reals_of(self, op: Operation, entry: Entry) -> Generator[None]:
        """Lower `op` with kernels of f64 when its floats are of that type. Raises QcompError for other types."""
        kinds = {str(tensor(value).element_type) for value in (*op.operands, *op.results) if is_plain_float(value)}
        if kinds != {"f64"} or nn.is_control(op):
            if not entry.elements >= HALVES:
                _check_others(op, entry.elements - {"f64"})
            yield
            return
        if any(encoding_of(value.type) is not None for value in (*op.operands, *op.results)):
            raise QcompError.at(op, f"{op.name} of f64 and codes is not lowered to loops", code="lower")
        target, self.target = self.target, replace(GENERIC, name=self.target.name)
        try:
            with doubled():
                yield
        finally:
            self.target = target

    def _stand_in(self, value: SSAValue, where: LocationAttr) -> None:
        """A buffer for a result that was refused, so that later refusals show in the same error."""
        kind: Attribute = value.type
        if not isinstance(kind, TensorType):
            return
        sizes, element = tuple(larger(size, 1) for size in shape(value)), f32
        with suppress(QcompError):
            element = storage_element(value)
        memref = self.allocate(memref_of(element, sizes), where)
        self.buffers.setdefault(value, Buffer(memref, sizes, Layout(False), encoding_of(value.type), element))

    def _error(self) -> QcompError:
        if len(self._refusals) == 1:
            return self._refusals[0]
        refusals = [refusal_of(problem, "lower") for problem in self._refusals]
        error = RefusalError(refusals, f"cannot be compiled for {self.target.name}", "lower")
        error.location = self._refusals[0].location
        return error

    def _lower(self, entry: Entry, op: Operation) -> None:
        shapes = [static_shape(value) for value in (*op.operands, *op.results)]
        if not entry.symbolic and any(is_symbolic(size) for sizes in shapes for size in sizes):
            raise QcompError(
                f"the kernel of {op.name} needs static sizes", code="lower",
                hint=FIX,
            )  # fmt: skip
        if not nn.is_control(op) and 0 in static_shape(op.results[0]):
            self.define(op.results[0], op.location, Layout(False))
        else:
            entry.function(self, op)

    def _deliver(self, value: SSAValue) -> None:
        """Copy a result to those of its places that no kernel wrote."""
        from qcomp.transforms.lower_to_loop.movement import copy

        source = self.operand(value)
        for place in self._outputs.pop(value, []):
            if place is not source.value:
                target = Buffer(place, source.sizes, Layout(False), source.encoding, source.element)
                copy(self, source, target, self.source.location)

    def _keep(self, values: Sequence[SSAValue]) -> None:
        """Leave the new values of the state in its buffers; those that were written over are there already."""
        from qcomp.transforms.lower_to_loop.movement import convert, copy

        sources: list[tuple[Buffer, SSAValue]] = []
        for state, value in zip(self.states, values, strict=True):
            place, source = self.block.args[state.argument], self.operand(value)
            root = root_of(source.value)
            if root is place and source.row_major:
                continue
            if root in self.own:
                # Another state's old value, which that one's new value may be about to replace.
                source = convert(self, source, Layout(False), self.source.location)
            sources.append((source, place))
        for source, place in sources:
            copy(
                self, source, Buffer(place, source.sizes, Layout(False), source.encoding, source.element),
                self.source.location,
            )  # fmt: skip

    def later(self, act: Callable[[], None]) -> None:
        """Do `act` when all ops are lowered; what it adds to the block comes here."""
        self._later.append((self.block, self.block.last_op, act))

    def _do_later(self) -> None:
        outer = self.block
        for block, place, act in self._later:
            self.block = Block()
            act()
            ops = list(self.block.ops)
            for op in ops:
                op.detach()
            if place is not None:
                block.insert_ops_after(ops, place)
            elif block.first_op is not None:
                block.insert_ops_before(ops, block.first_op)
            else:
                block.add_ops(ops)
        self.block = outer

    def to_front(self, constant: SSAValue) -> None:
        """Let a constant buffer be there for all ops."""
        op, first = cast(Operation, constant.owner), self._entry.first_op
        if first is not None and op is not first:
            op.detach()
            self._entry.insert_op_before(op, first)

    def used_up(self, value: SSAValue, op: Operation) -> bool:
        """Whether nothing after `op` reads `value`."""
        return all(self._positions[use.operation] <= self._positions[op] for use in value.uses)

    def region(
        self, source: Block, end: Callable[[], None], block: Block | None = None, head: Sequence[Operation] = ()
    ) -> Block:
        """A block (or `block`) with `head`, what the ops of a region become, and then what `end` adds."""
        outer, converted, buffers = self.block, dict(self._converted), set(self.buffers)
        self.block = block or Block()
        self.block.add_ops(head)
        for op in source.ops:
            self._operation(op)
        end()
        inner, self.block, self._converted = self.block, outer, converted
        for value in [value for value in self.buffers if value not in buffers]:
            del self.buffers[value]
        return inner

    def _main(self, results: Sequence[SSAValue]) -> FuncOp:
        old = self.source
        attributes = list(old.arg_attrs.data) if old.arg_attrs else [DictionaryAttr({})] * len(old.body.block.args)
        named = list(old.res_attrs.data)[: len(results)] if old.res_attrs else [DictionaryAttr({})] * len(results)
        for value, entry in zip(results, named, strict=True):
            extra: dict[str, Attribute] = {"qcomp.output": UnitAttr()}
            attributes.append(DictionaryAttr({**entry.data, **extra, **_signedness(value)}))
        for position, value in enumerate(old.body.block.args):
            entry = attributes[position]
            attributes[position] = DictionaryAttr({**entry.data, **_signedness(value)})
        kinds = FunctionType.from_lists([arg.type for arg in self.block.args], [])
        func = FuncOp("main", kinds, Region(self.block))
        func.arg_attrs = ArrayAttr(attributes)
        declare_symbols(func, declared_symbols(old))
        func.location = old.location
        return func

    # What lowering functions use.

    def operand(self, value: SSAValue) -> Buffer:
        """The buffer of a tensor; constants become row-major constant buffers."""
        if value not in self.buffers and self.half(value) is not None:
            owner = cast(Operation, value.owner)
            entry = entry_of(type(owner))
            assert entry is not None
            entry.function(self, owner)
        if value not in self.buffers:
            array = self.array(value)
            if array is None:
                raise QcompError("operand has no buffer", code="lower")
            element = storage_element(value)
            memref = self.constant(array, element)
            self.buffers[value] = Buffer(memref, array.shape, Layout(False), encoding_of(value.type), element)
        return self.buffers[value]

    def array(self, value: SSAValue) -> Array | None:
        """The array of a constant tensor, codes when it is quantized; None for other values.

        16-bit floats that are cast are float32 here.
        """
        half = self.half(value)
        if half is not None:
            return widen(half.array, half.value.data.element)
        owner = value.owner
        if isinstance(owner, nn.ConstantOp):
            return owner.array
        held = self.coded(value)
        return None if held is None else held.reals()

    def coded(self, value: SSAValue) -> CodedWeight | None:
        """The codes of a value that is dequantized from constants."""
        if value not in self._coded:
            self._coded[value] = coded_weight(value)
        return self._coded[value]

    @staticmethod
    def half(value: SSAValue | None) -> nn.ConstantOp | None:
        """The constant of f16 or bf16 that `value` is in f32; None for other values."""
        if value is None or not isinstance(value.owner, nn.CastOp):
            return None
        cut, source = value.owner, value.owner.input.owner
        wide = tensor(value).element_type == f32 and encoding_of(cut.input.type) is None
        return source if isinstance(source, nn.ConstantOp) and wide and is_narrow(source.value.data.element) else None

    def constant(self, array: Array, element: Attribute) -> SSAValue:
        """A constant buffer with the contents of `array`."""
        if element == f32 and real_type() == f64:
            array, element = array.astype(np.float64), f64
        data = ConstantData(array)
        kind = memref_of(element, array.shape)
        if (data, kind) not in self._constants:
            data = ConstantData(spooled(data.array), data.element, data.digest)
            op = loop.ConstantOp(DataAttr(data), kind)
            if self.block is not self._entry and self._entry.first_op is not None:
                self._entry.insert_op_before(op, self._entry.first_op)
            else:
                self._entry.add_op(op)
            self._constants[data, kind] = op.result
        return self._constants[data, kind]

    def define(self, value: SSAValue, where: LocationAttr, layout: Layout | None = None) -> Buffer:
        """A new buffer for the result `value`: the caller's own place where a row-major result is returned.

        layout: default what its readers want; readers take any.
        """
        sizes, element = static_shape(value), storage_element(value)
        layout = layout or self.layouts.layout(value)
        places = self._outputs.get(value, [])
        if places and not layout.nhwc:
            memref = places.pop(0)
        else:
            memref = self.allocate(memref_of(element, physical_shape(sizes, layout)), where)
            memref.name_hint = value.name_hint
        buffer = Buffer(memref, sizes, layout, encoding_of(value.type), element)
        self.buffers[value] = buffer
        if any(layout.border):
            from qcomp.transforms.lower_to_loop.fill import fill_border

            fill_border(self, buffer, where)
        return buffer

    def is_result(self, value: SSAValue) -> bool:
        """Whether the caller still waits for `value` in a place of its own."""
        return bool(self._outputs.get(value))

    def allocate(self, kind: MemRef, where: LocationAttr) -> SSAValue:
        """A new buffer in the arena."""
        kind = real_buffer(kind)
        sizes = [self.main.size(size) for size in sizes_of(kind) if is_symbolic(size)]
        op = AllocOp.get(kind.element_type, shape=kind.get_shape(), dynamic_sizes=sizes, layout=kind.layout)
        op.location = where
        self.block.add_op(op)
        return op.memref

    def channels_last(self, value: SSAValue, border: Border, where: LocationAttr) -> Buffer:
        """The buffer of an image, channels last with at least `border`; copied when it lies otherwise."""
        buffer = self.operand(value)
        have = buffer.layout.border
        if buffer.layout.nhwc and all(a >= b for a, b in zip(have, border, strict=True)):
            return buffer
        return self._laid(value, self.layouts.channels_last(value), where)

    def row_major(self, value: SSAValue, where: LocationAttr) -> Buffer:
        """The buffer of a tensor, row-major; copied when it lies otherwise."""
        buffer = self.operand(value)
        if not buffer.layout.nhwc:
            return buffer
        if buffer.row_major:
            view = self.view(buffer, memref_of(buffer.element, buffer.sizes))
            return Buffer(view, buffer.sizes, Layout(False), buffer.encoding, buffer.element)
        return self._laid(value, Layout(False), where)

    def like(self, value: SSAValue, other: Buffer, where: LocationAttr) -> Buffer:
        """The buffer of a tensor, its dimensions in the order that those of `other`, of the same rank, have."""
        if other.layout.nhwc:
            return self.channels_last(value, no_border(len(other.sizes)), where)
        return self.row_major(value, where)

    def _laid(self, value: SSAValue, layout: Layout, where: LocationAttr) -> Buffer:
        from qcomp.transforms.lower_to_loop.movement import convert

        key = (value, layout)
        if key not in self._converted:
            self._converted[key] = convert(self, self.operand(value), layout, where)
        return self._converted[key]

    def alias(self, value: SSAValue, buffer: Buffer) -> None:
        """Let the result `value` be the bytes of `buffer` seen in its own shape."""
        sizes = static_shape(value)
        layout = self.layouts.layout(value)
        kind = memref_of(buffer.element, physical_shape(sizes, layout))
        view = self.view(buffer, kind)
        self.buffers[value] = Buffer(view, sizes, layout, encoding_of(value.type), buffer.element)

    def view(self, buffer: Buffer, kind: MemRef) -> SSAValue:
        """`buffer` seen as another buffer type of the same bytes."""
        kind = real_buffer(kind)
        if buffer.value.type == kind:
            return buffer.value
        if kind not in buffer.views:
            op = loop.ViewOp(buffer.value, 0, kind)
            self._beside(op, buffer.value)
            buffer.views[kind] = op.result
        return buffer.views[kind]

    def _beside(self, op: Operation, value: SSAValue) -> None:
        """Add `op` where all that can read `value` can read its result."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if block is self.block or block is None:
            self.block.add_op(op)
        elif isinstance(owner, Operation):
            block.insert_op_after(op, owner)
        elif block.first_op is not None:
            block.insert_op_before(op, block.first_op)
        else:
            block.add_op(op)

    def call(
        self,
        key: object,
        name: str,
        build: Callable[[str], FuncOp],
        arguments: Sequence[SSAValue],
        where: LocationAttr,
        may_alias: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Call the kernel of `key`, building it on first use. Keys are told apart by their text: 0.0 is not -0.0."""
        text = f"{real_type()} {key!r}"
        if text not in self.kernels:
            count = self._names[name] = self._names.get(name, -1) + 1
            self.kernels[text] = build(f"{name}_{count}")
        op = CallOp(self.kernels[text].sym_name.data, arguments, [])
        op.location = where
        if may_alias:
            flat = [position for pair in may_alias for position in pair]
            op.attributes[MAY_ALIAS] = DenseArrayBase.from_list(i64, flat)
        self.block.add_op(op)


def root_of(buffer: SSAValue) -> SSAValue:
    """The buffer whose bytes a view shows."""
    while isinstance(buffer.owner, loop.ViewOp | loop.PartOp):
        buffer = buffer.owner.source
    return buffer


def is_plain_float(value: SSAValue) -> bool:
    """Whether `value` is a tensor of floats, not of codes."""
    kind: Attribute = value.type
    return isinstance(kind, TensorType) and encoding_of(value.type) is None and is_float(tensor(value).element_type)


def _check_element(op: Operation, entry: Entry) -> None:
    """Raise QcompError for an element type that no kernel of `op` computes on."""
    element = computed_element(op)
    if element is not None and str(element) not in entry.elements:
        raise _not_lowered(op, element)


def _check_others(op: Operation, elements: Elements) -> None:
    """Raise QcompError for operands or results that lie in memory as patterns the lowering would take for integers."""
    for value in (*op.operands, *op.results):
        if not lies_as_itself(value) and str(tensor(value).element_type) not in elements:
            raise _not_lowered(op, tensor(value).element_type)


def _not_lowered(op: Operation, element: Attribute) -> QcompError:
    hint = "run widen-halves first" if str(element) in HALVES else "cast to f32"
    return QcompError.at(op, f"{op.name} of {element} is not lowered to loops", code="lower", hint=hint)


def _signedness(value: SSAValue) -> dict[str, Attribute]:
    """Marks bytes that are unsigned numbers or truth values for the caller."""
    from qcomp.dialects.element import numpy_dtype

    encoding = encoding_of(value.type)
    dtype = encoding.dtype if encoding is not None else numpy_dtype(tensor(value).element_type)
    marks = {"uint8": "qcomp.unsigned", "uint16": "qcomp.unsigned", "bool": "qcomp.bool", "float16": "qcomp.half"}
    found: dict[str, Attribute] = {marks[dtype.name]: UnitAttr()} if dtype.name in marks else {}
    if encoding is None and isinstance(tensor(value).element_type, BFloat16Type):
        found["qcomp.bfloat16"] = UnitAttr()
    return found
