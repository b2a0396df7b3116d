# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time of every kernel call of a model, as part of an inference."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from qcomp.backend.compile import emit
from tools.benchmark.profile import profile


def add_arguments(parser: ArgumentParser) -> None:
    """The model."""
    parser.add_argument("program", help=".pt2 or .mlir file")
    parser.add_argument("--target", default="native")
    parser.add_argument("--size", type=int, default=1, help="of each symbol, within its range (default: 1)")
    parser.add_argument("--seconds", type=float, default=0.4, help="time for the model (default: 0.4)")


def run(args: Namespace) -> int:
    """Print a line for each call, in order, and the sum of them."""
    emitted = emit(args.program, args.target)
    sizes = emitted.manifest.interface.usual_sizes(args.size)
    for compiler in args.cc:
        found = profile(emitted.program, compiler, args.flags, args.seconds, in_turn=True, sizes=sizes)
        total = sum(seconds for _, seconds in found.steps)
        print(f"{compiler} {args.flags}, {emitted.manifest.target}")
        for name, seconds in found.steps:
            print(f"  {name:28} {seconds * 1e3:9.4f} ms  {100 * seconds / total:5.1f}%")
        print(f"  {'sum of the least times':28} {total * 1e3:9.4f} ms")
    return 0
