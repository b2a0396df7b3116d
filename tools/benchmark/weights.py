# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear in float32 whose weight is held in float32, in bytes and in four bits: time and size beside float32."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region

from qcomp.backend.emit_c import CProgram, emit_program
from qcomp.backend.target import find_target
from qcomp.dialects import nn
from qcomp.dialects.quant import DequantizeOp, Encoding, quantized_type
from qcomp.transforms.pipeline import run_passes
from tools.benchmark.profile import profile

GROUP = 32
FORMATS = ("f32", "i8", "i8 groups", "i4", "i4 groups", "u4 groups")
"""Groups: a scale for every 32 weights of a row, else for a row; u4: zero points too."""


def add_arguments(parser: ArgumentParser) -> None:
    """Sizes, and how long each is run."""
    parser.add_argument("--size", default="4096x4096", help="outputs x inputs (default: 4096x4096)")
    parser.add_argument("--rows", default="1,16", help="rows of the input, separated by commas (default: 1,16)")
    parser.add_argument("--layers", type=int, default=1, help="linears of as many weights, in turn (default: 1)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each (default: 1)")
    parser.add_argument("--target", default="native")


def run(args: Namespace) -> int:
    """Print a line for each format and number of rows."""
    outputs, inputs = map(int, args.size.split("x"))
    target = find_target(args.target).name
    for compiler in args.cc:
        for rows in map(int, args.rows.split(",")):
            print(f"{compiler} {args.flags}, {target}: {args.layers} x {args.size}, rows: {rows}")
            base = 0.0
            for form in FORMATS:
                program = emit_linears(form, (outputs, inputs), rows, args.layers, target)
                found = profile(program, compiler, args.flags, args.seconds, in_turn=args.layers > 1)
                time = sum(seconds for _, seconds in found.steps) / args.layers
                base = base or time
                size = sum(array.nbytes for array in program.constants.values()) / args.layers
                print(f"  {form:10} {time * 1e3:8.4f} ms {base / time:6.2f}x {size / 1e6:8.2f} MB", flush=True)
                if not found.alone:
                    print("  without SCHED_FIFO: other processes may have slowed this down")
    return 0


def emit_linears(form: str, sizes: tuple[int, int], rows: int, layers: int, target: str) -> CProgram:
    """The C program of linears that read one input."""
    rng = np.random.default_rng(7)
    block = Block(arg_types=[TensorType(f32, [rows, sizes[1]])])
    results: list[nn.LinearOp] = []
    for _ in range(layers):
        weight = list(_weight(form, sizes, rng))
        results.append(nn.LinearOp(block.args[0], weight[-1].results[0]))
        block.add_ops([*weight, results[-1]])
    block.add_op(ReturnOp(*(op.result for op in results)))
    kinds = (list(block.arg_types), [op.result.type for op in results])
    module = ModuleOp([FuncOp("main", kinds, Region(block))])
    run_passes(module, f"lower-to-loop{{target={target}}},plan-memory")
    return emit_program(module, find_target(target), "net")


def _weight(form: str, sizes: tuple[int, int], rng: np.random.Generator) -> Iterator[Operation]:
    """The constant, and for codes its dequantization."""
    if form == "f32":
        yield nn.ConstantOp(rng.standard_normal(sizes, np.float32))
        return
    signed, bits = form[0] == "i", int(form[1])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    grouped = form.endswith("groups")
    grid = (sizes[0], sizes[1] // GROUP) if grouped else (sizes[0],)
    encoding = Encoding.make(
        rng.uniform(0.01, 0.1, grid), 0 if signed else rng.integers(low, high + 1, grid), signed=signed, qmin=low,
        qmax=high, axis=None if grouped else 0, blocks=((0, 1), (1, GROUP)) if grouped else (),
    )  # fmt: skip
    codes = rng.integers(low, high + 1, sizes).astype(encoding.dtype)
    constant = nn.ConstantOp(codes, quantized_type(TensorType(f32, sizes), encoding))
    yield constant
    yield DequantizeOp(constant.result)
