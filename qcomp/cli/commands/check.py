# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp check`: list everything in a program that is not supported, without compiling it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from qcomp.cli.output import print_json, show_text
from qcomp.errors import QcompError

if TYPE_CHECKING:
    from qcomp.backend.check import Check
    from qcomp.refusals import RefusedKind

_SHOWN_PLACES = 6


def add_arguments(parser: ArgumentParser) -> None:
    """The program, the target, and how the answer is printed."""
    from qcomp.cli.commands.compile import add_dim, add_program, add_target

    add_program(parser)
    add_target(parser)
    add_dim(parser)
    parser.add_argument("--opt-level", type=int, choices=range(4), default=3, help="as for `qcomp compile`")
    parser.add_argument("--verbose", action="store_true", help="also say which ops stay in float, and every place")


def run(args: Namespace) -> int:
    """Print what is not supported; 0 when everything is, else 1."""
    from qcomp.backend.check import check_program, error_json
    from qcomp.backend.target import find_target
    from qcomp.cli.programs import checked_program
    from qcomp.transforms.specialize_dims import parse_dims

    target = find_target(args.target).name
    try:
        dims = parse_dims(tuple(args.dim))
        found = check_program(checked_program(args.program), args.target, opt_level=args.opt_level, dims=dims)
    except QcompError as error:
        if not args.json:
            raise
        print_json(None, error_json(args.program, target, error))
        return 1
    if args.json:
        print_json(None, found.to_json(args.program))
    else:
        show_text(args, "\n".join(_lines(args.program, found, args.verbose)))
    return 0 if found.supported else 1


def _lines(program: str, found: Check, verbose: bool) -> list[str]:
    from qcomp.refusals import refused_kinds

    lines = [f"{program}: everything is supported on {found.target} ({found.ops} ops)"]
    if not found.supported:
        kinds = refused_kinds(found.refusals)
        count = f"{_count(len(found.refusals), 'op')} of {_count(len(kinds), 'kind')}"
        lines = [f"{program}: error: {count} not supported on {found.target}", *_table(kinds, verbose)]
    if verbose:
        lines += [f"  in float: {entry.op} x{entry.count}: {entry.reason}" for entry in found.in_float]
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _table(kinds: list[RefusedKind], verbose: bool) -> list[str]:
    """A line for each kind, below it why, where and what to do."""
    from qcomp.refusals import place_text

    width = max(2, *(len(kind.op) for kind in kinds))
    lines = [f"  {'op':{width}}  count  stage"]
    for kind in kinds:
        places = [place_text(place) for place in kind.places]
        if not verbose and len(places) > _SHOWN_PLACES:
            places = [*places[:_SHOWN_PLACES], f"and {len(places) - _SHOWN_PLACES} more places"]
        lines += [f"  {kind.op:{width}}  {kind.count:5}  {kind.stage}", f"      {kind.reason}"]
        lines += [f"      at {', '.join(places)}"] if places else []
        lines += [f"      hint: {kind.hint}"] if kind.hint else []
    return lines
