# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The textual parser: xDSL's, with a source position on every op and on every error.

xDSL's parser leaves ops without a location, and a verifier error inside a type has no position. Here an op written
without ``loc(...)`` gets the file, line and column where it stands, as in MLIR, so that a later pass can point at it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Attribute, AttributeInvT, Operation, SSAValue, TypeAttribute
from xdsl.parser import UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Position, Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

from qcomp.dialects.literals import LiteralParser
from qcomp.dialects.verification import check_sizes
from qcomp.errors import QcompError
from qcomp.limits import MAX_ALIASED
from qcomp.suggestions import close_names, did_you_mean

_FAULTS = (VerifyException, QcompError, ValueError, ArithmeticError, NotImplementedError)
"""What parsing raises, without a position, about bad text: xDSL's own code raises more than ParseError."""


class _Lexer(MLIRLexer):
    """Reads strings.

    xDSL's pattern for them backtracks: an unterminated one takes time exponential in its length. And it takes an
    escaped string that is not ASCII for bytes, though its printer escapes so.
    """

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        token = super()._lex_string_literal(start_pos)
        if token.kind is MLIRTokenKind.BYTES_LIT:
            with suppress(UnicodeDecodeError):
                StringLiteral(start_pos, self.pos, self.input).bytes_contents.decode()
                return Token(MLIRTokenKind.STRING_LIT, token.span)
        return token


class _Aliases(dict[str, Attribute]):
    """Counts what the uses of aliases stand for, and refuses more than `MAX_ALIASED`."""

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[int, int] = {}
        self._total = 0

    def __setitem__(self, name: str, value: Attribute) -> None:
        super().__setitem__(name, value)
        self._size(value)

    def __getitem__(self, name: str) -> Attribute:
        value = super().__getitem__(name)
        self._total += self._size(value)
        if self._total > MAX_ALIASED:
            raise VerifyException(f"aliases stand for more than {MAX_ALIASED} attributes")
        return value

    def _size(self, value: Attribute) -> int:
        """The attributes that printing `value` would print. Those of aliases live as long as the parser."""
        known = self._sizes.get(id(value))
        if known is None:
            parts = getattr(value, "parameters", None) or getattr(value, "data", None)
            items = cast(Iterable[object], parts.values() if isinstance(parts, Mapping) else parts)
            nested = isinstance(parts, Mapping | tuple | list)
            known = 1 + sum(self._size(item) for item in items if isinstance(item, Attribute)) if nested else 1
            self._sizes[id(value)] = known
        return known


class SourceParser(LiteralParser):
    """Parses the text of one module.

    `line_offset` counts the lines before `text` in its file. Raises ParseError, with a span, for everything that is
    wrong with the text, also where xDSL or qcomp raise an exception without a position.
    """

    def __init__(self, ctx: Context, text: str | bytes, name: str = "<unknown>", line_offset: int = 0):
        decoded = text.decode() if isinstance(text, bytes) else text
        super().__init__(ctx, "", name)
        # Blank lines in front keep every span right, whoever asks it for its line.
        self._parser_state = ParserState(_Lexer(Input("\n" * line_offset + decoded, name)))
        self.attribute_aliases = _Aliases()
        content = self.lexer.input.content
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", content))]
        self._file = StringAttr(name)
        self._op_start = 0
        self._forward: dict[str, Span[str]] = {}

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        try:
            module = super().parse_module(allow_implicit_module)
        except RecursionError:
            self.raise_error("nested too deeply", self.pos)
        except ParseError:
            for name in self.forward_ssa_references:
                if name in self._forward:
                    self.raise_error(f"value %{name} is used but not defined", self._forward[name])
            raise
        if self._forward:
            self._refuse_use_before_definition(module)
        check_sizes(module)
        return module

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self._forward.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> Operation:
        start = self._op_start = self.pos
        with self._positioned(start):
            op = super().parse_operation()
        if isinstance(op.location, UnknownLoc) and not self._just_read("loc(unknown)", start):
            line = bisect_right(self._line_starts, start)
            column = start - self._line_starts[line - 1] + 1
            op.location = FileLineColLoc(self._file, IntAttr(line), IntAttr(column))
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        # xDSL looks the name up after reading past it.
        op_type = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if op_type is None:
            hint = did_you_mean(name, self._op_names(name), "")
            suffix = f" (hint: {hint})" if hint else ""
            self.raise_error(f"Operation {name} is not registered{suffix}", self._op_start)
        return op_type

    def _op_names(self, name: str) -> list[str]:
        """Return the names of ops in the dialects that are loaded, and in one whose name is close to that in `name`."""
        dialect, dot, rest = name.partition(".")
        if dot and dialect not in self.ctx.registered_dialect_names:
            for other in close_names(dialect, self.ctx.registered_dialect_names):
                with suppress(QcompError):  # a plug-in that cannot be loaded
                    self.ctx.get_optional_op(f"{other}.{rest}")
        return [op.name for op in self.ctx.loaded_ops]

    def _just_read(self, text: str, start: int) -> bool:
        """Whether what was parsed since `start` ends with `text`."""
        content = self.lexer.input.content[max(start, self.pos - len(text) - 40) : self.pos]
        return content.rstrip().endswith(text)

    def parse_optional_type(self) -> TypeAttribute | None:
        with self._positioned(self.pos):
            return super().parse_optional_type()

    def parse_optional_attribute(self) -> Attribute | None:
        with self._positioned(self.pos):
            return super().parse_optional_attribute()

    @contextmanager
    def _positioned(self, start: int):
        """An error without a position is about the innermost thing being parsed, which begins at `start`."""
        try:
            yield
        except _FAULTS as error:
            self.raise_error(str(error), start, self.pos)
        except MemoryError:
            self.raise_error("needs more memory than there is", start, self.pos)

    def _refuse_use_before_definition(self, module: ModuleOp) -> None:
        """xDSL's verifier does not know dominance; within a block the order of the text decides."""
        position = {op: at for at, op in enumerate(module.walk())}
        for op in module.walk():
            for value in op.operands:
                owner = value.owner
                if isinstance(owner, Operation) and owner.parent is op.parent and position[owner] >= position[op]:
                    name = value.name_hint
                    raise QcompError.at(
                        op, f"value {f'%{name} ' if name else ''}is used before it is defined", code="parse"
                    )
