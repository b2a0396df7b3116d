# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the guards of an export: conditions on sizes under which the exported program is what the model computes.

torch writes them as Python, ``(L['x'].size()[1] % 2) == 0``, and evaluates that text. Here a parser that knows a fixed
list of functions reads it, as it does sizes. What stands before ``.size()`` says where the tensor was in the call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from qcomp.dialects.guard import Guard, both, compare, either, opposite
from qcomp.errors import QcompError
from qcomp.frontend.graph import Input, Meta, Ref, TensorMeta
from qcomp.frontend.pytree import Tree
from qcomp.frontend.symbol_text import MAX_DEPTH, Parser, make
from qcomp.frontend.symbols import Dim, Expr, Number

MAX_GUARD_TEXT, MAX_GUARDS = 1 << 16, 4096
"""Longest accepted guard, and most of a program."""
MAX_NOTE = 160
"""Characters of a guard that messages show."""
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<string>'[^'\\]*'|\"[^\"\\]*\")|(?P<mark>\*\*|//|[<>=!]=|[-+*/%(),=<>.\[\]]))"
)
_RELATIONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_PYTHON = {
    "max": "max", "min": "min", "abs": "abs", "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc",
    "torch.sym_float": "float",
}  # fmt: skip
_SIGNS = {name: sign for sign, name in _RELATIONS.items()}

Path = tuple[str | int, ...]
Sources = Mapping[Path, Sequence[Dim]]
"""The shapes of the inputs by where guards find them: ``("args", 0)`` is ``L['args'][0]``."""


def read_guards(texts: Iterable[tuple[str, str]], sources: Sources) -> tuple[Guard, ...]:
    """The guards written in `texts`, each with the Python line that it comes from or "".

    Raises QcompError for a guard that cannot be read: a program without it would be wrong for some sizes.
    """
    found: list[Guard] = []
    for text, place in texts:
        if len(found) > MAX_GUARDS:
            raise QcompError(f"the export has more than {MAX_GUARDS} guards", code="malformed-pt2")
        shown = re.sub(r"L\['(\w+)'\]", r"\1", text)
        shown = shown if len(shown) <= MAX_NOTE else f"{shown[:MAX_NOTE]}..."
        try:
            parsed = GuardParser(text, sources).parse()
            parts = _conjunction(parsed)
        except QcompError as error:
            raise QcompError(
                f"the guard {shown} of the export cannot be read: {error.message}", code="unsupported-guard",
                hint="export with fixed sizes",
            ) from None  # fmt: skip
        note = f"{shown} at {place}" if place else shown
        found += [Guard(part.size, part.relation, note) for part in parts if part.known() is not True]
    return tuple(found)


def input_sources(
    inputs: Sequence[Input], values: Mapping[str, Meta], in_tree: Tree | None, names: Sequence[str]
) -> dict[Path, Sequence[Dim]]:
    """The shapes of `inputs` by where guards find them; `names`: what forward calls its arguments."""
    found: dict[Path, Sequence[Dim]] = {}
    paths = list(in_tree.paths()) if in_tree is not None else [(0, index) for index in range(len(inputs))]
    for index, (entry, path) in enumerate(zip(inputs, paths, strict=False)):
        meta = values.get(entry.value.name) if isinstance(entry.value, Ref) else None
        if not isinstance(meta, TensorMeta) or len(path) < 2:
            continue
        group, key, *rest = path
        found["flat_args", index] = meta.shape
        if group == 1:
            found[key, *rest] = meta.shape
            continue
        name = names[key] if isinstance(key, int) and key < len(names) else str(key)
        found[name, *rest] = meta.shape
        # Those of *args have a number behind their name: L['args'][0] is called args_0.
        base, mark, number = name.rpartition("_")
        if mark and number.isdigit():
            found.setdefault((base, int(number), *rest), meta.shape)
    return found


