# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp compare`: hold a compiled model against the quantized program it was made of, layer by layer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """The program, what was made of it, and the inputs."""
    from qcomp.cli.commands.compile import add_options

    parser.add_argument("program", help=".pt2 or .mlir file")
    parser.add_argument("artifact", nargs="?", help="folder that `qcomp compile` made of it; else it is compiled now")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument("--inputs", metavar="FILE.npz", help="the inputs of one sample, by name or in order")
    inputs.add_argument("--random", metavar="SEED", type=int, default=0, help="random inputs from this seed (0)")
    parser.add_argument("--rows", type=int, default=20, help="print this many layers, the worst; 20 by default")
    parser.add_argument("--evaluator", choices=("numpy", "torch"), default="numpy", help="what runs the program")
    add_options(parser)


def run(args: Namespace) -> int:
    """Print the worst layers and the end-to-end difference."""
    import qcomp
    from qcomp.backend.compare import Comparison
    from qcomp.cli.arrays import random_inputs, read_inputs
    from qcomp.cli.commands.compile import compile_program

    artifact = qcomp.load(args.artifact) if args.artifact else compile_program(args)
    ports = artifact.interface.inputs
    sample = read_inputs(args.inputs, ports) if args.inputs else random_inputs(ports, args.random)
    found = qcomp.compare(args.program, artifact, tuple(sample), args.evaluator)
    print(Comparison(found.layers[: args.rows], found.outputs))
    if len(found) > args.rows:
        print(f"{len(found) - args.rows} more layers are not worse")
    return 0
