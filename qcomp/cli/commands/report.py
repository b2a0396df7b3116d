# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp report`: say what a compiled model is and what became of each op, without running its code."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qcomp.cli.arguments import completed_by_files
from qcomp.cli.output import show

if TYPE_CHECKING:
    from qcomp.backend.interface import Port


def add_arguments(parser: ArgumentParser) -> None:
    """The artifact, and sizes to report for."""
    completed_by_files(parser.add_argument("artifact", metavar="DIR", help="folder that `qcomp compile` made"))
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=SIZE",
        help="report for this size of a symbol, by its name; 1 by default; may be repeated",
    )  # fmt: skip


def run(args: Namespace) -> int:
    """Print interface, summary and a line for each op."""
    from pathlib import Path

    from qcomp.backend.artifact import inspect
    from qcomp.backend.report import op_table
    from qcomp.cli.commands.compile import artifact_data
    from qcomp.transforms.specialize_dims import parse_dims

    artifact = inspect(Path(args.artifact))
    report = artifact.report(parse_dims(tuple(args.dim)))
    rows = [("inputs", _ports(artifact.interface.inputs)), ("outputs", _ports(artifact.interface.outputs))]
    text = "\n".join([artifact.summary(report, rows), "", *op_table(report)])
    show(args, text, {**artifact_data(artifact), "report": report, "files": sorted(artifact.manifest.files)})
    return 0


def _ports(ports: Sequence[Port]) -> list[str]:
    return [f"{port.name}: {port.element or port.dtype}[{', '.join(map(str, port.shape))}]" for port in ports]
