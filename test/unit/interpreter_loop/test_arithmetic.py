# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every arithmetic op of the loop level against numpy, on tiles and scalars, in parallel and in plain loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from loop_case import run, same_bits
from numpy.typing import NDArray

ROWS, SHAPE = 5, (3, 7)
Array = NDArray
I8 = np.array([0, 1, -1, 127, -128, 77, -3], np.int8)
I32 = np.array([0, 1, -1, 2**31 - 1, -(2**31), 1000, -77777, 2**24 + 1], np.int32)
F32 = np.array(
    [
        0.0,
        -0.0,
        1.5,
        2.5,
        -2.5,
        0.1,
        3e38,
        -3e38,
        1e-45,
        np.inf,
        -np.inf,
        np.nan,
        2**22,
        2**22 + 1,
        -(2**22) - 1,
        2**22 - 1.5,
        -(2**31),
    ],
    np.float32,
)
POOLS = {
    "i8": I8,
    "i32": I32,
    "f32": F32,
    "shift": np.array([0, 1, 7, 31], np.int32),
    "f32 small": F32[[*range(6), 12, 15]],
}


@dataclass(frozen=True)
class Case:
    """An op: text with {t...} for types and %a, %b, %c for operands; operand pools; the numpy meaning."""

    text: str
    operands: tuple[str, ...]
    result: str
    meaning: Callable[..., Array]


