# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a command prints: text, one JSON object, or nothing."""

from __future__ import annotations

import json
import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any, cast

from qcomp.cli.terminal import clear_progress
from qcomp.errors import QcompError

FORMAT_VERSION = 1
"""Of the JSON of all commands. Keys may be added within a version; none goes or changes its meaning."""


def add_output(parser: ArgumentParser) -> None:
    """Add the options of all commands that say what is printed."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")
    group.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def show(args: Namespace, text: object, data: Mapping[str, Any]) -> None:
    """Print `text`, or with --json `data`, or with --quiet nothing."""
    if args.json:
        print_json(args.command, data)
    else:
        show_text(args, text)


def show_text(args: Namespace, text: object) -> None:
    """Print `text`, but not with --quiet."""
    if not args.quiet:
        clear_progress()
        print(text)


def print_json(command: str | None, data: Mapping[str, Any]) -> None:
    """Print one object; numbers that JSON lacks become the strings "nan", "inf" and "-inf".

    command: None where it is not known, and for `qcomp check`, whose JSON is older than that key.
    """
    found: dict[str, Any] = {"format_version": FORMAT_VERSION}
    if command is not None:
        found["command"] = command
    found.update(data)
    clear_progress()
    print(json.dumps(_plain(found), indent=1, allow_nan=False))


def error_data(error: Exception, message: str) -> dict[str, Any]:
    """Return an error as data. message: the one line that is printed without --json."""
    found = error if isinstance(error, QcompError) else None
    return {
        "error": {
            "code": "internal" if found is None else found.code,
            "message": message if found is None else found.message,
            "op": None if found is None else found.op,
            "location": None if found is None else found.location,
            "hint": None if found is None else found.hint,
        }
    }


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {str(name): _plain(item) for name, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    return value
