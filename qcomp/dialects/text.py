# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules as text: ``name.mlir`` with large constants in ``name.safetensors`` beside it."""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from qcomp.dialects import sidecar
from qcomp.dialects.constant import ConstantStore
from qcomp.dialects.context import QcompContext, context
from qcomp.dialects.hex_literal import LargeConstants, large_constants_as
from qcomp.dialects.parser import SourceParser
from qcomp.dialects.verification import first_invalid
from qcomp.errors import QcompError
from qcomp.limits import MAX_TEXT_BYTES
from qcomp.reading import read_bytes
from qcomp.writing import replacing, writing

FORMAT_VERSION = 1
_LIMIT = "MAX_TEXT_BYTES", MAX_TEXT_BYTES
VERSION_ATTRIBUTE = "qcomp.format"


def parse(source: str | os.PathLike[str]) -> ModuleOp:
    """The verified module in the file `source`, or in `source` itself when it is IR text (has a newline or a brace).

    Raises QcompError with file, line and column for text that does not parse or verify, and for a module saved by a
    newer format version.
    """
    if isinstance(source, str) and any(mark in source for mark in "\n{"):
        return parse_text(source, context())
    path = Path(source)
    try:
        text = read_bytes(path, _LIMIT).decode()
    except (OSError, UnicodeDecodeError) as problem:
        raise QcompError(f"cannot read {path}: {problem}", code="file") from None
    ctx = context()
    ctx.constants = store_beside(path)
    return parse_text(text, ctx, str(path))


def store_beside(path: Path) -> ConstantStore:
    """The constants in the sidecar file of the module file `path`; empty when there is none."""
    beside = path.with_suffix(".safetensors")
    return ConstantStore(str(beside), sidecar.read(beside) if beside.exists() else {})


def parse_text(text: str, ctx: QcompContext, name: str = "<text>") -> ModuleOp:
    """The verified module of IR text."""
    module = None
    try:
        module = SourceParser(ctx, text, name).parse_module()
        module.verify()
    except ParseError as problem:
        message = " ".join(problem.msg.split())
        raise QcompError(message, code="parse", location=str(problem.span.get_location())) from None
    except RecursionError:
        raise QcompError("nested too deeply", code="parse", location=name) from None
    except (VerifyException, ValueError) as problem:
        message = " ".join(str(problem).split())
        op = first_invalid(module) if module is not None else None
        raise (
            QcompError.at(op, message, code="verify") if op else QcompError(message, code="verify", location=name)
        ) from None
    check_version(module, name)
    return module


def check_version(module: ModuleOp, name: str) -> None:
    """Raise QcompError when `module` was saved in a newer format than this qcomp knows."""
    version = module.attributes.get(VERSION_ATTRIBUTE)
    if isinstance(version, IntegerAttr) and version.value.data > FORMAT_VERSION:
        raise QcompError(
            f"{name} has format version {version.value.data}, this qcomp reads up to {FORMAT_VERSION}",
            code="format-version",
            hint="use a newer qcomp",
        )


def print_text(
    module: ModuleOp, *, locations: bool = True, generic: bool = False, constants: LargeConstants = "digest"
) -> str:  # fmt: skip
    """The text of `module`, large `constants` in that form. Raises QcompError when it nests too deeply."""
    stream = StringIO()
    try:
        with large_constants_as(constants):
            Printer(stream=stream, print_debuginfo=locations, print_generic_format=generic).print_op(module)
    except RecursionError:
        raise QcompError("the module nests too deeply to be printed", code="print") from None
    except ValueError as problem:  # Python prints no integer of more than 4300 digits.
        raise QcompError(f"the module cannot be printed: {problem}", code="print") from None
    return stream.getvalue() + "\n"


def save(module: ModuleOp, path: str | os.PathLike[str], *, inline_constants: bool = False) -> None:
    """Write `module` to `path` (``name.mlir``) and its large constants to ``name.safetensors``.

    inline_constants: write large constants into the text, as hexadecimal digits, which takes twice their bytes.
    """
    from xdsl.dialects.builtin import i64

    target = Path(path)
    module.attributes[VERSION_ATTRIBUTE] = IntegerAttr(FORMAT_VERSION, i64)
    text = print_text(module, constants="bytes" if inline_constants else "digest")
    constants = {} if inline_constants else sidecar.large_constants(module)
    beside = target.with_suffix(".safetensors")
    if constants:
        sidecar.write(beside, constants)
    else:
        with writing(beside):
            beside.unlink(missing_ok=True)
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")
