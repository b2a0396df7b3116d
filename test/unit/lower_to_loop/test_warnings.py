# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C of every kind of kernel compiles as C99 without a warning, by gcc and clang."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import three_way
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from eager import Call
from layers import Program, activation, kind
from torch import nn as nn_
from xdsl.dialects.builtin import FloatAttr, IntegerType, StringAttr, TensorType, f32, i8, i32, i64
from xdsl.ir import SSAValue

import qcomp
from qcomp.backend.emit_c import emit_program
from qcomp.backend.target import Target
from qcomp.dialects import nn, quant
from qcomp.dialects.element import numpy_dtype, ui8
from qcomp.dialects.quant import Encoding

A, C, SYMMETRIC = activation(0.02, 114), activation(0.05, 99), Encoding.make(0.01, 0)
ELEMENTS = (f32, i8, ui8, i32, i64, IntegerType(1))
COMPILERS = ["gcc", *([three_way.CLANG] if three_way.CLANG else [])]


def everything(p: Program) -> list[SSAValue]:
    """One of each kernel, on floats, codes and integers, in both layouts."""
    image, codes, rows, row_codes = (
        p.input((2, 5, 6, 7)),
        p.input((2, 5, 6, 7), A),
        p.input((9, 21)),
        p.input((9, 21), A),
    )
    made: list[Any] = [
        nn.AddOp(image, image, activation=nn.ReluAttr()),
        nn.MaximumOp(rows, rows),
        nn.AddOp(codes, codes, kind((2, 5, 6, 7), C)),
        quant.QuantizeOp(image, A),
        quant.DequantizeOp(codes),
        quant.RequantizeOp(codes, C),
        nn.ReluOp(codes),
        nn.SigmoidOp(codes, kind((2, 5, 6, 7), C)),
        nn.MaxPool2dOp(image, (2, 2), (2, 2), (1, 1)),
        nn.MaxPool2dOp(codes, (3, 2), (1, 2)),
        nn.AvgPool2dOp(codes, (2, 2), (2, 2), (1, 1), result_type=kind((2, 5, 4, 4), C)),
        nn.AdaptiveAvgPool2dOp(image, (2, 3)),
        *(
            op(value, axes, False)
            for op in (nn.SumOp, nn.AmaxOp)
            for value in (image, rows)
            for axes in ((0,), (1,), (0, 1))
        ),
        *(nn.MeanOp(row_codes, (axis,), True, kind((9, 1) if axis else (1, 21), C)) for axis in (0, 1)),
        *(nn.AmaxOp(row_codes, (axis,), True) for axis in (0, 1)),
        *(nn.SoftmaxOp(rows, axis) for axis in (0, 1)),
        nn.SoftmaxOp(row_codes, 1, kind((9, 21), C)),
        *(nn.ScanOp(kind_, rows, 1) for kind_ in ("add", "max", "argmin")),
        *(op(rows, 1, False) for op in (nn.ArgmaxOp, nn.ArgminOp)),
        nn.AminOp(rows, (1,), False),
        nn.ArgsortOp(rows, 1, True),
        nn.LayerNormOp(rows, (21,), p.reals((21,)), p.reals((21,)), 1e-5),
        nn.PadOp(image, (0, 1, 2, 0), (1, 0, 0, 3), 0.5),
        nn.CatOp([codes, codes], 2),
        nn.PermuteOp(codes, (3, 0, 2, 1)),
        nn.SliceOp(rows, 1, 2, 17, 3),
        nn.ExpandOp(rows, (2, 9, 21)),
        nn.MatmulOp(rows, p.input((21, 37))),
        nn.MatmulOp(row_codes, p.input((21, 37), SYMMETRIC), kind((9, 37), C)),
        nn.LinearOp(rows, p.reals((34, 21)), p.reals((34,))),
        nn.LinearOp(row_codes, p.codes((34, 21), p.weight_encoding(34)), p.reals((34,)), result_type=kind((9, 34), C)),
        nn.Conv2dOp(
            codes,
            p.codes((34, 5, 3, 3), p.weight_encoding(34)),
            None,
            padding=(1, 1),
            result_type=kind((2, 34, 6, 7), C),
        ),
        nn.Conv2dOp(
            codes,
            p.codes((5, 1, 3, 3), p.weight_encoding(5)),
            None,
            padding=(1, 1),
            groups=5,
            result_type=kind((2, 5, 6, 7), C),
        ),
        nn.Conv3dOp(p.input((1, 3, 4, 5, 6)), p.reals((18, 3, 2, 2, 2)), None),
        nn.BatchNormOp(image, p.reals((5,)), p.reals((5,)), None, None, 10.0),
    ]
    attributes: dict[Any, dict[str, Any]] = {
        nn.LeakyReluOp: {"negative_slope": FloatAttr(0.1, f32)},
        nn.GeluOp: {"approximate": StringAttr("none")},
        nn.ClampOp: {"min": FloatAttr(-1.0, f32), "max": FloatAttr(2.0, f32)},
    }
    made += [op(rows, **attributes.get(op, {})) for op in nn.UNARY if op is not nn.CastOp]
    made.append(nn.GeluOp(rows, approximate=StringAttr("tanh")))
    found = [p.add(op) for op in made]
    for element in ELEMENTS:
        x = p.given(np.ones(19, numpy_dtype(element)), element)
        found += [p.add(nn.CastOp(x, TensorType(target, (19,)))) for target in ELEMENTS]
    for element in (i32, i64):
        indices = p.given(np.ones((2, 3), numpy_dtype(element)), element)
        found += [
            p.add(nn.EmbeddingOp(p.reals((301, 5)), indices)),
            p.add(nn.MulOp(indices, indices)),
            p.add(nn.NegOp(indices)),
        ]
    return found


