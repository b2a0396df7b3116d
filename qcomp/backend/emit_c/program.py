# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop-level module as a C program: NAME.c with the kernels and NAME_run, NAME.h, and the constants by symbol."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, f64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, SSAValue

from qcomp.backend.abi import abi_macro, abi_text
from qcomp.backend.emit_c import prelude
from qcomp.backend.emit_c.avx512 import Avx512
from qcomp.backend.emit_c.function import FunctionEmitter
from qcomp.backend.emit_c.isa import Isa, c_type
from qcomp.backend.emit_c.names import c_identifier, comment, distinct
from qcomp.backend.emit_c.size_check import SizeCheck
from qcomp.backend.emit_c.sizes import SizeNames, size_text
from qcomp.backend.target import ARENA_ALIGNMENT, Target
from qcomp.dialects import loop
from qcomp.dialects.binding import Symbol
from qcomp.dialects.constant import Array, DataAttr
from qcomp.dialects.dim import Dim, symbols_of
from qcomp.dialects.dim_json import to_plain
from qcomp.dialects.dims import declared_guards, declared_symbols, sizes_of
from qcomp.dialects.location import describe
from qcomp.dialects.state import STATE, marked
from qcomp.errors import QcompError
from qcomp.transforms.lower_to_loop.buffers import SLACK
from qcomp.transforms.plan_memory import aligned

_ISAS = {"c": Isa, "avx512": Avx512}


@dataclass(frozen=True)
class Argument:
    """An input, output, state or the arena of the emitted function.

    offset: where a state lies in the block; patterns: what the header says of floats whose 16 bits int16_t holds.
    """

    name: str
    role: str
    type: MemRefType[Attribute]
    title: str
    offset: int = 0
    patterns: str = ""


@dataclass
class CProgram:
    """The emitted texts and constants of one model."""

    name: str
    source: str
    header: str
    arguments: Sequence[Argument]
    arena_bytes: int
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    state_bytes: int = 0


def emit_program(
    module: ModuleOp, target: Target, name: str, interface: Mapping[str, object] | None = None
) -> CProgram:
    """C for a loop-level `module` after plan-memory. `name` prefixes every public symbol.

    interface: as manifest.json will have it; the header then says what that file has to agree with.
    """
    return _Emitter(module, target, c_identifier(name, "net"), interface).emit()


