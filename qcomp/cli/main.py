# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp`: a command for each thing a person wants of a model, in the file of its name in qcomp/cli/commands."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Protocol, cast

from qcomp import __version__
from qcomp.cli.arguments import OneLineParser, offer_completion
from qcomp.cli.failures import (
    FAULT,
    USAGE,
    WEIGHTS_HELP,
    WEIGHTS_OPTION,
    announce,
    exit_code,
    write_reproducer,
)
from qcomp.cli.output import add_output, error_data, print_json
from qcomp.cli.signals import ends_on_signals
from qcomp.cli.terminal import clear_progress, progress_line

COMMANDS = ("compile", "run", "check", "compare", "bench", "report", "passes", "targets")


class Command(Protocol):
    """What a command's module offers: its docstring's first line is the help text."""

    __doc__: str | None

    def add_arguments(self, parser: ArgumentParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


def make_parser() -> OneLineParser:
    """The parser of the whole command line."""
    parser = OneLineParser(prog="qcomp", description="Quantizing compiler from torch.export and PT2E to C.")
    parser.add_argument("-v", "--version", action="version", version=f"qcomp {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", dest="_command", required=True, parser_class=OneLineParser)
    for name in COMMANDS:
        command = cast(Command, importlib.import_module(f"qcomp.cli.commands.{name}"))
        text = (command.__doc__ or "").split("\n", 1)[0].removeprefix(f"`qcomp {name}`: ").rstrip(".")
        sub = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:] + ".", allow_abbrev=False)
        sub.add_argument("--debug", action="store_true", help="show the traceback of an error (also: QCOMP_DEBUG=1)")
        sub.add_argument(WEIGHTS_OPTION, action="store_true", help=WEIGHTS_HELP)
        command.add_arguments(sub)
        add_output(sub)
        sub.set_defaults(run=command.run, command=name, parser=sub)
    offer_completion(parser)
    return parser


@ends_on_signals
def main(args: Sequence[str] | None = None) -> int:
    """Run `qcomp` with `args` (default: the command line). Returns the exit code: 0, or one of `failures`."""
    arguments = sys.argv[1:] if args is None else list(args)
    debug = "--debug" in arguments or os.environ.get("QCOMP_DEBUG", "0") not in ("", "0")
    parsed: Namespace | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            parsed = options = cast(Namespace, make_parser().parse_args(arguments))
            with progress_line(options.quiet):
                return options.run(options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as exit_:
        return USAGE if exit_.code else 0
    except Exception as error:
        return _report(error, arguments, parsed, debug)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    clear_progress()
    sys.stderr.write(f"warning: {message}\n")


def _report(error: Exception, arguments: Sequence[str], parsed: Namespace | None, debug: bool) -> int:
    """Print `error`, with --json as the object that the command prints. Returns the exit code."""
    from qcomp.cli.diagnostics import from_exception

    if debug:
        raise error
    message = str(from_exception(error))
    if "--json" in arguments:
        command = next((name for name in arguments if name in COMMANDS), None)
        print_json(command, error_data(error, message))
    else:
        sys.stderr.write(f"{message}\n")
    code = exit_code(error)
    if code == FAULT:
        program = getattr(parsed, "program", None)
        weights = bool(getattr(parsed, "reproducer_weights", False))
        announce(write_reproducer(error, ["qcomp", *arguments], program, weights=weights))
    return code


if __name__ == "__main__":
    sys.exit(main())
