# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp bench`: time a program or an artifact on this machine, on random inputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from qcomp import progress
from qcomp.cli.output import show

if TYPE_CHECKING:
    from qcomp.backend.artifact import Artifact
    from qcomp.dialects.constant import Array


def add_arguments(parser: ArgumentParser) -> None:
    """What is timed, for how long."""
    from qcomp.cli.commands.compile import add_options, add_program

    add_program(parser, ".pt2 or .mlir file, which is compiled first, or the folder of an artifact")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure; 1 by default")
    parser.add_argument("--random", metavar="SEED", type=int, default=0, help="seed of the inputs")
    add_options(parser)


def run(args: Namespace) -> int:
    """Print what it is, and the least, median and 90th percentile of the time of one call."""
    import qcomp
    from qcomp.cli.arrays import random_inputs
    from qcomp.cli.commands.compile import artifact_data, compile_program, summary
    from qcomp.cli.programs import is_artifact

    saved = is_artifact(args.program)
    artifact = qcomp.load(args.program) if saved else compile_program(args)
    fix = "compile the program with --dim NAME=SIZE" if saved else "fix it with --dim NAME=SIZE"
    times = _measure(artifact, random_inputs(artifact.interface.inputs, args.random, fix), args.seconds)
    median, most = times[len(times) // 2], times[len(times) * 9 // 10]
    speed = artifact.report()["macs"] / median / 1e9
    text = (
        f"{summary(artifact)}\n{len(times)} calls: least {_time(times[0])}, median {_time(median)}, "
        f"90% within {_time(most)}; {speed:.2f} GMAC/s"
    )
    seconds = {"least": times[0], "median": median, "percentile_90": most}
    show(args, text, {**artifact_data(artifact), "calls": len(times), "seconds": seconds, "gmacs_per_second": speed})
    return 0


def _measure(artifact: Artifact, inputs: list[Array], seconds: float) -> list[float]:
    """Return the time of each call, least first, over so many seconds and one call at least."""
    import time

    progress.step(f"measuring for {seconds:g} s")
    artifact.run(inputs)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        artifact.run(inputs)
        times.append(time.perf_counter() - start)
    return sorted(times)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