def u(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def half_even(x: Array, nan: int = 0) -> Array:
    values = [nan if np.isnan(v) else round(min(max(float(v), -(2.0**22)), 2.0**22)) for v in x.ravel()]
    return np.array(values, np.int32).reshape(x.shape)


def maximum(a: Array, b: Array) -> Array:
    """maximumf element by element, from its definition."""
    pairs = zip(a.ravel(), b.ravel(), strict=True)
    values = [
        np.float32(np.nan) if p != p or q != q else max((p, q), key=lambda v: (v, not np.signbit(v))) for p, q in pairs
    ]
    return np.array(values, np.float32).reshape(a.shape)


A, B, C = "{i32}", "{f32}", "{i8}"
CASES = [
    Case("arith.addi %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: a + b),
    Case("arith.subi %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: a - b),
    Case("arith.muli %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: a * b),
    Case("arith.addi %a, %b : {i8}", ("i8", "i8"), "i8", lambda a, b: a + b),
    Case("arith.maxsi %a, %b : {i32}", ("i32", "i32"), "i32", np.maximum),
    Case("arith.minsi %a, %b : {i8}", ("i8", "i8"), "i8", np.minimum),
    Case("arith.maxui %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: np.maximum(u(a), u(b)).view(np.int32)),
    Case("arith.minui %a, %b : {i8}", ("i8", "i8"), "i8", lambda a, b: np.minimum(u(a), u(b)).view(np.int8)),
    Case("arith.shli %a, %b : {i32}", ("i32", "shift"), "i32", lambda a, b: a << b),
    Case("arith.shrsi %a, %b : {i32}", ("i32", "shift"), "i32", lambda a, b: a >> b),
    Case("arith.shrui %a, %b : {i32}", ("i32", "shift"), "i32", lambda a, b: (u(a) >> u(b)).view(np.int32)),
    Case("arith.andi %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: a & b),
    Case("arith.ori %a, %b : {i32}", ("i32", "i32"), "i32", lambda a, b: a | b),
    Case("arith.xori %a, %b : {i8}", ("i8", "i8"), "i8", lambda a, b: a ^ b),
    Case("arith.addf %a, %b : {f32}", ("f32", "f32"), "f32", lambda a, b: a + b),
    Case("arith.subf %a, %b : {f32}", ("f32", "f32"), "f32", lambda a, b: a - b),
    Case("arith.mulf %a, %b : {f32}", ("f32", "f32"), "f32", lambda a, b: a * b),
    Case("arith.divf %a, %b : {f32}", ("f32", "f32"), "f32", lambda a, b: a / b),
    Case("arith.negf %a : {f32}", ("f32",), "f32", lambda a: -a),
    Case("arith.maximumf %a, %b : {f32}", ("f32", "f32"), "f32", maximum),
    Case("arith.minimumf %a, %b : {f32}", ("f32", "f32"), "f32", lambda a, b: -maximum(-a, -b)),
    Case("math.absf %a : {f32}", ("f32",), "f32", np.abs),
    Case("math.sqrt %a : {f32}", ("f32",), "f32", np.sqrt),
    Case("math.roundeven %a : {f32}", ("f32",), "f32", np.rint),
    Case("math.floor %a : {f32}", ("f32",), "f32", np.floor),
    Case("math.ceil %a : {f32}", ("f32",), "f32", np.ceil),
    Case("math.trunc %a : {f32}", ("f32",), "f32", np.trunc),
    Case("math.copysign %a, %b : {f32}", ("f32", "f32"), "f32", np.copysign),
    Case("loop.extend %a : {i8} -> {i32}", ("i8",), "i32", lambda a: a.astype(np.int32)),
    Case("loop.extend %a {{unsigned}} : {i8} -> {i32}", ("i8",), "i32", lambda a: u(a).astype(np.int32)),
    Case("loop.to_float %a : {i32} -> {f32}", ("i32",), "f32", lambda a: a.astype(np.float32)),
    Case("loop.round %a : {f32} -> {i32}", ("f32",), "i32", half_even),
    Case("loop.round %a {{nan = -7 : i64}} : {f32} -> {i32}", ("f32",), "i32", lambda a: half_even(a, -7)),
    Case("loop.round %a {{bounded}} : {f32} -> {i32}", ("f32 small",), "i32", half_even),
    Case(
        "loop.narrow %a {{min = -128 : i64, max = 99 : i64}} : {i32} -> {i8}", ("i32",), "i8",
        lambda a: np.clip(a, -128, 99).astype(np.int8),
    ),
    Case(
        "loop.narrow %a {{min = 3 : i64, max = 255 : i64}} : {i32} -> {i8}", ("i32",), "i8",
        lambda a: np.clip(a, 3, 255).astype(np.uint8).view(np.int8),
    ),
    Case(
        "loop.clamp %a {{min = 0.0 : f32, max = 6.0 : f32}} : {f32} -> {f32}", ("f32",), "f32",
        lambda a: np.where(a < 0, np.float32(0), np.where(a > 6, np.float32(6), a)),
    ),
    Case(
        "loop.multiply_add %a, %b, %c : {f32}, {f32} -> {f32}", ("f32", "f32", "f32"), "f32",
        lambda a, b, c: a + b * c,
    ),
    Case(
        "loop.multiply_add %a, %b, %c : {i8}, {i8} -> {i32}", ("i32", "i8", "i8"), "i32",
        lambda a, b, c: a + b.astype(np.int32) * c,
    ),
    Case(
        "loop.multiply_add %a, %b, %c {{lhs_unsigned}} : {i8}, {i8} -> {i32}", ("i32", "i8", "i8"), "i32",
        lambda a, b, c: a + u(b).astype(np.int32) * c,
    ),
    Case(
        "loop.multiply_add %a, %b, %c {{lhs_unsigned, rhs_unsigned}} : {i8}, {i8} -> {i32}", ("i32", "i8", "i8"), "i32",
        lambda a, b, c: a + u(b).astype(np.int32) * u(c),
    ),
]  # fmt: skip


def operands(case: Case, shape: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(len(case.text))
    return [rng.choice(POOLS[pool], shape) for pool in case.operands]


def program(case: Case, tile: tuple[int, ...], kind: str) -> str:
    """Row by row: load the operands, apply the op, store the result."""
    dims, places = "x".join(map(str, (ROWS, *tile))), ", ".join(str(axis + 1) for axis in range(len(tile)))
    over = f" over ({places})" if tile else ""
    types = {name: f"vector<{'x'.join(map(str, tile))}x{name}>" if tile else name for name in ("i8", "i32", "f32")}
    names = [pool.split()[0].replace("shift", "i32") for pool in case.operands]
    zeros = ", 0" * len(tile)
    args = "".join(f"%m{i}: memref<{dims}x{name}>, " for i, name in enumerate(names))
    loads = "\n".join(
        f"%{'abc'[i]} = loop.load %m{i}[%i{zeros}]{over} : memref<{dims}x{name}>, {types[name]}"
        for i, name in enumerate(names)
    )
    return f"""
func.func @main({args}%out: memref<{dims}x{case.result}> {{qcomp.output}}) {{
  loop.for %i = [0] to [{ROWS}] {kind} {{
    {loads}
    %r = {case.text.format(**types)}
    loop.store %r, %out[%i{zeros}]{over} : memref<{dims}x{case.result}>, {types[case.result]}
  }}
  func.return
}}"""


@pytest.mark.parametrize("tile", [SHAPE, (4,), ()], ids=["tile", "row", "scalar"])
@pytest.mark.parametrize("case", CASES, ids=[case.text.split(" :")[0].replace("{{", "{") for case in CASES])
def test_elementwise(case: Case, tile: tuple[int, ...]):
    inputs = operands(case, (ROWS, *tile))
    with np.errstate(all="ignore"):
        expected = np.asarray(case.meaning(*inputs))
    for kind in ("parallel", ""):
        (got,) = run(program(case, tile, kind), *inputs)
        assert same_bits(got, expected)


COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b, "ult": lambda a, b: u(a) < u(b),
    "ule": lambda a, b: u(a) <= u(b), "ugt": lambda a, b: u(a) > u(b), "uge": lambda a, b: u(a) >= u(b),
}  # fmt: skip
ORDERED = {
    "eq": np.equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}
FLOAT_COMPARISONS = {
    "false": lambda a, b: np.zeros(a.shape, bool), "true": lambda a, b: np.ones(a.shape, bool),
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)), "uno": lambda a, b: np.isnan(a) | np.isnan(b),
    **{f"o{name}": lambda a, b, f=f: f(a, b) & ~(np.isnan(a) | np.isnan(b)) for name, f in ORDERED.items()},
    **{f"u{name}": lambda a, b, f=f: f(a, b) | np.isnan(a) | np.isnan(b) for name, f in ORDERED.items()},
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_compare_and_select(name: str):
    rng = np.random.default_rng(1)
    a, b = rng.choice(I32, (2, 40))
    case = _scalar_select(f"arith.cmpi {name}, %a, %b : i32", "i32")
    assert same_bits(run(case, a, b)[0], np.where(COMPARISONS[name](a, b), a, b))


@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
def test_compare_floats_and_select(name: str):
    rng = np.random.default_rng(2)
    a, b = rng.choice(F32, (2, 40))
    case = _scalar_select(f"arith.cmpf {name}, %a, %b : f32", "f32")
    assert same_bits(run(case, a, b)[0], np.where(FLOAT_COMPARISONS[name](a, b), a, b))


def _scalar_select(comparison: str, element: str) -> str:
    memref = f"memref<40x{element}>"
    return f"""
func.func @main(%x: {memref}, %y: {memref}, %out: {memref} {{qcomp.output}}) {{
  loop.for %i = [0] to [40] parallel {{
    %a = loop.load %x[%i] : {memref}, {element}
    %b = loop.load %y[%i] : {memref}, {element}
    %c = {comparison}
    %r = arith.select %c, %a, %b : {element}
    loop.store %r, %out[%i] : {memref}, {element}
  }}
  func.return
}}"""


def test_select_of_tiles_by_a_scalar():
    x = np.arange(12, dtype=np.int32).reshape(4, 3) - 5
    (got,) = run(
        """
func.func @main(%x: memref<4x3xi32>, %out: memref<4x3xi32> {qcomp.output}) {
  %zero = arith.constant dense<[7, 8, 9]> : vector<3xi32>
  %limit = arith.constant 0 : i32
  loop.for %i = [0] to [4] parallel {
    %v = loop.load %x[%i, 0] over (1) : memref<4x3xi32>, vector<3xi32>
    %first = loop.load %x[%i, 0] : memref<4x3xi32>, i32
    %c = arith.cmpi slt, %first, %limit : i32
    %r = arith.select %c, %zero, %v : vector<3xi32>
    loop.store %r, %out[%i, 0] over (1) : memref<4x3xi32>, vector<3xi32>
  }
  func.return
}""",
        x,
    )
    assert same_bits(got, np.where(x[:, :1] < 0, np.array([7, 8, 9], np.int32), x))


def test_division_of_integers():
    a = np.array([7, -7, 7, -7, 6, -6, 0], np.int32)
    b = np.array([2, 2, -2, -2, 3, 3, 5], np.int32)
    ops = {
        "divsi": [3, -3, -3, 3, 2, -2, 0], "remsi": [1, -1, 1, -1, 0, 0, 0],
        "floordivsi": [3, -4, -4, 3, 2, -2, 0], "ceildivsi": [4, -3, -3, 4, 2, -2, 0],
    }  # fmt: skip
    for name, expected in ops.items():
        text = _scalar_select("arith.cmpi eq, %a, %a : i32", "i32").replace("40", "7")
        text = text.replace("arith.select %c, %a, %b", f"arith.{name} %a, %b")
        assert run(text, a, b)[0].tolist() == expected


def test_casts_of_scalars():
    x = np.array([5, -3, 127, -128, 0], np.int8)
    (got, unsigned, wide) = run(
        """
func.func @main(%x: memref<5xi8>, %a: memref<5xf32> {qcomp.output}, %b: memref<5xi32> {qcomp.output},
                %c: memref<5xi64> {qcomp.output}) {
  loop.for %i = [0] to [5] parallel {
    %v = loop.load %x[%i] : memref<5xi8>, i8
    %s = arith.extsi %v : i8 to i32
    %f = arith.sitofp %s : i32 to f32
    %bits = arith.bitcast %f : f32 to i32
    %f2 = arith.bitcast %bits : i32 to f32
    %u = arith.extui %v : i8 to i32
    %w = arith.extsi %s : i32 to i64
    %d = arith.extf %f : f32 to f64
    %t = arith.truncf %d : f64 to f32
    %tt = arith.trunci %w : i64 to i32
    loop.store %t, %a[%i] : memref<5xf32>, f32
    loop.store %u, %b[%i] : memref<5xi32>, i32
    loop.store %w, %c[%i] : memref<5xi64>, i64
  }
  func.return
}""",
        x,
    )
    assert same_bits(got, x.astype(np.float32))
    assert same_bits(unsigned, x.view(np.uint8).astype(np.int32))
    assert same_bits(wide, x.astype(np.int64))


def test_float_constants_and_sums_stay_in_single_precision():
    (got,) = run(
        """
func.func @main(%out: memref<2xf32> {qcomp.output}) {
  %a = arith.constant 0.1 : f32
  %b = arith.constant dense<0.2> : vector<2xf32>
  %av = loop.broadcast %a : f32 to vector<2xf32>
  %s = arith.addf %av, %b : vector<2xf32>
  %m = arith.mulf %s, %av : vector<2xf32>
  loop.store %m, %out[0] over (0) : memref<2xf32>, vector<2xf32>
  func.return
}"""
    )
    expected = (np.float32(0.1) + np.float32(0.2)) * np.float32(0.1)
    assert same_bits(got, np.array([expected] * 2, np.float32))


def test_lookup_reads_the_byte_as_unsigned():
    table = np.random.default_rng(5).integers(-128, 128, 256).astype(np.int8)
    x = np.arange(-128, 128).astype(np.int8).reshape(8, 32)
    (got, one) = run(
        """
func.func @main(%t: memref<256xi8>, %x: memref<8x32xi8>, %out: memref<8x32xi8> {qcomp.output, qcomp.unsigned},
                %one: memref<1xi8> {qcomp.output}) {
  loop.for %i = [0] to [8] parallel {
    %v = loop.load %x[%i, 0] over (1) : memref<8x32xi8>, vector<32xi8>
    %r = loop.lookup %t[%v] : memref<256xi8>, vector<32xi8> -> vector<32xi8>
    loop.store %r, %out[%i, 0] over (1) : memref<8x32xi8>, vector<32xi8>
  }
  %s = loop.load %x[0, 3] : memref<8x32xi8>, i8
  %r = loop.lookup %t[%s] : memref<256xi8>, i8 -> i8
  loop.store %r, %one[0] : memref<1xi8>, i8
  func.return
}""",
        table,
        x,
    )
    assert same_bits(got, table[x.view(np.uint8)].view(np.uint8))
    assert one.tolist() == [table[131]]


def test_lookup_in_16_entries_takes_the_lowest_four_bits():
    table = np.random.default_rng(5).standard_normal(16).astype(np.float32)
    x = np.random.default_rng(6).integers(-(2**31), 2**31, (3, 16)).astype(np.int32)
    (got,) = run(
        """
func.func @main(%t: memref<16xf32>, %x: memref<3x16xi32>, %out: memref<3x16xf32> {qcomp.output}) {
  loop.for %i = [0] to [3] parallel {
    %v = loop.load %x[%i, 0] over (1) : memref<3x16xi32>, vector<16xi32>
    %r = loop.lookup %t[%v] : memref<16xf32>, vector<16xi32> -> vector<16xf32>
    loop.store %r, %out[%i, 0] over (1) : memref<3x16xf32>, vector<16xf32>
  }
  func.return
}""",
        table,
        x,
    )
    assert same_bits(got, table[x & 15])


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_broadcast_over_leading_dimensions(kind: str):
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    (got,) = run(
        f"""
func.func @main(%x: memref<5x2xf32>, %out: memref<5x3x4x2xf32> {{qcomp.output}}) {{
  loop.for %i = [0] to [5] {kind} {{
    %v = loop.load %x[%i, 0] over (1) : memref<5x2xf32>, vector<2xf32>
    %w = loop.broadcast %v : vector<2xf32> to vector<4x2xf32>
    %r = loop.broadcast %w : vector<4x2xf32> to vector<3x4x2xf32>
    %s = loop.load %x[%i, 1] : memref<5x2xf32>, f32
    %b = loop.broadcast %s : f32 to vector<3x4x2xf32>
    %p = arith.mulf %r, %b : vector<3x4x2xf32>
    loop.store %p, %out[%i, 0, 0, 0] over (1, 2, 3) : memref<5x3x4x2xf32>, vector<3x4x2xf32>
  }}
  func.return
}}""",
        x,
    )
    assert same_bits(got, np.broadcast_to((x * x[:, 1:])[:, None, None], (5, 3, 4, 2)))


CONTRACTIONS = [
    ((3, 2, 4), (5, 4), "", "i8"), ((3, 4), (2, 5, 4), "lhs_unsigned", "i8"), ((4,), (5, 4), "rhs_unsigned", "i8"),
    ((3, 300), (300,), "lhs_unsigned, rhs_unsigned", "i8"), ((3, 1), (2, 5, 1), "", "f32"), ((1,), (5, 1), "", "f32"),
]  # fmt: skip


@pytest.mark.parametrize("batched", ["both", "lhs", "rhs", "none"])
@pytest.mark.parametrize(("lhs", "rhs", "flags", "element"), CONTRACTIONS)
def test_contract(lhs: tuple[int, ...], rhs: tuple[int, ...], flags: str, element: str, batched: str):
    """Operands that depend on the parallel iteration and such that do not."""
    rng = np.random.default_rng(len(lhs) * 10 + len(rhs))
    sum_element = "i32" if element == "i8" else "f32"
    shape = (*lhs[:-1], *rhs[:-1])
    pool = POOLS[element] if element == "i8" else F32[2:6]
    a, b = rng.choice(pool, (3, *lhs)), rng.choice(pool, (3, *rhs))
    acc = rng.choice(I32 if element == "i8" else F32[2:6], (3, *shape))
    row = {"lhs": "%i" if batched in ("both", "lhs") else "2", "rhs": "%i" if batched in ("both", "rhs") else "1"}

    def access(name: str, index: str, sizes: tuple[int, ...], kind: str) -> str:
        over = f" over ({', '.join(str(axis + 1) for axis in range(len(sizes)))})" if sizes else ""
        text = "x".join(map(str, (*sizes, kind)))
        return f"%{name}[{index}{', 0' * len(sizes)}]{over} : memref<3x{text}>, {f'vector<{text}>' if sizes else kind}"

    kinds = ["x".join(map(str, (3, *sizes))) for sizes in (lhs, rhs, shape)]
    tiles = [f"vector<{'x'.join(map(str, (*sizes, element)))}>" for sizes in (lhs, rhs)]
    result = f"vector<{'x'.join(map(str, (*shape, sum_element)))}>" if shape else sum_element
    (got,) = run(
        f"""
func.func @main(%a: memref<{kinds[0]}x{element}>, %b: memref<{kinds[1]}x{element}>,
                %c: memref<{kinds[2]}x{sum_element}>, %out: memref<{kinds[2]}x{sum_element}> {{qcomp.output}}) {{
  loop.for %i = [0] to [3] parallel {{
    %p = loop.load {access("a", row["lhs"], lhs, element)}
    %q = loop.load {access("b", row["rhs"], rhs, element)}
    %s = loop.load {access("c", "%i", shape, sum_element)}
    %r = loop.contract %s, %p, %q {{{flags}}} : {tiles[0]}, {tiles[1]} -> {result}
    loop.store %r, {access("out", "%i", shape, sum_element)}
  }}
  func.return
}}""",
        a,
        b,
        acc,
    )
    left = a if batched in ("both", "lhs") else np.stack([a[2]] * 3)
    right = b if batched in ("both", "rhs") else np.stack([b[1]] * 3)
    if element == "i8":
        left = (u(left) if "lhs_unsigned" in flags else left).astype(np.int64)
        right = (u(right) if "rhs_unsigned" in flags else right).astype(np.int64)
    expected = [np.tensordot(x, y, axes=([-1], [-1])) for x, y in zip(left, right, strict=True)]
    assert same_bits(got, (acc + np.array(expected).astype(acc.dtype)).astype(acc.dtype))
