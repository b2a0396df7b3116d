# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error messages that a package of dialects can give, read from its source."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

_RAISERS = ("VerifyException", "raise_error", "require", "_require")


@dataclass(frozen=True)
class Message:
    """A message and where it is given; `pattern` matches all texts it can have."""

    place: str
    text: str
    pattern: re.Pattern[str]


def messages(root: Path) -> list[Message]:
    """The messages of all errors that the Python files below `root` raise about a text or an op."""
    found: list[Message] = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in _RAISERS:
                for argument in node.args:
                    if (parts := _parts(argument)) is not None:
                        place = f"{path.relative_to(root.parent)}:{argument.lineno}"
                        found.append(Message(place, "{}".join(parts), re.compile(".*".join(map(re.escape, parts)))))
    return found


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _parts(node: ast.expr) -> list[str] | None:
    """The fixed parts of a text with holes; None when `node` is no text."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [""]
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            parts[-1] += str(piece.value)
        else:
            parts.append("")
    return parts if any(parts) else None
