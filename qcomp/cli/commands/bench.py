# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`qcomp bench`: time a program or an artifact on this machine, on random inputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """What is timed, for how long."""
    from qcomp.cli.commands.compile import add_options

    parser.add_argument("program", help=".pt2 or .mlir file, which is compiled first, or the folder of an artifact")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure; 1 by default")
    parser.add_argument("--random", metavar="SEED", type=int, default=0, help="seed of the inputs")
    add_options(parser)


def run(args: Namespace) -> int:
    """Print what it is, and the least, median and 90th percentile of the time of one call."""
    import time

    import qcomp
    from qcomp.cli.arrays import random_inputs
    from qcomp.cli.commands.compile import compile_program, summary
    from qcomp.cli.programs import is_artifact

    artifact = qcomp.load(args.program) if is_artifact(args.program) else compile_program(args)
    inputs = random_inputs(artifact.interface.inputs, args.random)
    artifact.run(inputs)
    times: list[float] = []
    end = time.perf_counter() + args.seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        artifact.run(inputs)
        times.append(time.perf_counter() - start)
    times.sort()
    median = times[len(times) // 2]
    macs = sum(op["macs"] for op in artifact.report()["ops"])
    print(summary(artifact))
    print(
        f"{len(times)} calls: least {_time(times[0])}, median {_time(median)}, "
        f"90% within {_time(times[len(times) * 9 // 10])}; {macs / median / 1e9:.2f} GMAC/s"
    )
    return 0


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