class GuardParser(Parser):
    """Comparisons joined by and, or, not of sizes of inputs and symbols."""

    token_pattern = _TOKEN

    def __init__(self, text: str, sources: Sources):
        if len(text) > MAX_GUARD_TEXT:
            raise QcompError(f"a guard of {len(text)} characters is too long", code="malformed-pt2")
        self.sources = sources
        super().__init__(text)

    def parse(self) -> Expr | Number:
        result = self.nested()
        if self.kind:
            raise self.fail()
        return result

    def nested(self) -> Expr | Number:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail()
        result = self.joined("or", lambda: self.joined("and", self.negated))
        self.depth -= 1
        return result

    def joined(self, word: str, part: Callable[[], Expr | Number]) -> Expr | Number:
        parts = [part()]
        while self.kind == "name" and self.token == word:
            self.advance()
            parts.append(part())
        return parts[0] if len(parts) == 1 else make(word, *parts)

    def negated(self) -> Expr | Number:
        if self.kind == "name" and self.token == "not":
            self.advance()
            return make("not", self.negated())
        left = self.binary(0)
        if self.kind == "mark" and self.token in _RELATIONS:
            relation = _RELATIONS[self.token]
            self.advance()
            return make(relation, left, self.binary(0))
        return left

    def atom(self) -> Expr | Number:
        if self.kind == "name" and self.token == "L":
            self.advance()
            return self.source()
        return super().atom() if self.kind != "name" else self.function()

    def function(self) -> Expr | Number:
        """A symbol, a function of Python's, or one of sympy's."""
        name = self.token
        if name in ("math", "torch"):
            self.advance()
            self.expect(".")
            name = f"{name}.{self.token}"
        if name not in _PYTHON:
            return super().atom()
        self.advance()
        arguments = self.arguments()
        if not arguments:
            raise self.fail()
        return make(_PYTHON[name], *arguments)

    def source(self) -> Expr | Number:
        """``L['x'][0].size()[1]``, a stride or the offset: inputs are contiguous."""
        path: list[str | int] = []
        while True:
            if self.token == "[":
                self.advance()
                path.append(self.token[1:-1] if self.kind == "string" else self.whole())
                self.advance()
                self.expect("]")
                continue
            self.expect(".")
            word = self.token
            self.advance()
            if self.token == "(":
                return self.property(path, word)
            path.append(word)

    def property(self, path: list[str | int], word: str) -> Expr | Number:
        self.expect("(")
        self.expect(")")
        shape = self.sources.get(tuple(path))
        if shape is None:
            raise QcompError(f"{'.'.join(map(str, path))} is no input", code="malformed-pt2")
        if word == "storage_offset":
            return 0
        self.expect("[")
        axis = self.whole()
        self.advance()
        self.expect("]")
        if word not in ("size", "stride") or axis >= len(shape):
            raise self.fail()
        return shape[axis] if word == "size" else reduce(lambda a, b: make("mul", a, b), shape[axis + 1 :], 1)

    def whole(self) -> int:
        if not self.token.isdigit() or len(self.token) > 9:
            raise self.fail()
        return int(self.token)


def _conjunction(value: Expr | Number | str) -> list[Guard]:
    """The guards all of which must hold for `value` to be true."""
    if isinstance(value, Expr) and value.op == "and":
        return [guard for part in value.args for guard in _conjunction(part)]
    return [_guard(value)]


def _guard(value: Expr | Number | str) -> Guard:
    if isinstance(value, bool):
        return Guard(0 if value else -1)
    if not isinstance(value, Expr):
        raise QcompError(f"{value} is neither true nor false", code="malformed-pt2")
    if value.op in ("and", "or"):
        return reduce(both if value.op == "and" else either, map(_guard, value.args))
    if value.op == "not":
        return opposite(_guard(value.args[0]))
    if value.op not in _SIGNS:
        raise QcompError(f"{value} is neither true nor false", code="malformed-pt2")
    left, right = (arg.dim() if isinstance(arg, Expr) else _whole(arg) for arg in value.args)
    return compare(left, _SIGNS[value.op], right)


def _whole(value: Number | str) -> int:
    if isinstance(value, str) or value != int(value):
        raise QcompError(f"a size is compared with {value}", code="dynamic-shape")
    return int(value)
