# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `qcomp-opt`; spellings are mlir-opt's where it has them, else xdsl-opt's."""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentParser

from qcomp.cli.arguments import completed_by, completed_by_list
from qcomp.cli.failures import WEIGHTS_HELP, WEIGHTS_OPTION
from qcomp.transforms.pipeline import PIPELINES


def add_arguments(parser: ArgumentParser, passes: list[str], targets: list[str]) -> None:
    """Add every option to `parser`; `passes` and `targets` are the names that the help text lists."""
    _add_work(parser, passes, targets)
    _add_printing(parser)
    _add_checking(parser)


def _add_work(parser: ArgumentParser, passes: list[str], targets: list[str]) -> None:
    pipeline = parser.add_argument(
        "-p", "--passes", default="", metavar="PIPELINE", help=f"passes to run: 'a,b{{option=3}}'; {', '.join(passes)}"
    )
    completed_by_list(pipeline, lambda: [*passes, *PIPELINES])
    target = parser.add_argument(
        "-t", "--target", default="mlir", metavar="TARGET", help=f"what to print: {', '.join(targets)}"
    )
    completed_by(target, lambda: targets)
    parser.add_argument(
        "-o",
        "--output-file",
        metavar="FILE",
        help="write to FILE, and with target mlir the large constants to a .safetensors file beside it",
    )
    parser.add_argument(
        "--split-input-file", action="store_true", help="the input is several modules, apart by lines '// -----'"
    )


def _add_printing(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("printing")
    group.add_argument(
        "--print-op-generic", "--mlir-print-op-generic", action="store_true", help="print ops in generic form"
    )
    group.add_argument("--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations")
    group.add_argument(
        "--print-no-properties", action="store_true", help="print properties as attributes, for old readers"
    )
    group.add_argument(
        "--expand-types", action="store_true", help="print every scale of a quantized type, as MLIR does"
    )
    group.add_argument(
        "--inline-constants",
        action="store_true",
        help="print large constants in the text, in hexadecimal digits, so that it can be piped",
    )
    group.add_argument("--syntax-highlight", action="store_true", help="colour the output")
    _add_dumps(group)


def _add_dumps(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    group.add_argument(
        "--print-ir-before-all",
        "--mlir-print-ir-before-all",
        action="store_true",
        help="print the IR before each pass to stderr",
    )
    group.add_argument(
        "--print-ir-after-all",
        "--mlir-print-ir-after-all",
        action="store_true",
        help="print the IR after each pass to stderr",
    )
    for when in ("before", "after"):
        group.add_argument(
            f"--print-ir-{when}",
            f"--mlir-print-ir-{when}",
            action="append",
            default=[],
            metavar="PASS",
            help=f"print the IR {when} PASS to stderr; may be repeated",
        )
    group.add_argument("--mlir-timing", action="store_true", help="print the time of each pass to stderr")
    group.add_argument("--explain", action="store_true", help="print why rewrites were refused, as remarks on stderr")


def _add_checking(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("checking")
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="hold errors and remarks against the comments '// expected-error@+1 {{text}}' of the input",
    )
    group.add_argument(
        "--verify-rewrites",
        action="store_true",
        default=os.environ.get("QCOMP_VERIFY_REWRITES", "0") not in ("", "0"),
        help="run the program before and after each pass and hold the pass to its letter (QCOMP_VERIFY_REWRITES=1)",
    )
    group.add_argument("--disable-verify", action="store_true", help="do not verify the module after each pass")
    group.add_argument(
        "--allow-unregistered-dialect", action="store_true", help="accept ops and types of unknown dialects"
    )
    group.add_argument("--no-implicit-module", action="store_true", help="the text must be one explicit builtin.module")
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        metavar="FILE",
        help="when a pass fails, write the module before it and the rest of the pipeline to FILE",
    )
    group.add_argument(WEIGHTS_OPTION, action="store_true", help=WEIGHTS_HELP)
    group.add_argument(
        "--run-reproducer", action="store_true", help="run the pipeline in the first line of a reproducer"
    )
    group.add_argument(
        "--debug", action="store_true", help="show the traceback of an error (also: environment QCOMP_DEBUG=1)"
    )
