# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small quantized network without torch, and the C compilers of this machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensor_programs import constant, floats, program
from xdsl.dialects.builtin import ModuleOp

from qcomp.dialects import nn
from qcomp.dialects.location import location
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp

COMPILERS = [name for name in ("gcc", "clang", "clang-19") if shutil.which(name)]
INPUT = (2, 3, 7, 5)
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")


def fake_quantized(add: Any, value: Any, scale: float, zero_point: int) -> Any:
    """`value` rounded to codes and back."""
    return add(DequantizeOp(add(QuantizeOp(value, Encoding.make(scale, zero_point)))))


def placed(add: Any, name: str, op: Any) -> Any:
    """The result of `op`, which comes from module `name`."""
    op.location = location(name, "model.py", 7)
    return add(op)


def network() -> ModuleOp:
    """Convolution, relu, convolution with a residual, average pool, linear, between quantize and dequantize."""
    rng = np.random.default_rng(5)

    def weight(add: Any, *shape: int) -> Any:
        encoding = Encoding.make(rng.uniform(0.01, 0.03, shape[0]), qmin=-127, axis=0)
        return add(DequantizeOp(add(constant(rng.integers(-127, 128, shape).astype(np.int8), encoding))))

    def bias(add: Any, size: int) -> Any:
        return add(constant(rng.standard_normal(size).astype(np.float32)))

    def build(add: Any, x: Any) -> Any:
        x = fake_quantized(add, x, 0.021, 3)
        y = placed(add, "stem", nn.Conv2dOp(x, weight(add, 6, 3, 3, 3), bias(add, 6), stride=(2, 1), padding=(1, 1)))
        y = fake_quantized(add, add(nn.ReluOp(y)), 0.03, -128)
        z = placed(add, "mix", nn.Conv2dOp(y, weight(add, 6, 6, 1, 1), bias(add, 6)))
        z = fake_quantized(add, add(nn.AddOp(z, y)), 0.05, 7)
        z = fake_quantized(add, placed(add, "pool", nn.AdaptiveAvgPool2dOp(z, (1, 1))), 0.04, 5)
        z = add(nn.ReshapeOp(z, (2, 6)))
        z = placed(add, "head", nn.LinearOp(z, weight(add, 5, 6), bias(add, 5)))
        return fake_quantized(add, z, 0.07, -9)

    return program(build, floats(*INPUT))


def run_c(compiler: str, folder: Path, flags: Sequence[str], *sources: str) -> subprocess.CompletedProcess[str]:
    """Build `sources` of `folder` to a program and run it."""
    command = [compiler, *flags, *(sources or sorted(path.name for path in folder.glob("*.c"))), "-o", "program.out"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return subprocess.run(["./program.out"], cwd=folder, capture_output=True, text=True)
