# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp check`: list everything in an exported program that is not supported."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """The program."""
    parser.add_argument("program", help="the .pt2 file")


def run(args: Namespace) -> int:
    """Print one line per kind of op that cannot be imported, with source lines; the exit code says if there is any."""
    from qcomp.frontend import check
    from qcomp.frontend.refusals import refusal_error

    refusals = check(args.program)
    if refusals:
        print(refusal_error(refusals).message)
        return 1
    print(f"{args.program}: every op is supported")
    return 0
