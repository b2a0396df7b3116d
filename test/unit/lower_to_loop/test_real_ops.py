# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on reals and conversions: numpy's meaning, the loop interpreter and C give the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import three_way
from loop_case import run, same_bits

from qcomp.backend.emit_c import emit_program
from qcomp.backend.target import GENERIC, Target
from qcomp.dialects.text import parse
from qcomp.errors import QcompError
from qcomp.interpreter.reference import elementwise

Array = np.ndarray
ROWS = 6
SPECIAL = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388607.5, -8388609.0, 1e-45, -1e-45, 1.1754944e-38, 3e38, -3e38,
     np.inf, -np.inf, np.nan, -np.nan, 2**31, -(2**31), 2147483520, 2**63, -(2**63), 1e30, 127.9, 2.0**24 + 2],
    np.float32,
)  # fmt: skip
WHOLE = np.array([0, 1, -1, 2**31 - 1, -(2**31), 1000, -77777, 2**24 + 1], np.int32)
WIDE = np.array([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, -77777, 2**24 + 1], np.int64)
ONE, TWO = np.float32(1), np.float32(2)
F32, I32, I64, I8 = "f32", "i32", "i64", "i8"


@dataclass(frozen=True)
class Case:
    """An op in text with {f32} and its like for types, its operands' types, the result's, and the numpy meaning."""

    text: str
    operands: tuple[str, ...]
    result: str
    meaning: Callable[..., Array]
    scalar_only: bool = False


def halves(rows: Array, add: bool) -> Array:
    """The definition of loop.reduce, element by element."""
    found: list[Array] = []
    for row in rows:
        values = list(row)
        while len(values) > 1:
            half = len(values) // 2
            pairs = zip(values[:half], values[half:], strict=True)
            values = [a + b if add else elementwise.maximum(b, a) for a, b in pairs]
        found.append(values[0])
    return np.array(found, rows.dtype)


def compare(text: str, meaning: Callable[..., Array], kind: str = F32) -> Case:
    """A comparison that chooses between 1.0 and 2.0."""
    body = f'%p = loop.compare "{text}", %a, %b : {{{kind}}} -> {{i1}}\n'
    body += "%r = loop.select %p, %one, %two : {i1}, {f32}"
    return Case(body, (kind, kind), F32, lambda a, b: np.where(meaning(a, b), ONE, TWO), kind == I64)


