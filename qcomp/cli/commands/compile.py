# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp compile`: turn a program into C, and build it where its target runs here."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from qcomp.cli.arguments import completed_by, completed_by_files
from qcomp.cli.output import show

if TYPE_CHECKING:
    from pathlib import Path

    from xdsl.dialects.builtin import ModuleOp

    from qcomp.backend.artifact import Artifact


def add_arguments(parser: ArgumentParser) -> None:
    """The program, the folder, and what `qcomp.compile` can be told."""
    add_program(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="folder of the artifact; replaced when it is one"
    )
    add_options(parser)
    samples = parser.add_argument(
        "--calibrate",
        metavar="FILE.npz",
        help="quantize a float program to int8; the first axis of each array "
        "counts the samples, the others are an input's",
    )
    completed_by_files(samples, "npz")
    parser.add_argument(
        "--weights", choices=("auto", "text", "binary"), default="auto",
        help="how weights are saved: as C, or as bytes that the assembler of gcc and clang includes, a third as large; "
        "by default as C up to 256 KiB",
    )  # fmt: skip
    parser.add_argument("--name", help="what files and symbols begin with; by default the program's name")


def add_program(parser: ArgumentParser, help: str = ".pt2 or .mlir file") -> None:
    """The program."""
    completed_by_files(parser.add_argument("program", help=help), "pt2", "mlir")


def add_options(parser: ArgumentParser) -> None:
    """The options that say how a program is compiled."""
    add_target(parser)
    add_dim(parser)
    parser.add_argument("--opt-level", type=int, choices=range(4), default=3, help="0 is plain, 3 is fastest")
    parser.add_argument("--numerics", default="float", help="how codes are rescaled: float")
    parser.add_argument("--verify-rewrites", action="store_true", help="hold every pass to its letter; takes long")


def add_target(parser: ArgumentParser) -> None:
    """The option that names the machine."""
    target = parser.add_argument(
        "--target", default="native", help="a name that `qcomp targets` lists; native: the best that runs here"
    )
    completed_by(target, _target_names)


def _target_names() -> list[str]:
    from qcomp.backend.target import TARGETS

    return ["native", *TARGETS]


def add_dim(parser: ArgumentParser) -> None:
    """The option that fixes symbolic sizes."""
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE",
        help="fix a symbolic size, by its name or by a place such as x.0; may be repeated",
    )  # fmt: skip


def run(args: Namespace) -> int:
    """Compile, save, and say what became of it."""
    from pathlib import Path

    from qcomp.backend.manifest import FILE_NAME, Manifest

    artifact = compile_program(args, args.name, args.calibrate)
    artifact.save(args.output, args.weights)
    files = [*Manifest.read(Path(args.output)).files, FILE_NAME]
    data = {**artifact_data(artifact), "output": args.output, "files": files}
    summary = artifact.summary(artifact.report(), [("files", [", ".join(files)])])
    show(args, f"{summary}\nsaved in {args.output}", data)
    return 0


def artifact_data(artifact: Artifact) -> dict[str, Any]:
    """Return what is known of an artifact as plain data."""
    return {"name": artifact.manifest.name, "interface": artifact.interface.to_json(), "report": artifact.report()}


def compile_program(args: Namespace, name: str | None = None, samples: str | None = None) -> Artifact:
    """The artifact of ``args.program`` by the options of `add_options`; `samples` is a file to calibrate with."""
    import qcomp
    from qcomp.cli.programs import checked_program
    from qcomp.transforms.specialize_dims import parse_dims

    path = checked_program(args.program)
    return qcomp.compile(
        path if samples is None else _calibrated(path, samples),
        target=args.target,
        opt_level=args.opt_level,
        numerics=args.numerics,
        name=name if samples is None else name or path.stem,
        verify=args.verify_rewrites,
        dims=parse_dims(tuple(args.dim)),
    )


def _calibrated(path: Path, samples: str) -> ModuleOp:
    import qcomp
    from qcomp.cli.arrays import NpzSamples, input_ports
    from qcomp.cli.programs import load_module

    module = load_module(str(path))
    return qcomp.quantize(module, NpzSamples(samples, input_ports(module)))


def summary(artifact: Artifact) -> str:
    """Return one line: target, work and the share of it in integers, bytes of weights and arena."""
    from qcomp.backend.report import headline

    return f"{artifact.manifest.name} {headline(artifact.report())}"
