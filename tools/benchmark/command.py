# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the benchmarks."""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace

from qcomp.errors import QcompError
from tools.benchmark import importing, kernels, layers, models, peers, symbolic, weights

_BENCHMARKS = {
    "kernels": kernels, "layers": layers, "models": models, "import": importing, "symbolic": symbolic,
    "weights": weights, "peers": peers,
}  # fmt: skip


def main() -> int:
    """Run the benchmark named on the command line."""
    parser = ArgumentParser(prog="tools/bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="BENCHMARK")
    for name, module in _BENCHMARKS.items():
        text = (module.__doc__ or "").split("\n", 1)[0]
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("--cc", default="", help="C compilers, separated by commas (default: gcc and clang if there)")
        sub.add_argument("--flags", default="-O3", help="flags of the C compiler (default: -O3)")
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    args = parser.parse_args()
    args.cc = _compilers(args)
    try:
        return args.run(args)
    except QcompError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _compilers(args: Namespace) -> list[str]:
    if args.cc:
        return str(args.cc).split(",")
    return [name for name in ("gcc", "clang", "clang-19") if shutil.which(name)]
