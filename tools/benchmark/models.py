# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latency of whole networks, int8 against float, on one thread."""

from __future__ import annotations

import importlib
import os
import sys
import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import qcomp
from qcomp.backend.artifact import Artifact
from qcomp.dialects.constant import Array

SHAPES = {
    "resnet8": (1, 3, 32, 32), "ds_cnn": (1, 1, 49, 10), "mobilenet_v1": (1, 3, 96, 96), "autoencoder": (1, 640),
    "mobilenet_v2": (1, 3, 224, 224), "resnet18": (1, 3, 224, 224), "resnet50": (1, 3, 224, 224),
}  # fmt: skip
"""The networks of test/support/networks.py that are timed, at their usual input sizes."""
BURST = 0.4
"""Seconds at a time under SCHED_FIFO: longer would starve the machine."""


def add_arguments(parser: ArgumentParser) -> None:
    """Which networks, quantized how."""
    parser.add_argument("names", nargs="*", metavar="NETWORK", help=f"of {', '.join(SHAPES)}; all by default")
    parser.add_argument("--quantizer", choices=("x86", "xnnpack"), default="x86")
    parser.add_argument("--target", default="native")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each model (default: 1)")


def run(args: Namespace) -> int:
    """Print a line for each compiler, network and kind of numbers."""
    unknown = [name for name in args.names if name not in SHAPES]
    if unknown:
        raise qcomp.QcompError(f"no network {unknown[0]}", code="benchmark", hint=f"one of {', '.join(SHAPES)}")
    print(f"{'':10} {'network':14} {'':5} {'MMAC':>8} {'min ms':>9} {'median':>9} {'GMAC/s':>8} {'build s':>8}")
    for name in args.names or SHAPES:
        programs = _programs(name, args.quantizer)
        for compiler in args.cc:
            os.environ["CC"] = compiler
            for kind, (program, inputs) in programs.items():
                start = time.perf_counter()
                artifact = qcomp.compile(program, target=args.target, name=name)
                seconds = time.perf_counter() - start
                least, median = timed(artifact, inputs, args.seconds)
                macs = sum(row["macs"] for row in artifact.report()["ops"])
                print(
                    f"{compiler:10} {name:14} {kind:5} {macs / 1e6:8.2f} {least * 1e3:9.4f} {median * 1e3:9.4f}"
                    f" {macs / least / 1e9:8.1f} {seconds:8.1f}",
                    flush=True,
                )
    return 0


def networks() -> Any:
    """The module of test/support that builds networks."""
    support = str(Path(__file__).parents[2] / "test" / "support")
    if support not in sys.path:
        sys.path.append(support)
    return importlib.import_module("networks")


def pytorch_network(name: str) -> tuple[Any, Any]:
    """Return the float network `name` of `SHAPES` and an example of its input, both seeded."""
    import torch

    return networks().build(name), torch.randn(SHAPES[name], generator=torch.Generator().manual_seed(1))


def _programs(name: str, quantizer: str) -> dict[str, tuple[object, list[Array]]]:
    """The network as exported programs in float and quantized, each with its inputs."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, *example = pytorch_network(name)
        example = tuple(example)
        _, converted = networks().quantize(model, example, quantizer)
        exported = {"float": torch.export.export(model, example), "int8": torch.export.export(converted, example)}
    arrays: list[Array] = [value.numpy() for value in example]
    return {kind: (program, arrays) for kind, program in exported.items()}


def timed(artifact: Artifact, inputs: list[Array], seconds: float) -> tuple[float, float]:
    """Least and median time of a call, in bursts under SCHED_FIFO where that is allowed."""
    times: list[float] = []
    artifact.run(inputs)
    while sum(times) < seconds or len(times) < 5:
        times += burst(lambda: artifact.run(inputs))
    times.sort()
    return times[0], times[len(times) // 2]


def burst(call: Callable[[], object]) -> list[float]:
    """Call for `BURST` seconds under SCHED_FIFO where that is allowed; return the seconds of each call."""
    times: list[float] = []
    _set_policy(os.SCHED_FIFO, 1)
    try:
        end = time.perf_counter() + BURST
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    finally:
        _set_policy(os.SCHED_OTHER, 0)
    time.sleep(BURST / 4)
    return times


def _set_policy(policy: int, priority: int) -> None:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except (OSError, PermissionError):
        return
