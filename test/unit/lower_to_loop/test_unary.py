# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unary functions: all levels in bits on floats with specials, tables between codes, close to torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import three_way
from hypothesis import given, settings
from hypothesis import strategies as st
from layers import Program, activation, kind
from loop_case import same_bits
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    UnknownLoc,
    f32,
)
from xdsl.ir import SSAValue

from qcomp.dialects import nn, quant
from qcomp.dialects.quant import Encoding
from qcomp.interpreter import interpret
from qcomp.interpreter.loop import interpret_loop
from qcomp.interpreter.reference import transcendental as reference
from qcomp.transforms.lower_to_loop import transcendental
from qcomp.transforms.lower_to_loop.builder import finish, kernel
from qcomp.transforms.lower_to_loop.reals import Reals

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-45, 1.1754944e-38, 3.4e38, -3.4e38, 1e10, -1e10, 0.5, -0.7, 3,
     -3, 6, 0.95, 0.9499999, 0.7, -0.70000005, 88.7, 88.73, 89, 90, -87.3, -87.4, -103.2, -103.9, -104, -105, 4, 5.6,
     -5.7, 20],
    np.float32,
)  # fmt: skip
MAKERS: dict[str, Any] = {
    "relu": nn.ReluOp, "neg": nn.NegOp, "abs": nn.AbsOp, "sqrt": nn.SqrtOp, "rsqrt": nn.RsqrtOp, "exp": nn.ExpOp,
    "tanh": nn.TanhOp, "erf": nn.ErfOp, "sigmoid": nn.SigmoidOp, "silu": nn.SiluOp, "hardswish": nn.HardswishOp,
    "hardsigmoid": nn.HardsigmoidOp,
    "gelu": lambda x, *t: nn.GeluOp(x, *t, approximate=StringAttr("none")),
    "gelu_tanh": lambda x, *t: nn.GeluOp(x, *t, approximate=StringAttr("tanh")),
    "leaky_relu": lambda x, *t: nn.LeakyReluOp(x, *t, negative_slope=FloatAttr(0.01, f32)),
    "clamp": lambda x, *t: nn.ClampOp.of(x, -0.75, 6.0, *t),
}  # fmt: skip
A, B, C = activation(0.02, 114), activation(0.031, 7), activation(0.05, 99)
SIGNED, NARROW = Encoding.make(0.07, -11, qmin=-127), Encoding.make(0.043, 5, qmin=-100, qmax=90)


def floats(count: int, seed: int) -> np.ndarray:
    """Normal numbers, any bit patterns and the specials, `count` of them."""
    rng = np.random.default_rng(seed)
    some = rng.standard_normal(count).astype(np.float32) * 4
    some[::3] = rng.integers(0, 2**32, some[::3].size, dtype=np.uint32).view(np.float32)
    some[: len(SPECIAL)] = SPECIAL[:count]
    return some


def every_function(p: Program, x: SSAValue) -> list[SSAValue]:
    return [p.add(make(x)) for make in MAKERS.values()]


def test_floats_by_all_compilers() -> None:
    """Full registers, a rest, and scalars; warnings are errors in test_c_is_free_of_warnings."""
    p = Program(1)
    x = p.input((1027,))
    p.arrays[0][...] = floats(1027, 2)
    three_way.check(p.module(*every_function(p, x)), *p.arrays, compilers=three_way.COMPILERS)


@pytest.mark.parametrize("shape", [(1,), (), (3, 1), (2, 3, 5, 7), (1, 17, 2, 3)])
def test_float_shapes(shape: tuple[int, ...]) -> None:
    p = Program(3)
    x = p.input(shape)
    results = [p.add(MAKERS[name](x)) for name in ("tanh", "gelu", "sqrt")]
    three_way.check(p.module(*results), *p.arrays)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 19), min_size=1, max_size=4), st.sampled_from(sorted(MAKERS)))
