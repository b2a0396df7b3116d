# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Latency of networks with symbolic sizes beside the same with fixed ones, on one thread."""

from __future__ import annotations

import os
import warnings
from argparse import ArgumentParser, Namespace
from typing import Any

import qcomp
from qcomp.dialects.constant import Array
from tools.benchmark.models import SHAPES, networks, timed

_DYNAMIC = {"batch": (0,), "image": (0, 2, 3)}
ROUNDS = 3
"""Turns that each of the two gets: so both meet the same weather."""


def add_arguments(parser: ArgumentParser) -> None:
    """Which networks, which of their sizes are symbols, and at which batch."""
    parser.add_argument("names", nargs="*", metavar="NETWORK", help=f"of {', '.join(SHAPES)}; resnet8 by default")
    parser.add_argument("--symbols", choices=_DYNAMIC, default="batch", help="the batch, or also height and width")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--target", default="native")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each program (default: 1)")


def run(args: Namespace) -> int:
    """Print a line for each compiler, network and kind of numbers: both times and their ratio."""
    unknown = [name for name in args.names if name not in SHAPES]
    if unknown:
        raise qcomp.QcompError(f"no network {unknown[0]}", code="benchmark", hint=f"one of {', '.join(SHAPES)}")
    print(f"{'':10} {'network':14} {'':5} {'symbols':8} {'fixed ms':>9} {'symbolic':>9} {'ratio':>6}")
    for name in args.names or ["resnet8"]:
        shape = (args.batch, *SHAPES[name][1:])
        for kind, program in programs(name, _DYNAMIC[args.symbols]).items():
            for compiler in args.cc:
                os.environ["CC"] = compiler
                fixed, symbolic = both(program, shape, args.target, args.seconds)
                print(
                    f"{compiler:10} {name:14} {kind:5} {args.symbols:8} {fixed * 1e3:9.4f} {symbolic * 1e3:9.4f}"
                    f" {symbolic / fixed:6.3f}",
                    flush=True,
                )
    return 0


def both(program: object, shape: tuple[int, ...], target: str, seconds: float) -> tuple[float, float]:
    """The least time of a call with input `shape`, sizes fixed at compile time and sizes given at the call."""
    import numpy as np

    symbolic = qcomp.compile(program, target=target)
    places = symbolic.interface.inputs[0].shape
    free = {str(size): given for size, given in zip(places, shape, strict=True) if not isinstance(size, int)}  # pyright: ignore[reportUnnecessaryIsInstance]
    fixed = qcomp.compile(program, target=target, dims=free)
    inputs: list[Array] = [np.random.default_rng(1).standard_normal(shape).astype(np.float32)]
    found: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for times, artifact in zip(found, (fixed, symbolic), strict=True):
            times.append(timed(artifact, inputs, seconds / ROUNDS)[0])
    return min(found[0]), min(found[1])


def programs(name: str, axes: tuple[int, ...]) -> dict[str, Any]:
    """The network exported in float and quantized, the sizes of `axes` of its input as symbols."""
    import torch
    from torch.export import Dim, export

    shape = (2, *SHAPES[name][1:])
    model, example = networks().build(name), (torch.randn(shape, generator=torch.Generator().manual_seed(1)),)
    dims = ({axis: Dim.AUTO for axis in axes if axis < len(shape)},)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        _, converted = networks().quantize(model, example, "x86", dims=dims)
        return {
            "float": export(model, example, dynamic_shapes=dims),
            "int8": export(converted, example, dynamic_shapes=dims),
        }
