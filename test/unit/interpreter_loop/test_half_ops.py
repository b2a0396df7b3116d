# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""loop.widen_half and loop.narrow_half against torch: all patterns, and floats between them."""

from __future__ import annotations

import numpy as np
import pytest
import three_way
import torch
from layers import Program
from loop_case import run
from xdsl.dialects.builtin import TensorType, bf16, f16, f32

from qcomp.dialects import nn

PATTERNS = np.arange(2**16, dtype=np.uint16).view(np.int16)
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
ELEMENTS = {"f16": f16, "bf16": bf16}


def between() -> np.ndarray:
    """The middle of any two neighbours of either type, and the floats next to it."""
    found: list[np.ndarray] = []
    for kind in TYPES.values():
        values = torch.from_numpy(PATTERNS).view(kind).float().numpy()
        values = np.sort(values[np.isfinite(values)])
        middle = (values[:-1] / 2 + values[1:] / 2).astype(np.float32)
        found += [values, middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))]
    ends = np.array([65504, 65519.99, 65520, 3.3895e38, 3.3961e38, 3.4e38, np.inf, np.nan, 1e-45, 0.0], np.float32)
    return np.concatenate([*found, ends, -ends])


def program(op: str, source: str, target: str, count: int, tile: int) -> str:
    kinds = [f"vector<{tile}x{name}>" for name in (source, target)]
    return f"""
func.func @main(%x: memref<{count}x{source}>, %y: memref<{count}x{target}> {{qcomp.output}}) {{
  loop.for %i = [0] to [{count}] step {tile} parallel {{
    %a = loop.load %x[%i] over (0) : memref<{count}x{source}>, {kinds[0]}
    %r = {op} : {kinds[0]} -> {kinds[1]}
    loop.store %r, %y[%i] over (0) : memref<{count}x{target}>, {kinds[1]}
  }}
  func.return
}}"""


@pytest.mark.parametrize("half", TYPES)
def test_widen(half: str) -> None:
    (found,) = run(program(f"loop.widen_half %a as {half}", "i16", "f32", 2**16, 64), PATTERNS)
    expected = torch.from_numpy(PATTERNS).view(TYPES[half]).float().numpy()
    assert np.array_equal(found.view(np.uint32)[expected == expected], expected.view(np.uint32)[expected == expected])
    assert np.isnan(found[np.isnan(expected)]).all()


@pytest.mark.parametrize("half", TYPES)
def test_narrow(half: str) -> None:
    values = between()[: len(between()) // 16 * 16]
    (found,) = run(program(f"loop.narrow_half %a as {half}", "f32", "i16", len(values), 16), values)
    expected = torch.from_numpy(values).to(TYPES[half])
    back = torch.from_numpy(found.copy()).view(TYPES[half])
    assert torch.equal(back.nan_to_num(nan=7.5), expected.nan_to_num(nan=7.5))
    assert np.array_equal(found[values == 0] < 0, np.signbit(values[values == 0]))


@pytest.mark.parametrize("half", TYPES)
def test_in_c(half: str) -> None:
    """The same helpers, plain and in registers of 16, by all compilers."""
    p = Program()
    x = p.given(PATTERNS.view("float16" if half == "f16" else "uint16"), ELEMENTS[half])
    y = p.given(between(), f32)
    wide, narrow = TensorType(f32, (2**16,)), TensorType(ELEMENTS[half], between().shape)
    module = p.module(p.add(nn.CastOp(x, wide)), p.add(nn.CastOp(y, narrow)))
    three_way.check(module, *p.arrays, compilers=three_way.COMPILERS, loops=False)