CASES = [
    *(
        compare(name, f)
        for name, f in (
            ("eq", np.equal),
            ("ne", np.not_equal),
            ("lt", np.less),
            ("le", np.less_equal),
            ("gt", np.greater),
            ("ge", np.greater_equal),
        )
    ),
    *(
        compare(name, f, I32)
        for name, f in (("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("ge", np.greater_equal))
    ),
    compare("le", np.less_equal, I64),
    Case(
        '%p = loop.compare "lt", %a, %b : {f32} -> {i1}\n%r = loop.select %p, %a, %c : {i1}, {f32}',
        (F32, F32, F32),
        F32,
        lambda a, b, c: np.where(a < b, a, c),
    ),
    Case(
        '%p = loop.compare "gt", %a, %b : {i32} -> {i1}\n%r = loop.select %p, %a, %b : {i1}, {i32}',
        (I32, I32),
        I32,
        np.maximum,
    ),
    Case(
        '%p = loop.compare "lt", %a, %b : {f32} -> {i1}\n%q = loop.compare "gt", %c, %b : {f32} -> {i1}\n'
        "%s = arith.ori %p, %q : {i1}\n%r = loop.select %s, %a, %b : {i1}, {f32}",
        (F32, F32, F32),
        F32,
        lambda a, b, c: np.where((a < b) | (c > b), a, b),
    ),
    Case("%r = loop.maximum %a, %b : {f32}", (F32, F32), F32, elementwise.maximum),
    Case("%r = loop.minimum %a, %b : {f32}", (F32, F32), F32, elementwise.minimum),
    Case("%r = loop.truncate %a : {f32} -> {i32}", (F32,), I32, lambda a: elementwise.cast_to(a, np.dtype(np.int32))),
    Case(
        "%r = loop.truncate %a : {f32} -> {i64}",
        (F32,),
        I64,
        lambda a: elementwise.cast_to(a, np.dtype(np.int64)),
        True,
    ),
    Case("%r = loop.to_float %a : {i64} -> {f32}", (I64,), F32, lambda a: a.astype(np.float32), True),
    Case("%r = arith.negf %a : {f32}", (F32,), F32, np.negative),
    Case("%r = math.absf %a : {f32}", (F32,), F32, np.abs),
    Case("%r = math.sqrt %a : {f32}", (F32,), F32, np.sqrt),
    Case("%r = math.roundeven %a : {f32}", (F32,), F32, np.rint),
    Case("%r = math.copysign %a, %b : {f32}", (F32, F32), F32, np.copysign),
    Case("%r = arith.divf %a, %b : {f32}", (F32, F32), F32, np.divide),
    Case("%r = arith.bitcast %a : {f32} to {i32}", ("number",), I32, lambda a: a.view(np.int32)),
    Case("%r = arith.bitcast %a : {i32} to {f32}", (I32,), F32, lambda a: a.view(np.float32)),
    Case("%r = arith.shrsi %a, %b : {i32}", (I32, "shift"), I32, lambda a, b: a >> b),
    Case("%r = arith.andi %a, %b : {i32}", (I32, I32), I32, lambda a, b: a & b),
    Case("%r = arith.xori %a, %b : {i32}", (I32, I32), I32, lambda a, b: a ^ b),
    Case("%r = arith.addi %a, %b : {i32}", (I32, I32), I32, lambda a, b: a + b),
    Case("%r = arith.subi %a, %b : {i32}", (I32, I32), I32, lambda a, b: a - b),
    Case("%r = arith.muli %a, %b : {i32}", (I32, I32), I32, lambda a, b: a * b),
    Case("%r = arith.muli %a, %b : {i64}", (I64, I64), I64, lambda a, b: a * b, True),
    Case("%r = arith.trunci %a : {i32} to {i8}", (I32,), I8, lambda a: a.astype(np.int8), True),
    Case(
        '%p = loop.compare "ne", %a, %b : {i32} -> {i1}\n%r = arith.extui %p : {i1} to {i32}',
        (I32, I32),
        I32,
        lambda a, b: (a != b).astype(np.int32),
        True,
    ),
    Case("%r = arith.trunci %a : {i64} to {i32}", (I64,), I32, lambda a: a.astype(np.int32), True),
    Case("%r = arith.extsi %a : {i32} to {i64}", (I32,), I64, lambda a: a.astype(np.int64), True),
    Case(
        "%r = loop.scale %a, %b : {f32}",
        ("moderate", "exponent"),
        F32,
        lambda a, b: np.where(
            np.isnan(b), np.float32(np.nan), np.ldexp(a, np.where(np.isnan(b), 0, b).astype(np.int32))
        ),
    ),
]
ROWS_TO_ONE = [
    Case(f'%r = loop.reduce "{name}", %a : {{{kind}}} -> {kind}', (kind,), kind, partial(halves, add=name == "add"))
    for name in ("add", "max")
    for kind in (F32, I32)
]
TILES_ONLY = [
    Case("%r = loop.fill %a {{first = 5 : i64, value = 0xFF800000 : f32}} : {f32}", (F32,), F32,
         lambda a: np.where(np.arange(16) < 5, a, np.float32(-np.inf))),
    Case("%r = loop.fill %a {{first = 15 : i64, value = -7 : i32}} : {i32}", (I32,), I32,
         lambda a: np.where(np.arange(16) < 15, a, np.int32(-7))),
]  # fmt: skip


def pool(name: str, seed: int, shape: tuple[int, ...]) -> Array:
    rng = np.random.default_rng(seed)
    match name:
        case "shift":
            return rng.choice(np.array([0, 1, 7, 31], np.int32), shape)
        case "moderate":
            values = np.concatenate([rng.uniform(0.5, 2, 20), [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 2.0**20]])
            return rng.choice(values.astype(np.float32), shape)
        case "exponent":
            return rng.choice(np.array([*range(-160, 140, 3), np.nan], np.float32), shape)
        case "i32" | "i64":
            return rng.choice(WHOLE if name == "i32" else WIDE, shape)
        case _:
            values = np.concatenate([SPECIAL, rng.integers(0, 2**32, 60, dtype=np.uint32).view(np.float32)])
            return rng.choice(values[~np.isnan(values)] if name == "number" else values, shape)


def program(case: Case, lanes: int | None, reduces: bool = False) -> str:
    """main calls a kernel that takes the operands row by row."""
    names = [{"shift": "i32"}.get(name, name if name in (I32, I64) else F32) for name in case.operands]
    size = 1 if lanes is None else lanes
    types = {name: name if lanes is None else f"vector<{lanes}x{name}>" for name in (F32, I32, I64, I8, "i1")}
    over = "" if lanes is None else " over (1)"
    wide = 1 if reduces else size
    out = (f"memref<{ROWS}x{wide}x{case.result}>", case.result if reduces else types[case.result])
    args = [f"%m{i}: memref<{ROWS}x{size}x{name}>" for i, name in enumerate(names)] + [f"%out: {out[0]}"]
    loads = "\n".join(
        f"%{'abc'[i]} = loop.load %m{i}[%i, 0]{over} : memref<{ROWS}x{size}x{name}>, {types[name]}"
        for i, name in enumerate(names)
    )
    splat = "{}" if lanes is None else "dense<{}>"
    constants = "\n".join(
        f"%{name} = arith.constant {splat.format(value)} : {types[F32]}" for name, value in (("one", 1.0), ("two", 2.0))
    )
    values = ", ".join(arg.split(":")[0] for arg in args)
    kinds = ", ".join(arg.split(": ")[1] for arg in args)
    return f"""
func.func private @kernel({", ".join(args)}) {{
  loop.for %i = [0] to [{ROWS}] parallel {{
    {loads}
    {constants}
    {case.text.format(**types)}
    loop.store %r, %out[%i, 0]{"" if reduces else over} : {out[0]}, {out[1]}
  }}
  func.return
}}
func.func @main({", ".join(args)} {{qcomp.output}}) {{
  func.call @kernel({values}) : ({kinds}) -> ()
  func.return
}}"""


def run_c(text: str, target: Target, command: str, inputs: list[Array], like: Array) -> Array:
    """The output of the program by C."""
    emitted = emit_program(parse(text + "\n"), target, "net")
    with tempfile.TemporaryDirectory() as folder:
        library = three_way.build(emitted, command, Path(folder))
        return three_way.run_c(emitted, library, inputs, [like])[0]


def cases() -> list[tuple[Case, int | None, bool]]:
    found = [(case, lanes, False) for case in CASES for lanes in ((None,) if case.scalar_only else (None, 16))]
    found += [(case, 16, False) for case in TILES_ONLY]
    return found + [(case, 16, True) for case in ROWS_TO_ONE]


@pytest.mark.parametrize(
    "case, lanes, reduces", cases(), ids=lambda v: v.text.replace("\n", ";")[:40] if isinstance(v, Case) else str(v)
)
def test_numpy_loops_and_c(case: Case, lanes: int | None, reduces: bool):
    shape = (ROWS, lanes or 1)
    inputs = [pool(name, len(case.text) + i, shape) for i, name in enumerate(case.operands)]
    with np.errstate(all="ignore"):
        expected = np.asarray(case.meaning(*inputs)).reshape(ROWS, -1)
    text = program(case, lanes, reduces)
    (got,) = run(text, *inputs)
    assert same_bits(got, expected)
    for target in three_way.TARGETS:
        found = run_c(text, target, "gcc -O2", inputs, expected)
        assert same_bits(found, expected), (target.name, found, expected)


@pytest.mark.parametrize("command", ["gcc -O2"])
def test_square_root_of_all_mantissas(command: str):
    """The root without libm is correctly rounded: every 251st float, and all denormals of few bits."""
    bits = np.arange(0, 0x7F800000, 251, dtype=np.uint32)
    x = np.concatenate([bits.view(np.float32), np.arange(1, 4096, dtype=np.uint32).view(np.float32)])
    x = np.resize(x, x.size // ROWS * ROWS).reshape(ROWS, -1)
    case = next(case for case in CASES if "math.sqrt" in case.text)
    text = program(case, None).replace(f"{ROWS}x1x", f"{x.size}x1x").replace(f"[{ROWS}]", f"[{x.size}]")
    expected = np.sqrt(x.reshape(-1, 1))
    assert same_bits(run_c(text, GENERIC, command, [x], expected), expected)


def test_broken_promises_of_scale():
    text = program(next(case for case in CASES if "loop.scale" in case.text), None)
    good = np.ones((ROWS, 1), np.float32)
    for value, exponent in ((2.0**21, 0.0), (1e-7, 0.0), (1.0, 0.5), (1.0, 201.0)):
        with pytest.raises(QcompError, match=r"loop\.scale promises"):
            run(text, good * np.float32(value), good * np.float32(exponent))
