# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the passes scale: times each on synthetic networks of 1k to 16k ops, and prints milliseconds and the exponent.

    python tools/pass_scaling.py [--most 16000] [--csv FILE] [--plot FILE]

The network is a chain of blocks conv, batch norm, relu, observe, residual add, clamp, pool, reshape there and back.
An exponent near 1 is linear: time ~ ops ** exponent between the smallest and the largest size.
"""

from __future__ import annotations

import argparse
import csv
import gc
import importlib
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from qcomp.dialects import nn
from qcomp.dialects.context import context
from qcomp.dialects.quant import Encoding, ObserveOp
from qcomp.transforms import get_all_passes
from qcomp.transforms.pipeline import parse_passes

STEPS = "O1,quantize,O2,integer,unsigned-activations"
CHANNELS, SIZE = 3, 4
OPS_PER_BLOCK = 24


def chain(ops: int) -> ModuleOp:
    """A network of about `ops` ops with observers, ready to be quantized."""
    block = Block(arg_types=[TensorType(f32, (1, CHANNELS, SIZE, SIZE))])
    rng = np.random.default_rng(7)
    value = _observe(block, block.args[0], 0.05)
    for index in range(max(1, ops // OPS_PER_BLOCK)):
        value = _block(block, value, rng, index)
    block.add_op(ReturnOp(value))
    kinds = [argument.type for argument in block.args]
    return ModuleOp([FuncOp("main", (kinds, [value.type]), Region(block))])


def _add(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _observe(block: Block, value: SSAValue, scale: float) -> SSAValue:
    return _add(block, ObserveOp(value, Encoding.make(scale, 3)))


def _block(block: Block, value: SSAValue, rng: np.random.Generator, index: int) -> SSAValue:
    scale = 0.02 + (index % 977) / 1e5
    weight = _add(block, nn.ConstantOp(rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32)))
    weight = _add(block, ObserveOp(weight, Encoding.make([0.01, 0.02, 0.03], axis=0, qmin=-127)))
    statistics = [_add(block, nn.ConstantOp(rng.random(CHANNELS).astype(np.float32) + 0.5)) for _ in range(4)]
    normed = _add(block, nn.Conv2dOp(value, weight, padding=(1, 1)))
    normed = _add(block, nn.BatchNormOp(normed, *statistics, eps=1e-5))
    path = _observe(block, _add(block, nn.ReluOp(normed)), scale)
    bias = _add(block, nn.ConstantOp(rng.standard_normal(CHANNELS).astype(np.float32)))
    path = _add(block, nn.Conv2dOp(path, weight, bias, padding=(1, 1)))
    total = _add(block, nn.ClampOp.of(_add(block, nn.AddOp(path, value)), 0.0, 6.0))
    total = _observe(block, total, scale + 0.01)
    pooled = _add(block, nn.MaxPool2dOp(total, (3, 3), (1, 1), (1, 1)))
    pooled = _observe(block, pooled, scale + 0.01)
    flat = _add(block, nn.ReshapeOp(pooled, (1, CHANNELS * SIZE * SIZE)))
    moved = _add(block, nn.ReshapeOp(flat, (1, CHANNELS, SIZE, SIZE)))
    twice = _add(block, nn.PermuteOp(_add(block, nn.PermuteOp(moved, (0, 1, 3, 2))), (0, 1, 3, 2)))
    return _observe(block, twice, scale + 0.01)


def measure(ops: int) -> tuple[int, dict[str, float]]:
    """The number of ops of `chain(ops)` and the CPU seconds of each pass on it, verification of the module apart."""
    module, ctx = chain(ops), context()
    count = sum(1 for _ in module.walk())
    seconds: dict[str, float] = {}
    gc.collect()
    gc.disable()
    for step in parse_passes(get_all_passes(), STEPS):
        start = time.process_time()
        step.apply(ctx, module)
        middle = time.process_time()
        module.verify()
        end = time.process_time()
        seconds[step.name] = seconds.get(step.name, 0.0) + middle - start
        seconds["verify"] = seconds.get("verify", 0.0) + end - middle
    gc.enable()
    return count, seconds


def exponent(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """The power of the number of ops that the time grows with."""
    return math.log(max(seconds[-1], 1e-9) / max(seconds[0], 1e-9)) / math.log(counts[-1] / counts[0])


def plot(path: str, counts: Sequence[int], rows: Sequence[Sequence[str]]) -> None:
    """Draw milliseconds over ops, both logarithmic, with a line of slope 1 (needs matplotlib, the extra `report`)."""
    figure: Any = importlib.import_module("matplotlib.figure").Figure(figsize=(8, 6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="ops", ylabel="ms")
    times = {row[0]: [float(cell) for cell in row[1:-1]] for row in rows}
    shown = sorted(times, key=lambda name: -times[name][-1])
    for name in shown[:12]:
        axes.plot(counts, [max(value, 0.5) for value in times[name]], marker="o", label=name)
    largest = times[shown[0]][-1]
    axes.plot(counts, [largest * count / counts[-1] for count in counts], "k--", label="linear")
    axes.legend(fontsize="small")
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--most", type=int, default=16000, help="ops of the largest network")
    parser.add_argument("--csv", help="write the table to this file too")
    parser.add_argument("--plot", help="draw milliseconds over ops into this file (.svg, .png, ...)")
    options = parser.parse_args(arguments)
    sizes = [size for size in (1000, 2000, 4000, 8000, 16000, 32000) if size <= options.most]
    runs = [measure(size) for size in sizes]
    counts = [count for count, _ in runs]
    header = ["pass", *(f"{count} ops" for count in counts), "exponent"]
    rows = [
        [
            name,
            *(f"{1000 * taken[name]:.0f}" for _, taken in runs),
            f"{exponent(counts, [t[name] for _, t in runs]):.2f}",
        ]
        for name in runs[0][1]
    ]
    width = max(len(row[0]) for row in rows)
    for row in [header, *rows]:
        print(f"{row[0]:{width}}" + "".join(f"{cell:>12}" for cell in row[1:]))
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
    if options.plot:
        plot(options.plot, counts, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
