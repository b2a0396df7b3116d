# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp compare`: hold a compiled model against the quantized program it was made of, layer by layer."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from qcomp.cli.arguments import completed_by_files
from qcomp.cli.output import show

if TYPE_CHECKING:
    from qcomp.backend.compare import Layer


def add_arguments(parser: ArgumentParser) -> None:
    """The program, what was made of it, and the inputs."""
    from qcomp.cli.commands.compile import add_options, add_program

    add_program(parser)
    artifact = parser.add_argument(
        "artifact", nargs="?", help="folder that `qcomp compile` made of it; else it is compiled now"
    )
    completed_by_files(artifact)
    inputs = parser.add_mutually_exclusive_group()
    sample = inputs.add_argument("--inputs", metavar="FILE.npz", help="the inputs of one sample, by name or in order")
    completed_by_files(sample, "npz")
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
    text = str(Comparison(found.layers[: args.rows], found.outputs))
    if len(found) > args.rows:
        text += f"\n{len(found) - args.rows} more layers are not worse"
    data = {"layers": list(map(_layer, found.layers)), "outputs": list(map(_layer, found.outputs))}
    show(args, text, data)
    return 0


def _layer(layer: Layer) -> dict[str, Any]:
    """Return a layer as plain data."""
    return {
        "name": layer.name, "op": layer.op, "loc": layer.loc, "value": layer.value, "elements": layer.elements,
        "max_off": layer.max_off, "differ": layer.differ, "share": layer.share, "sqnr_db": layer.sqnr_db,
    }  # fmt: skip
