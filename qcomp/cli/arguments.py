# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The argument parser of both tools, and what shells complete."""

from __future__ import annotations

import importlib
import os
import textwrap
from argparse import Action, ArgumentParser, HelpFormatter, Namespace
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, cast

from qcomp.errors import QcompError
from qcomp.suggestions import close_names, did_you_mean


class WholeNames(HelpFormatter):
    """Help text that is not broken inside names such as ``fold-constants``."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class OneLineParser(ArgumentParser):
    """An argument parser whose errors are QcompErrors: one message, no usage text around it, and names that exist."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"formatter_class": WholeNames, **options})

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> Any:
        found, rest = self.parse_known_args(None if args is None else list(args), namespace)
        if rest:
            self._unrecognized(found, rest)
        return found

    def error(self, message: str) -> NoReturn:
        raise QcompError(message, code="usage", hint=f"{self.prog} --help lists the options")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in cast("Iterable[object]", action.choices)]
        name = "/".join(action.option_strings) or action.metavar or action.dest
        raise QcompError(
            f"argument {name}: invalid choice: {value!r}", code="usage", hint=did_you_mean(str(value), choices)
        )

    def _unrecognized(self, found: Namespace, rest: list[str]) -> NoReturn:
        parser = cast(OneLineParser, getattr(found, "parser", self))
        options = [name for action in parser._actions for name in action.option_strings]
        name = next((text for text in rest if text.startswith("-")), rest[0]).partition("=")[0]
        otherwise = f"{parser.prog} --help lists the options"
        # Dashes are alike anyway: the names behind them must be.
        named = {option.lstrip("-"): option for option in options}
        close = [named[text] for text in close_names(name.lstrip("-"), named)] if name.startswith("-") else []
        hint = f"did you mean {' or '.join(close)}?" if close else otherwise
        raise QcompError(f"unrecognized arguments: {' '.join(rest)}", code="usage", hint=hint)


def offer_completion(parser: ArgumentParser) -> None:
    """Complete in a shell where the extra `cli` is installed; the variable is set by the shell that asks."""
    if "_ARGCOMPLETE" in os.environ:
        importlib.import_module("argcomplete").autocomplete(parser)


def completed_by(action: Action, values: Callable[[], Iterable[str]]) -> None:
    """Let shells complete the value of `action` by names, which are made when a shell asks."""

    def completer(prefix: str, **_: object) -> list[str]:
        return [value for value in values() if value.startswith(prefix)]

    action.completer = completer  # pyright: ignore[reportAttributeAccessIssue]


def completed_by_list(action: Action, values: Callable[[], Iterable[str]]) -> None:
    """Let shells complete the last name of a list with commas."""

    def completer(prefix: str, **_: object) -> list[str]:
        before, comma, last = prefix.rpartition(",")
        return [before + comma + value for value in values() if value.startswith(last)]

    action.completer = completer  # pyright: ignore[reportAttributeAccessIssue]


def completed_by_files(action: Action, *suffixes: str) -> None:
    """Let shells complete the value of `action` by folders and files with one of `suffixes`."""

    def completer(prefix: str, **options: Any) -> list[str]:
        from argcomplete.completers import FilesCompleter

        return list(FilesCompleter(suffixes)(prefix=prefix, **options))

    action.completer = completer  # pyright: ignore[reportAttributeAccessIssue]
