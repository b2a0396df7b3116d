# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Int8 convolutions and linear of ResNet-50's shapes, as GMAC/s beside the machine's dot-instruction peak."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from qcomp.backend.emit_c import CProgram, emit_program
from qcomp.backend.macs import macs
from qcomp.backend.target import find_target
from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding, quantized_type
from qcomp.transforms.pipeline import run_passes
from tools.benchmark.profile import profile


@dataclass(frozen=True)
class Case:
    """A square convolution, or with kernel 0 a linear, and how often ResNet-50 has it."""

    size: int
    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    residual: bool = False
    count: int = 1

    def __str__(self) -> str:
        if self.kernel == 0:
            return f"linear {self.inputs} -> {self.outputs}"
        text = f"{self.size}x{self.size} {self.inputs:4} -> {self.outputs:4} {self.kernel}x{self.kernel}"
        return f"{text} s{self.stride}{' +res' if self.residual else ''}"


def _stage(size: int, before: int, width: int, blocks: int, stride: int) -> list[Case]:
    """The convolutions of a stage of bottlenecks whose input has `size` and `before` channels."""
    small, wide = size // stride, 4 * width
    return [
        Case(size, before, width, 1),
        Case(size, width, width, 3, stride, count=1 if stride > 1 else blocks),
        Case(size, before, wide, 1, stride),
        Case(small, wide, width, 1, count=blocks - 1),
        *([Case(small, width, width, 3, count=blocks - 1)] if stride > 1 else []),
        Case(small, width, wide, 1, residual=True, count=blocks),
    ]


RESNET50 = [
    Case(224, 3, 64, 7, 2),
    *_stage(56, 64, 64, 3, 1),
    *_stage(56, 256, 128, 4, 2),
    *_stage(28, 512, 256, 6, 2),
    *_stage(14, 1024, 512, 3, 2),
    Case(1, 2048, 1000, 0),
]


def add_arguments(parser: ArgumentParser) -> None:
    """Which shapes, and how long each is run."""
    parser.add_argument("--only", default="", metavar="TEXT", help="only shapes whose line holds TEXT, e.g. '3x3 s1'")
    parser.add_argument("--seconds", type=float, default=0.15, help="time for each shape (default: 0.15)")
    parser.add_argument("--target", default="x86-64-avx512vnni")


def run(args: Namespace) -> int:
    """Print a table for each compiler."""
    chosen = [case for case in RESNET50 if args.only in str(case)]
    programs = [(case, *emit_case(case, args.target)) for case in chosen]
    for compiler in args.cc:
        print(f"{compiler} {args.flags}, {args.target}")
        work = time = top = 0.0
        for case, program, count in programs:
            found = profile(program, compiler, args.flags, args.seconds)
            best = next(seconds for name, seconds in found.steps if name.startswith(("conv2d", "linear")))
            top = max(top, found.peak)
            work, time = work + count * case.count, time + best * case.count
            print(_line(f"{case} x{case.count}", count, best, found.peak), flush=True)
            if not found.alone:
                print("  without SCHED_FIFO: other processes may have slowed this down")
        print(_line("all, as often as in ResNet-50", int(work), time, top))
    return 0


def _line(name: str, work: int, seconds: float, peak: float) -> str:
    rate = work / seconds
    share = f"  {100 * rate / peak:5.1f}% of peak {peak / 1e9:.1f}" if peak else ""
    return f"  {name:36} {work / 1e6:7.1f} MMAC {seconds * 1e3:8.4f} ms {rate / 1e9:6.1f} GMAC/s{share}"


def emit_case(case: Case, target: str) -> tuple[CProgram, int]:
    """The C program of one op, and its MACs."""
    module = one_op(case)
    work = sum(macs(op) for op in module.walk())
    run_passes(module, f"lower-to-loop{{target={target}}},plan-memory")
    return emit_program(module, find_target(target), "net"), work


def one_op(case: Case) -> ModuleOp:
    """Codes in, codes out: convolution or linear with bias, ReLU and residual as in the network."""
    rng = np.random.default_rng(7)
    window = (case.kernel, case.kernel) if case.kernel else ()
    weight = rng.integers(-127, 128, (case.outputs, case.inputs, *window)).astype(np.int8)
    scales = rng.uniform(0.5, 1.5, case.outputs) / (127 * np.sqrt(weight[0].size))
    small = -(-case.size // case.stride)
    result = [1, case.outputs, small, small] if case.kernel else [1, case.outputs]
    x = _codes([1, case.inputs, case.size, case.size] if case.kernel else [1, case.inputs], 0.021, 3)
    y, r = _codes(result, 0.04, 5), _codes(result, 0.033, 7)
    block = Block(arg_types=[x, r] if case.residual else [x])
    held = Encoding.make(scales, signed=True, qmin=-127, axis=0)
    w = nn.ConstantOp(weight, quantized_type(TensorType(f32, weight.shape), held))
    b = nn.ConstantOp(rng.standard_normal(case.outputs).astype(np.float32))
    added = block.args[1] if case.residual else None
    if case.kernel:
        op = nn.Conv2dOp(
            block.args[0], w.result, b.result, stride=(case.stride,) * 2, padding=(case.kernel // 2,) * 2,
            residual=added, activation=nn.ReluAttr(), result_type=y,
        )  # fmt: skip
    else:
        op = nn.LinearOp(block.args[0], w.result, b.result, result_type=y)
    block.add_ops([w, b, op, ReturnOp(op.result)])
    module = ModuleOp([FuncOp("main", (list(block.arg_types), [y]), Region(block))])
    module.verify()
    return module


def _codes(shape: list[int], scale: float, zero_point: int) -> TensorType[Attribute]:
    return quantized_type(TensorType(f32, shape), Encoding.make(scale, zero_point, signed=False))