class _Emitter:
    def __init__(self, module: ModuleOp, target: Target, name: str, interface: Mapping[str, object] | None):
        self.interface = interface
        self.target = target
        self.name = name
        self.functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        self.main = next((func for func in self.functions if func.sym_name.data == "main"), None)
        self.constants: dict[str, Array] = {}
        self.ranges: list[Symbol] = []
        self.symbols: dict[str, str] = {}
        self.check: SizeCheck = SizeCheck(name, (), {}, ())
        self._symbols: dict[tuple[str, str], str] = {}

    def emit(self) -> CProgram:
        if self.main is None:
            raise QcompError("the module has no function main", code="emit")
        taken = {func.sym_name.data for func in self.functions}
        self.ranges = declared_symbols(self.main)
        self.symbols = {item.name: distinct(c_identifier(item.name, "size"), taken) for item in self.ranges}
        arguments = self._arguments(self.main)
        arena = next((arg for arg in arguments if arg.role == "arena"), None)
        arena_bytes = loop.memref_bytes(arena.type) if arena else 0
        run = self._run(self.main, arguments)
        states = [arg for arg in arguments if arg.role == "state"]
        state_bytes = states[-1].offset + aligned(loop.memref_bytes(states[-1].type)) + SLACK if states else 0
        init = self._init(self.main, states)
        kernels = [self._kernel(func) for func in self.functions if func is not self.main]
        body = "\n".join("\n".join(lines) + "\n" for lines in [*kernels, run, *init])
        body += self._arena_function(arena_bytes)
        self.check = SizeCheck(self.name, self.ranges, self.symbols, declared_guards(self.main))
        body += self.check.definition()
        source = self._source(body)
        header = self._header(arguments, arena_bytes, state_bytes)
        return CProgram(self.name, source, header, arguments, arena_bytes, self.constants, state_bytes)

    def _taken(self) -> set[str]:
        """Names of functions and symbols."""
        return {func.sym_name.data for func in self.functions} | set(self.symbols.values())

    def _arguments(self, main: FuncOp) -> list[Argument]:
        taken = self._taken()
        found: list[Argument] = []
        offset = 0
        for position, value in enumerate(main.body.block.args):
            attributes = _argument_attributes(main, position)
            marks = {"qcomp.arena": "arena", "qcomp.output": "output", STATE: "state"}
            role = next((role for mark, role in marks.items() if mark in attributes), "input")
            title = attributes.get("nn.name")
            title = title.data if isinstance(title, StringAttr) else (value.name_hint or "")
            name = c_identifier(title, role)
            if name.startswith(f"{self.name}_"):  # as NAME_run and the constants do
                name = f"{role}_{name}"
            kind = cast(MemRefType[Attribute], value.type)
            if role == "state":
                # Not a parameter: states are seen through the block.
                seen = f"({c_type(kind.element_type)} *)(void *)((char *)state + {offset})"
                found.append(Argument(seen, role, kind, title, offset, _patterns(attributes)))
                offset += aligned(loop.memref_bytes(kind))
                continue
            name = "arena" if role == "arena" else distinct(name, taken)
            found.append(Argument(name, role, kind, title, 0, _patterns(attributes)))
        return found

    def _init(self, main: FuncOp, states: Sequence[Argument]) -> list[list[str]]:
        """NAME_init: the values before the first call."""
        if not states:
            return []
        lines: list[str] = []
        positions = marked(main.arg_attrs, STATE)
        for argument, position in zip(states, positions, strict=True):
            initial = _argument_attributes(main, position)[STATE]
            assert isinstance(initial, DataAttr)
            count, place = initial.array.nbytes, f"(char *)state + {argument.offset}"
            if not count:
                continue
            if not any(initial.array.tobytes()):
                lines.append(f"  memset({place}, 0, {count});")
            else:
                lines.append(f"  memcpy({place}, {self._constant(initial, argument.type)}, {count});")
        return [[f"void {self.name}_init(void *state) {{", *(lines or ["  (void)state;"]), "}"]]

    def _kernel(self, func: FuncOp) -> list[str]:
        written = {op.memref for op in func.walk() if isinstance(op, loop.StoreOp)}
        names: dict[SSAValue, str] = {}
        taken: set[str] = set()
        symbols: dict[str, str] = {
            item.name: distinct(c_identifier(item.name, "size"), taken) for item in declared_symbols(func)
        }
        parameters = [f"ptrdiff_t {name}" for name in symbols.values()]
        for position, value in enumerate(func.body.block.args):
            names[value] = distinct(c_identifier(value.name_hint or "", f"arg{position}"), taken)
            kind = cast(MemRefType[Attribute], value.type)
            const = "" if value in written else "const "
            parameters.append(f"{const}{c_type(kind.element_type)} *{names[value]}")
        # No register of lanes holds f64.
        double = any(cast(MemRefType[Attribute], value.type).element_type == f64 for value in func.body.block.args)
        emitter = FunctionEmitter(Isa() if double else _ISAS[self.target.isa](), names, symbols=symbols)
        body = emitter.emit(func)
        vector = "VECTOR " if self.target.attribute else ""
        origin = comment(describe(func.location) or "")
        head = [f"/* {func.sym_name.data}{': ' + origin if origin else ''} */"]
        words = _words(body)
        unused = [f"  (void){name};" for name in (*symbols.values(), *names.values()) if name not in words]
        return [*head, *_wrap(f"{vector}static void {func.sym_name.data}(", parameters, ") {"), *unused, *body, "}"]

    def _run(self, main: FuncOp, arguments: Sequence[Argument]) -> list[str]:
        callees = {func.sym_name.data: [item.name for item in declared_symbols(func)] for func in self.functions}
        sizes = SizeNames(self.symbols, self._taken() | {argument.name for argument in arguments})
        emitter = FunctionEmitter(
            _ISAS[self.target.isa](), {}, symbols=self.symbols, callees=callees, size_names=sizes
        )  # fmt: skip
        for value, argument in zip(main.body.block.args, arguments, strict=True):
            cast_text = "(int8_t *)" if argument.role == "arena" else ""
            emitter.buffers[value] = cast_text + argument.name
        for op in main.walk():
            if isinstance(op, loop.ConstantOp) and op.result.first_use is not None:
                emitter.buffers[op.result] = self._constant(op.value, op.result.type)
        lines: list[str] = []
        for op in main.body.block.ops:
            if isinstance(op, loop.ConstantOp) or (isinstance(op, loop.SizeOp) and op.result.first_use is None):
                continue
            if isinstance(op, CallOp) and (origin := describe(op.location)):
                emitter.line(f"/* {comment(origin)} */")
            emitter._operation(op)  # pyright: ignore[reportPrivateUsage]
        lines += _wrap(f"void {self.name}_run(", self._parameters(arguments), ") {")
        statements = [*sizes.lines, *emitter.lines]
        words = _words(statements)
        named = [argument.name for argument in arguments if argument.role != "state"]
        if any(argument.role == "state" for argument in arguments):
            named.append("state")
        names = [name for name in (*self.symbols.values(), *named) if name not in words]
        if not any(argument.role == "arena" for argument in arguments):
            names.append("arena")
        return [*lines, *(f"  (void){name};" for name in dict.fromkeys(names)), *statements, "}"]

    def _parameters(self, arguments: Sequence[Argument]) -> list[str]:
        texts = [f"int64_t {name}" for name in self.symbols.values()]
        for argument in arguments:
            if argument.role in ("arena", "state"):
                continue
            const = "const " if argument.role == "input" else ""
            texts.append(f"{const}{c_type(argument.type.element_type)} *{argument.name}")
        state = ["void *state"] if any(argument.role == "state" for argument in arguments) else []
        return [*texts, *state, "void *arena"]

    def _constant(self, value: DataAttr, kind: MemRefType[Attribute]) -> str:
        """The symbol of a constant."""
        key = (value.data.digest, str(kind))
        if key not in self._symbols:
            self._symbols[key] = f"{self.name}_w{len(self._symbols)}"
            self.constants[self._symbols[key]] = value.array.view(_signless(value.array))
        return self._symbols[key]

    def _source(self, body: str) -> str:
        helpers = prelude.helpers([body])
        includes = [f'"{self.name}.h"']
        isa = _ISAS[self.target.isa]()
        includes += [f"<{name}>" for name in isa.includes]
        if prelude.needs_memcpy(helpers + body):
            includes.append("<string.h>")
        externs = "\n".join(
            f"extern const {numpy_c_type(array)} {symbol}[{max(array.size, 1)}];"
            for symbol, array in self.constants.items()
        )
        vector = ""
        if self.target.attribute:
            vector = f'#define VECTOR __attribute__((target("{self.target.attribute}")))\n'
        parts = [
            f"/* {self.name} for {self.target.name}. SPDX-License-Identifier: 0BSD. Made by qcomp. */",
            "\n".join(f"#include {name}" for name in includes),
            prelude.HEAD + vector,
            externs,
            helpers,
            body,
        ]
        return "\n".join(part for part in parts if part)

    def _header(self, arguments: Sequence[Argument], arena_bytes: int, state_bytes: int) -> str:
        upper = self.name.upper()
        where = f"outputs, {'the state and ' if state_bytes else ''}an arena of {self._arena_name(upper)} bytes"
        notes = "\n".join(
            [f" *   {self.symbols[item.name]}: size, {_range(item)}" for item in self.ranges]
            + [
                f" *   {arg.name}: {arg.role}, {c_type(arg.type.element_type)}[{self._sizes(arg)}]{arg.patterns}"
                for arg in arguments
                if arg.role not in ("arena", "state")
            ]
        )
        prototype = "\n".join(_wrap(f"void {self.name}_run(", self._parameters(arguments), ");"))
        return f"""\
/* {self.name} for {self.target.name}. SPDX-License-Identifier: 0BSD. Made by qcomp. */
#ifndef {upper}_H
#define {upper}_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

{self._arena(upper, arena_bytes)}
#define {upper}_ARENA_ALIGNMENT {ARENA_ALIGNMENT}
{self.check.declaration()}{_state_text(self.name, arguments, state_bytes)}{self._abi(arena_bytes, state_bytes)}
/* One inference, re-entrant: all it changes is given by the caller:
   {where}.
{notes}
 */
{prototype}

#ifdef __cplusplus
}}
#endif
#endif
"""

    def _abi(self, arena_bytes: int, state_bytes: int) -> str:
        """The text that ties manifest.json to the library; a program that includes the header is no larger for it."""
        if self.interface is None:
            return ""
        text = abi_text(to_plain(arena_bytes), state_bytes, self.interface)
        note = "/* Of the arena, the state and the interface; Python compares it with manifest.json. */"
        facts = " \\\n".join(f'  "{fact}"' for fact in re.split("(?<= )", text))
        return f"\n{note}\n#define {abi_macro(self.name)} \\\n{facts}\n"

    def _sizes(self, argument: Argument) -> str:
        sizes = sizes_of(argument.type)
        texts = [size_text(size, self.symbols) for size in sizes]
        sums = [isinstance(size, Dim) and len(size.terms) > 1 for size in sizes]  # which are in parentheses
        return ", ".join(text[1:-1] if is_sum else text for text, is_sum in zip(texts, sums, strict=True))

    def _arena_name(self, upper: str) -> str:
        return f"{self.name}_arena_size({', '.join(self.symbols.values())})" if self.symbols else f"{upper}_ARENA_SIZE"

    def _arena(self, upper: str, arena_bytes: int) -> str:
        """The size of the arena: a number, or a function of the sizes."""
        if not self.symbols:
            return f"#define {upper}_ARENA_SIZE {max(arena_bytes, 1)}"
        sizes = ", ".join(f"int64_t {name}" for name in self.symbols.values())
        return f"int64_t {self.name}_arena_size({sizes});"

    def _arena_function(self, arena_bytes: int) -> str:
        if not self.symbols:
            return ""
        sizes = ", ".join(f"int64_t {name}" for name in self.symbols.values())
        used = set(symbols_of([arena_bytes]))
        unused = [f"  (void){text};" for name, text in self.symbols.items() if name not in used]
        names = SizeNames(self.symbols, self._taken())
        text = names.text(arena_bytes)
        lines = [*unused, *names.lines, f"  return {text};", "}", ""]
        return "\n".join([f"int64_t {self.name}_arena_size({sizes}) {{", *lines])


