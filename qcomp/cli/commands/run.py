# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp run`: run a program or an artifact on given or random inputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from qcomp.cli.arguments import completed_by_files
from qcomp.cli.output import show

if TYPE_CHECKING:
    from qcomp.dialects.constant import Array


def add_arguments(parser: ArgumentParser) -> None:
    """The program, its inputs, where the outputs go, how it is run."""
    from qcomp.cli.commands.compile import add_program

    add_program(parser, ".mlir or .pt2 file, which is interpreted, or the folder of an artifact")
    inputs = parser.add_mutually_exclusive_group(required=True)
    sample = inputs.add_argument(
        "--inputs", metavar="FILE.npz", help="the inputs, by name or in order; bfloat16 as uint16 bits or as float32"
    )
    completed_by_files(sample, "npz")
    inputs.add_argument("--random", metavar="SEED", type=int, help="random inputs from this seed")
    parser.add_argument("--outputs", metavar="FILE.npz", help="save the outputs by name")
    parser.add_argument(
        "--evaluator", choices=("numpy", "torch"), default="numpy", help="how a .mlir or .pt2 is interpreted"
    )


def run(args: Namespace) -> int:
    """Print a line for each output, and save them when asked."""
    from qcomp.cli.arrays import array_data, describe_array, write_npz
    from qcomp.cli.programs import is_artifact

    named, elements = _call(args) if is_artifact(args.program) else _interpret(args)
    if args.outputs:
        write_npz(args.outputs, named)
    rows = [(name, array, element) for (name, array), element in zip(named.items(), elements, strict=True)]
    text = "\n".join(describe_array(*row) for row in rows)
    show(args, text, {"outputs": [array_data(*row) for row in rows]})
    return 0


Results = tuple["dict[str, Array]", list[str]]
"""Arrays by name, and for each "bfloat16" when it holds the bits of those."""


def _call(args: Namespace) -> Results:
    import qcomp
    from qcomp.cli.arrays import distinct_names, random_inputs, read_inputs

    artifact = qcomp.load(args.program)
    ports = artifact.interface.inputs
    inputs = read_inputs(args.inputs, ports) if args.inputs else random_inputs(ports, args.random)
    outputs = artifact.run([port.accept(array) for port, array in zip(ports, inputs, strict=True)])
    names = distinct_names([port.name for port in artifact.interface.outputs])
    return dict(zip(names, outputs, strict=True)), [port.element for port in artifact.interface.outputs]


def _interpret(args: Namespace) -> Results:
    import qcomp
    from qcomp.cli.arrays import (
        distinct_names,
        input_ports,
        output_elements,
        output_names,
        random_inputs,
        read_inputs,
    )
    from qcomp.cli.programs import load_module

    module = load_module(args.program)
    ports = input_ports(module)
    inputs = read_inputs(args.inputs, ports) if args.inputs else random_inputs(ports, args.random)
    outputs = qcomp.interpret(module, *inputs, evaluator=args.evaluator)
    names = distinct_names(output_names(module, len(outputs)))
    return dict(zip(names, outputs, strict=True)), output_elements(module, len(outputs))