@pytest.mark.parametrize("target", three_way.TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_is_free_of_warnings(compiler: str, target: Target, tmp_path: Path) -> None:
    p = Program(1)
    program = emit_program(three_way.lower(p.module(*everything(p)), target), target, "net")
    (tmp_path / "net.c").write_text(program.source)
    (tmp_path / "net.h").write_text(program.header)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "net.c", "-o", "net.o"]
    done = subprocess.run([compiler, *flags], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    symbols = subprocess.run(["nm", "-u", "net.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    wanted = {line.split()[-1] for line in symbols.splitlines()} - set(program.constants)
    assert wanted <= {"memcpy", "memset", "memmove", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}, "no libm"


class Spare(nn_.Module):
    """Kernels that need no size, no element of an input, and outputs without elements."""

    def forward(self, x: torch.Tensor, s: torch.Tensor) -> Any:
        scale, zero = torch.ops.quantized_decomposed.choose_qparams.tensor(x, -128, 127, 1e-6, torch.int8)
        return x[0], x[:, :0], s.argmax(), s.softmax(0), s.argsort(), x[:, 2:2].float().amax(0), scale, zero


@pytest.mark.parametrize("target", ["generic", "x86-64-avx512vnni"])
@pytest.mark.parametrize("whole", [True, False])
def test_spare_arguments_and_empty_outputs_do_not_warn(target: str, whole: bool, tmp_path: Path) -> None:
    model, inputs = (Spare(), (torch.randn(3, 5), torch.tensor(2.0))) if whole else (Call(_empty), (torch.randn(3, 5),))
    sizes = ({0: torch.export.Dim("b", min=1)}, None)[: len(inputs)]
    program = torch.export.export(model, inputs, dynamic_shapes=sizes if whole else None)
    qcomp.compile(program, target).save(tmp_path / "out")
    warned = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wunused-const-variable", "-Werror"]
    options = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni"] if target != "generic" else []
    for source in sorted(path.name for path in (tmp_path / "out").glob("*.c")):
        command = ["gcc", *warned, *options, "-c", source, "-o", "spare.o"]
        done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:2000]


def _empty(x: torch.Tensor) -> torch.Tensor:
    return x[:0] * 2