def test_any_shape(shape: list[int], name: str) -> None:
    p = Program(len(shape))
    x, q = p.input(shape), p.input(shape, A)
    results = [p.add(MAKERS[name](x)), p.add(MAKERS[name](q, kind(shape, SIGNED)))]
    three_way.check(p.module(*results), *p.arrays)


@pytest.mark.parametrize("name", MAKERS)
def test_close_to_torch(name: str) -> None:
    p = Program(4)
    x = p.input((5001,))
    module = p.module(p.add(MAKERS[name](x)))
    values = np.concatenate([np.linspace(-12, 12, 4001), np.linspace(-95, 85, 1000)]).astype(np.float32)
    ours, torchs = interpret(module, values), interpret(module, values, evaluator="torch")
    np.testing.assert_allclose(ours[0], torchs[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("source, target", [(A, C), (A, SIGNED), (SIGNED, B), (NARROW, A), (SIGNED, NARROW)])
def test_tables(source: Encoding, target: Encoding) -> None:
    """Every code through every function, between encodings of unlike signs and ranges."""
    p = Program(5)
    codes = np.arange(source.qmin, source.qmax + 1).astype(source.dtype)
    q = p.input((codes.size,), source)
    p.arrays[0] = codes
    results = [p.add(make(q, kind((codes.size,), target))) for make in MAKERS.values()]
    results += [p.add(nn.ReluOp(q)), p.add(nn.ClampOp.of(q, -0.5, 0.6)), p.add(quant.RequantizeOp(q, target))]
    three_way.check(p.module(*results), *p.arrays, compilers=("gcc -O0", "gcc -O3 -march=native"))


@pytest.mark.parametrize("shape", [(2, 37, 3, 5), (1, 3, 8, 65), (200,), (7, 97), (1, 64, 2, 2)])
def test_tables_in_all_layouts(shape: tuple[int, ...]) -> None:
    """Row-major arguments into channels-last buffers and back, registers of 64, 32 and 16 bytes and a rest."""
    p = Program(6)
    q = p.input(shape, A)
    first = p.add(nn.TanhOp(q, kind(shape, B)))
    results = [p.add(nn.SiluOp(first, kind(shape, C))), p.add(nn.ReluOp(first, kind(shape, B)))]
    three_way.check(p.module(*results), *p.arrays)


def test_mixed_operands() -> None:
    """Codes in and reals out, and the other way round."""
    p = Program(7)
    q, x = p.input((2, 61), A), p.input((2, 61))
    p.arrays[1].reshape(-1)[:30] = SPECIAL[:30]
    results = [p.add(MAKERS[name](q, kind((2, 61)))) for name in ("gelu", "sqrt", "leaky_relu")]
    results += [
        p.add(MAKERS[name](x, kind((2, 61), target))) for name in ("tanh", "exp", "rsqrt") for target in (A, SIGNED)
    ]
    three_way.check(p.module(*results), *p.arrays)


def test_logarithm() -> None:
    """No op takes it yet: its loop form against its reference, on all exponents."""
    values = np.concatenate([floats(1000, 8), np.geomspace(1e-45, 3e38, 1000).astype(np.float32)])
    kinds = [("x", MemRefType(f32, (2000,))), ("y", MemRefType(f32, (2000,)))]
    for lanes in (1, 16):
        func, b, (x, y) = kernel("main", kinds, UnknownLoc())
        with b.loop(0, 2000, lanes) as nest:
            shape = () if lanes == 1 else (lanes,)
            over = (0,) if shape else ()
            b.store(transcendental.log(Reals(b, shape), b.load(x, [nest.index], shape, over)), y, [nest.index], over)
        finish(func).arg_attrs = ArrayAttr([DictionaryAttr({}), DictionaryAttr({"qcomp.output": UnitAttr()})])
        (found,) = interpret_loop(ModuleOp([func]), [values])
        assert same_bits(found, reference.log(values))