def _words(lines: Sequence[str]) -> set[str]:
    """What C text names."""
    return set(re.findall(r"\w+", "\n".join(lines)))


def _range(symbol: Symbol) -> str:
    return f"{symbol.low} or more" if symbol.high is None else f"{symbol.low} to {symbol.high}"


def _state_text(name: str, arguments: Sequence[Argument], state_bytes: int) -> str:
    """What the header says of the state."""
    if not state_bytes:
        return ""
    upper = name.upper()
    notes = "\n".join(
        f" *   {comment(arg.title)}: {c_type(arg.type.element_type)}{list(arg.type.get_shape())}{arg.patterns} "
        f"at {arg.offset}"
        for arg in arguments
        if arg.role == "state"
    )
    return f"""
/* What lives on between inferences: {upper}_STATE_SIZE bytes, aligned as the arena, that the caller gives and
   {name}_init fills in before the first one. A sequence has a block of its own.
{notes}
 */
#define {upper}_STATE_SIZE {state_bytes}
void {name}_init(void *state);
"""


def _patterns(attributes: Mapping[str, Attribute]) -> str:
    """What the header says of the elements beside their C type."""
    marks = {"qcomp.half": " (float16)", "qcomp.bfloat16": " (bfloat16)"}
    return next((text for mark, text in marks.items() if mark in attributes), "")


def _argument_attributes(main: FuncOp, position: int) -> dict[str, Attribute]:
    if main.arg_attrs is None:
        return {}
    entry = main.arg_attrs.data[position]
    return dict(entry.data)


def _signless(array: Array) -> str:
    half = array.dtype.itemsize == 2
    return f"int{array.dtype.itemsize * 8}" if array.dtype.kind in "iub" or half else array.dtype.name


def numpy_c_type(array: Array) -> str:
    """The C type of the elements of a constant."""
    return {
        "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "float32": "float",
        "float64": "double",
    }[array.dtype.name]  # fmt: skip


def _wrap(head: str, parameters: Sequence[str], tail: str) -> list[str]:
    one = head + ", ".join(parameters) + tail
    if len(one) <= 100:
        return [one]
    return [head, *(f"    {text}{',' if text is not parameters[-1] else tail}" for text in parameters)]
