# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of one C function from one loop-level function.

Every tile becomes named C variables, one per unit (`Isa.units`): named variables stay in registers where arrays are
spilled. Index arithmetic is folded into one linear expression per access.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from qcomp.backend.emit_c.isa import Isa, c_type, is_tile, number_literal, scalar_constant
from qcomp.backend.emit_c.sizes import SizeNames, atom_text, linear, linear_text, merge, row_major, size_text, times
from qcomp.dialects import loop
from qcomp.dialects.dim import is_symbolic
from qcomp.dialects.dims import sizes_of
from qcomp.errors import QcompError

Count = int | str | None
"""How many elements are valid: a number, a C expression, or all."""
_DEFINITION = re.compile(r" *(?:const )?\w[\w ]*? \**(?:const )?([vp]\d+(?:_\w+)?) = ")
_NAME = re.compile(r"\b[vp]\d+(?:_\w+)?\b")


class FunctionEmitter:
    """Emits the statements of a function.

    names: the C expressions of its buffer arguments; symbols: of its symbols; callees: the symbols of each function.
    size_names: local variables for sizes, which else are spelled out.
    """

    def __init__(
        self, isa: Isa, names: dict[SSAValue, str], indent: int = 1, symbols: Mapping[str, str] | None = None,
        callees: Mapping[str, Sequence[str]] | None = None, size_names: SizeNames | None = None,
    ):  # fmt: skip
        self.isa = isa
        self.symbols = dict(symbols or {})
        self._size_names = size_names
        self.callees = callees or {}
        self.lines: list[str] = []
        self.buffers = dict(names)
        self.values: dict[SSAValue, list[str]] = {}
        self._carried: set[SSAValue] = set()
        self._deferred: dict[SSAValue, list[str]] = {}
        self._indent = indent
        self._counter = itertools.count()

    def emit(self, func: FuncOp) -> list[str]:
        """The lines of the body of `func`."""
        self._block(func.body.block)
        return without_unused(self.lines)

    def _size(self, size: int) -> str:
        return size_text(size, self.symbols) if self._size_names is None else self._size_names.text(size)

    def line(self, text: str) -> None:
        """Add a line at the current indentation."""
        self.lines.append("  " * self._indent + text)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._operation(op)

    def _operation(self, op: Operation) -> None:
        match op:
            case loop.ForOp():
                self._for(op)
            case loop.IfOp():
                self._if(op)
            case loop.WhileOp():
                self._while(op)
            case loop.PartOp():
                self._part(op)
            case loop.LoadOp():
                self._load(op)
            case loop.StoreOp():
                self._store(op)
            case loop.ViewOp():
                self._view(op)
            case loop.ContractOp():
                self._contract(op)
            case loop.BroadcastOp():
                self._broadcast(op)
            case loop.ReduceOp():
                self._reduce(op)
            case loop.FillOp():
                self._fill(op)
            case loop.LookupOp():
                self._lookup(op)
            case loop.MultiplyAddOp():
                self._multiply_add(op)
            case ConstantOp():
                self._constant(op)
            case ApplyOp():
                self._apply(op)
            case ReturnOp() | loop.YieldOp():
                pass
            case CallOp():
                self._call(op)
            case loop.SizeOp():
                self._define(op.result, [self._size(op.size)])
            case _:
                self._elementwise(op)

    def _part(self, op: loop.PartOp) -> None:
        stride = self._size(math.prod(sizes_of(op.result.type)))
        self.buffers[op.result] = f"({self.buffers[op.source]} + {self._scalar(op.index)} * {stride})"

    def _multiply_add(self, op: loop.MultiplyAddOp) -> None:
        operands = (self.values[value] for value in (op.acc, op.lhs, op.rhs))
        self._define(op.result, [self.isa.multiply_add(op, *units) for units in zip(*operands, strict=True)])

    def _lookup(self, op: loop.LookupOp) -> None:
        table = self.buffers[op.table]
        self._define(op.result, [self.isa.lookup(op, table, unit) for unit in self.values[op.input]])

    def _apply(self, op: ApplyOp) -> None:
        operands = [self._scalar(value) for value in op.mapOperands]
        self._define(op.result, [linear_text(*linear(op.map.data.results[0], operands, op.map.data.num_dims))])

    def _call(self, op: CallOp) -> None:
        callee = op.callee.root_reference.data
        sizes = [atom_text(name, self.symbols) for name in self.callees.get(callee, ())]
        self.line(f"{callee}({', '.join([*sizes, *(self.buffers[value] for value in op.arguments)])});")

    def _elementwise(self, op: Operation) -> None:
        if len(op.results) != 1 or len(op.operands) not in (1, 2, 3):
            raise QcompError.at(op, "is not emitted as C", code="emit")
        units = zip(*(self.values[value] for value in op.operands), strict=True)
        self._define(op.results[0], [self.isa.elementwise(op, each) for each in units])

    def _fill(self, op: loop.FillOp) -> None:
        units = self.values[op.input]
        if self.isa.unit_shape(op.input):
            kept = self._count(op.kept)
            self._define(op.result, [self.isa.fill(op, unit, kept) for unit in units])
            return
        last = loop.tile_shape(op.result.type)[-1]
        number = number_literal(op.number, str(loop.tile_element(op.result.type)) == "f64")
        self.values[op.result] = [self._picked(op.kept, place % last, unit, number) for place, unit in enumerate(units)]

    def _picked(self, count: int, place: int, unit: str, number: str) -> str:
        """`unit` if `place` is below `count`, else `number`."""
        if is_symbolic(count):
            return f"({place} < {self._size(count)} ? {unit} : {number})"
        return unit if place < count else number

    def _reduce(self, op: loop.ReduceOp) -> None:
        units = self.values[op.input]
        if self.isa.unit_shape(op.input):
            self._define(op.result, [self.isa.reduce(op, units[0])])
            return
        while len(units) > 1:
            half = len(units) // 2
            pairs = list(zip(units[:half], units[half:], strict=True))
            units = self._variables(op.result, [self.isa.combine(op, *pair) for pair in pairs])
        self.values[op.result] = units

    def _define(self, value: SSAValue, expressions: Sequence[str], mutable: bool = False) -> list[str]:
        self.values[value] = self._variables(value, expressions, mutable)
        return self.values[value]

    def _variables(self, value: SSAValue, expressions: Sequence[str], mutable: bool = False) -> list[str]:
        """New variables of the type of a unit of `value`."""
        name = f"v{next(self._counter)}"
        kind = self.isa.unit_type(value)
        units = [name] if len(expressions) == 1 else [f"{name}_{unit}" for unit in range(len(expressions))]
        for unit, text in zip(units, expressions, strict=True):
            self.line(f"{'' if mutable else 'const '}{kind} {unit} = {text};")
        return units

    def _constant(self, op: ConstantOp) -> None:
        if is_tile(op.result):
            count = self.isa.units(op.result)
            (unit,) = self._define(op.result, [self.isa.constant(op, op.result)])
            self.values[op.result] = [unit] * count
        else:
            self.values[op.result] = [scalar_constant(op)]

    def _scalar(self, value: SSAValue) -> str:
        (unit,) = self.values[value]
        return unit

    def _if(self, op: loop.IfOp) -> None:
        self.line(f"if ({self._scalar(op.flag)} != 0) {{")
        self._inside(op.then.block)
        self.line("} else {")
        self._inside(op.orelse.block)
        self.line("}")

    def _while(self, op: loop.WhileOp) -> None:
        self.line("for (;;) {")
        self._inside(op.test.block)
        self.line(f"  if ({self._scalar(op.flag)} == 0) break;")
        self._inside(op.body.block)
        self.line("}")

    def _inside(self, block: Block) -> None:
        self._indent += 1
        self._block(block)
        self._indent -= 1

    def _for(self, op: loop.ForOp) -> None:
        bounds, step = op.constant_bounds(), op.step.value.data
        carried = [self._carry(value, init) for value, init in zip(op.body.block.args[1:], op.inits, strict=True)]
        once = bounds is not None and bounds[0] < bounds[1] <= bounds[0] + step
        if once and bounds is not None:
            self.values[op.induction] = [str(bounds[0])]
            self.line("{")
        else:
            index = f"i{next(self._counter)}"
            self.values[op.induction] = [index]
            low = self._bound(op.lower.data, op.lower_operands, ">")
            high = self._bound(op.upper.data, op.upper_operands, "<")
            advance = f"++{index}" if step == 1 else f"{index} += {step}"
            if op.kind is not None and op.kind.data == "unroll":
                self.line("UNROLL")
            self.line(f"for (ptrdiff_t {index} = {low}; {index} < {high}; {advance}) {{")
        self._indent += 1
        self._block(op.body.block)
        self._assign(carried, [self.values[value] for value in op.terminator.values])
        self._indent -= 1
        self.line("}")
        for value, units in zip(op.outputs, carried, strict=True):
            self.values[value] = units

    def _carry(self, argument: SSAValue, init: SSAValue) -> list[str]:
        """Variables for a carried value; an outer loop's own, when nothing else reads the value it starts from."""
        if init in self._carried and len(list(init.uses)) == 1:
            self.values[argument] = self.values[init]
        else:
            self._define(argument, self.values[init], mutable=True)
        self._carried.add(argument)
        return self.values[argument]

    def _assign(self, carried: Sequence[list[str]], yielded: Sequence[list[str]]) -> None:
        targets = [unit for units in carried for unit in units]
        sources = [unit for units in yielded for unit in units]
        crossing = {source for target, source in zip(targets, sources, strict=True) if source != target} & set(targets)
        if crossing:
            raise QcompError("a loop that exchanges carried values is not emitted as C", code="emit")
        for target, source in zip(targets, sources, strict=True):
            if target != source:
                self.line(f"{target} = {source};")

    def _bound(self, bound: AffineMap, operands: Sequence[SSAValue], pick: str) -> str:
        names = [self._scalar(value) for value in operands]
        texts = [linear_text(*linear(expr, names)) for expr in bound.results]
        text = texts[0]
        for other in texts[1:]:
            text = f"({text} {pick} {other} ? {text} : {other})"
        return text

    def _address(
        self, op: loop.LoadOp | loop.StoreOp, value: SSAValue
    ) -> tuple[list[str], tuple[int | str, ...], Count]:
        """One address per unit, the strides inside a unit, and the valid count."""
        kind, indices, operands, over, steps, valid = op.access
        strides = row_major(sizes_of(kind))
        names = [self._scalar(operand) for operand in operands]
        terms, constant = dict[str, int](), 0
        for expr, stride in zip(indices.results, strides, strict=True):
            more, offset = linear(expr, names)
            if is_symbolic(stride):
                merge(terms, times(more, offset, stride, self.symbols))
                continue
            constant += stride * offset
            merge(terms, {name: stride * factor for name, factor in more.items()})
        base = linear_text(terms, 0)
        buffer = self.buffers[op.memref]
        if base != "0":
            pointer = f"p{next(self._counter)}"
            const = "" if isinstance(op, loop.StoreOp) else "const "
            self.line(f"{const}{c_type(kind.element_type)} *const {pointer} = {buffer} + {base};")
        else:
            pointer = buffer
        moves = [step * strides[dim] for dim, step in zip(over, steps, strict=True)]
        held = len(self.isa.unit_shape(value)) if over else 0
        shape = loop.tile_shape(value.type)
        grid = [range(size) for size in shape[: len(shape) - held]]
        offsets = [
            sum((move * place for place, move in zip(places, moves, strict=False)), constant)
            for places in itertools.product(*grid)
        ]
        addresses = [pointer if offset == 0 else f"{pointer} + {self._size(offset)}" for offset in offsets]
        inner = [self._size(move) if is_symbolic(move) else move for move in moves[len(moves) - held :]]
        return addresses, tuple(inner) if held else (), self._count(valid)

    def _count(self, valid: int | None) -> Count:
        """A valid count as a number, or when it depends on symbols as C text."""
        return self._size(valid) if valid is not None and is_symbolic(valid) else valid

    def _load(self, op: loop.LoadOp) -> None:
        addresses, strides, valid = self._address(op, op.result)
        units = [self.isa.load(op.result, address, strides, valid) for address in addresses]
        there = self._exist(op, op.result)
        zero = number_literal(0.0 if str(loop.tile_element(op.result.type)) == "f32" else 0)
        if isinstance(valid, str) and not self.isa.unit_shape(op.result):
            last = loop.tile_shape(op.result.type)[-1]
            units = [f"{place % last} < {valid} ? {unit} : {zero}" for place, unit in enumerate(units)]
        if not all(there):
            found = iter(self._variables(op.result, list(itertools.compress(units, there))))
            self.values[op.result] = [next(found) if exists else zero for exists in there]
            return
        uses = list(op.result.uses)
        if len(units) > 1 and len(uses) == 1 and isinstance(uses[0].operation, loop.ContractOp) and uses[0].index == 1:
            # Read row by row where it is used: all rows at once would not fit the registers.
            self._deferred[op.result] = units
        else:
            self._define(op.result, units)

    def _store(self, op: loop.StoreOp) -> None:
        addresses, strides, valid = self._address(op, op.value)
        guarded = isinstance(valid, str) and not self.isa.unit_shape(op.value)
        last = (loop.tile_shape(op.value.type) or (1,))[-1]
        units = zip(self.values[op.value], addresses, self._exist(op, op.value), strict=True)
        for place, (unit, address, exists) in enumerate(units):
            if exists:
                guard = f"if ({place % last} < {valid}) " if guarded else ""
                self.line(guard + self.isa.store(op.value, unit, address, strides, valid))

    def _exist(self, op: loop.LoadOp | loop.StoreOp, value: SSAValue) -> list[bool]:
        """For each unit of the tile whether `valid` leaves anything of it; the isa cuts units of many elements."""
        valid, count = op.access[-1], self.isa.units(value)
        if valid is None or is_symbolic(valid) or self.isa.unit_shape(value):
            return [True] * count
        last = loop.tile_shape(value.type)[-1]
        return [unit % last < valid for unit in range(count)]

    def _view(self, op: loop.ViewOp) -> None:
        kind = op.result.type
        source = cast(MemRefType[Attribute], op.source.type)
        offset = op.bytes_before // loop.element_bytes(source.element_type)
        text = self.buffers[op.source] + ("" if offset == 0 else f" + {self._size(offset)}")
        if kind.element_type != source.element_type:
            text = f"({c_type(kind.element_type)} *)(void *)({text})"
        self.buffers[op.result] = text

    def _contract(self, op: loop.ContractOp) -> None:
        acc, rhs = self.values[op.acc], self.values[op.rhs]
        deferred = self._deferred.get(op.lhs)
        lhs = deferred or self.values[op.lhs]
        group = 1 if self.isa.unit_shape(op.lhs) else loop.tile_shape(op.lhs.type)[-1]
        columns = len(rhs) // group
        kind, name = f"const {self.isa.unit_type(op.result)} ", f"v{next(self._counter)}"
        units = [name] if len(acc) == 1 else [f"{name}_{unit}" for unit in range(len(acc))]
        if op.acc in self._carried and len(list(op.acc.uses)) == 1:
            # In place: compilers keep versions of one variable in one register.
            kind, units = "", acc
            self._carried.add(op.result)
        for unit, text in enumerate(acc):
            row, column = divmod(unit, columns)
            left = lhs[row * group : (row + 1) * group]
            if deferred and group == 1:
                if column == 0:
                    self.line(f"const {self.isa.unit_type(op.lhs)} {name}_row{row} = {left[0]};")
                left = [f"{name}_row{row}"]
            for place in range(group):
                text = self.isa.contract(op, text, left[place], rhs[column * group + place])
            self.line(f"{kind}{units[unit]} = {text};")
        self.values[op.result] = units

    def _broadcast(self, op: loop.BroadcastOp) -> None:
        source = self.values[op.input]
        count = self.isa.units(op.result)
        if not is_tile(op.input):
            (unit,) = self._define(op.result, [self.isa.broadcast(op, source[0])])
            self.values[op.result] = [unit] * count
        else:
            self.values[op.result] = source * (count // len(source))


def without_unused(lines: Sequence[str]) -> list[str]:
    """The lines without variables that nothing after them names: lanes that do not exist leave some behind."""
    used: set[str] = set()
    kept: list[str] = []
    for line in reversed(lines):
        definition = _DEFINITION.match(line)
        if definition is None or definition[1] in used:
            used.update(_NAME.findall(line))
            kept.append(line)
    return kept[::-1]
