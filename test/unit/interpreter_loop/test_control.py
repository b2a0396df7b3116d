# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops, affine indices, calls."""

from __future__ import annotations

import numpy as np
import pytest
from loop_case import run, same_bits

from qcomp.dialects.text import parse
from qcomp.errors import QcompError
from qcomp.interpreter.loop import LoopProgram


def visits(loops: str, depth: int) -> list[tuple[int, ...]]:
    """The index tuples that `loops` (text with BODY) visit, in order."""
    names = ["%i", "%j", "%k"][:depth]
    stores = "\n".join(
        f"%c{axis} = arith.index_cast {name} : index to i32\n"
        f"loop.store %c{axis}, %out[{', '.join(names)}, {axis}] : memref<{'9x' * depth}{depth}xi32>, i32"
        for axis, name in enumerate(names)
    )
    (got,) = run(
        f"""
func.func @main(%out: memref<{"9x" * depth}{depth}xi32> {{qcomp.output}}) {{
  {loops.replace("BODY", stores)}
  func.return
}}"""
    )
    found = [tuple(place) for place in np.argwhere(got[..., 0] != np.int32(-842150451)).tolist()]
    assert all(tuple(got[place]) == place for place in found)
    return found


def test_bounds_are_the_largest_lower_and_the_least_upper():
    text = "loop.for %i = [0] to [5] {loop.for %j = [%i - 2, 0] to [%i + 2, 6, 4] step 2 {\nBODY\n}\n}"
    expected = [(i, j) for i in range(5) for j in range(max(i - 2, 0), min(i + 2, 6, 4), 2)]
    assert visits(text, 2) == expected


@pytest.mark.parametrize("kind", ["parallel", "unroll", ""])
def test_step_and_loops_without_iterations(kind: str):
    assert visits(f"loop.for %i = [1] to [9] step 3 {kind} {{\nBODY\n}}", 1) == [(1,), (4,), (7,)]
    assert visits(f"loop.for %i = [5] to [5] {kind} {{\nBODY\n}}", 1) == []
    assert visits(f"loop.for %i = [7] to [2] {kind} {{\nBODY\n}}", 1) == []


def test_nests_of_parallel_loops():
    text = """loop.for %i = [1] to [8] step 3 parallel {
      loop.for %j = [0] to [5] step 2 parallel {
        loop.for %k = [2] to [4] parallel {
          BODY
        }
      }
    }"""
    expected = [(i, j, k) for i in (1, 4, 7) for j in (0, 2, 4) for k in (2, 3)]
    assert visits(text, 3) == expected
    dependent = text.replace("[0] to [5] step 2", "[%i floordiv 2] to [%i + 1, 7]")
    expected = [(i, j, k) for i in (1, 4, 7) for j in range(i // 2, min(i + 1, 7)) for k in (2, 3)]
    assert visits(dependent, 3) == expected
    plain_between = text.replace("step 2 parallel", "step 2")
    expected = [(i, j, k) for i in (1, 4, 7) for j in (0, 2, 4) for k in (2, 3)]
    assert visits(plain_between, 3) == expected


def test_carried_values_swap():
    (got,) = run(
        """
func.func @main(%out: memref<2xi32> {qcomp.output}) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a, %b = loop.for %i = [0] to [10] iter (%p = %zero, %q = %one) : i32, i32 {
    %s = arith.addi %p, %q : i32
    loop.yield %q, %s : i32, i32
  }
  loop.store %a, %out[0] : memref<2xi32>, i32
  loop.store %b, %out[1] : memref<2xi32>, i32
  func.return
}"""
    )
    assert got.tolist() == [55, 89]


def test_carried_indices_and_loaded_indices():
    x = np.array([3, 0, 4, 1, 2], np.int32)
    (got,) = run(
        """
func.func @main(%next: memref<5xi32>, %out: memref<5xi32> {qcomp.output}) {
  %start = arith.constant 2 : index
  %end = loop.for %i = [0] to [5] iter (%at = %start) : index {
    %v = loop.load %next[%at] : memref<5xi32>, i32
    loop.store %v, %out[%i] : memref<5xi32>, i32
    %n = arith.index_cast %v : i32 to index
    loop.yield %n : index
  }
  func.return
}""",
        x,
    )
    expected, at = [], 2
    for _ in range(5):
        at = int(x[at])
        expected.append(at)
    assert got.tolist() == expected


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_a_plain_loop_that_carries_inside_a_parallel_one(kind: str):
    """The initial value is the same in all iterations, the carried one is not; one loop does not run at all."""
    x = np.arange(60, dtype=np.float32).reshape(20, 3) - 7
    (got, unmoved, index) = run(
        f"""
func.func @main(%x: memref<20x3xf32>, %out: memref<20x2x3xf32> {{qcomp.output}}, %b: memref<20x2xf32> {{qcomp.output}},
                %c: memref<20xi32> {{qcomp.output}}) {{
  %zero = arith.constant 0.5 : f32
  %base = arith.constant 4 : index
  loop.for %i = [0] to [20] {kind} {{
    %sum, %last = loop.for %j = [0] to [3] iter (%a = %zero, %at = %base) : f32, index {{
      %v = loop.load %x[%i, %j] : memref<20x3xf32>, f32
      %wide = loop.broadcast %a : f32 to vector<2x3xf32>
      loop.store %wide, %out[%i, 0, 0] over (1, 2) : memref<20x2x3xf32>, vector<2x3xf32>
      %s = arith.addf %a, %v : f32
      %n = affine.apply affine_map<(d0, d1)[s0] -> (d0 + d1 * 2 + s0 mod 4)> (%at, %j)[%i]
      loop.yield %s, %n : f32, index
    }}
    %same = loop.for %j = [3] to [3] iter (%a = %zero) : f32 {{
      %s = arith.addf %a, %sum : f32
      loop.yield %s : f32
    }}
    %row = loop.broadcast %same : f32 to vector<2xf32>
    loop.store %row, %b[%i, 0] over (1) : memref<20x2xf32>, vector<2xf32>
    %l = arith.index_cast %last : index to i32
    loop.store %l, %c[%i] : memref<20xi32>, i32
  }}
  func.return
}}""",
        x,
    )
    assert same_bits(got, np.broadcast_to((np.float32(0.5) + x[:, 0] + x[:, 1])[:, None, None], (20, 2, 3)))
    assert same_bits(unmoved, np.full((20, 2), 0.5, np.float32))
    assert index.tolist() == [4 + 6 + 3 * (i % 4) for i in range(20)]


def test_long_batches_are_cut():
    """140,000 scalar iterations do not fit one batch."""
    x = np.arange(140_000, dtype=np.int32)
    (got,) = run(
        """
func.func @main(%x: memref<140000xi32>, %out: memref<140000xi32> {qcomp.output}) {
  loop.for %i = [0] to [140000] parallel {
    %v = loop.load %x[139999 - %i] : memref<140000xi32>, i32
    loop.store %v, %out[%i] : memref<140000xi32>, i32
  }
  func.return
}""",
        x,
    )
    assert same_bits(got, x[::-1])


def test_functions_call_functions():
    text = """
func.func private @twice(%x: memref<3xi32>, %y: memref<3xi32>, %at: index, %n: i32) -> i32 {
  %v = loop.load %x[%at] : memref<3xi32>, i32
  %w = arith.muli %v, %n : i32
  loop.store %w, %y[%at] : memref<3xi32>, i32
  func.return %w : i32
}
func.func @main(%x: memref<3xi32>, %out: memref<3xi32> {qcomp.output}, %sum: memref<1xi32> {qcomp.output}) {
  %two = arith.constant 2 : i32
  %zero = arith.constant 0 : i32
  %t = memref.alloc() : memref<3xi32>
  %total = loop.for %i = [0] to [3] iter (%a = %zero) : i32 {
    %r = func.call @twice(%x, %t, %i, %two) : (memref<3xi32>, memref<3xi32>, index, i32) -> i32
    %r2 = func.call @twice(%t, %out, %i, %r) : (memref<3xi32>, memref<3xi32>, index, i32) -> i32
    %b = arith.addi %a, %r2 : i32
    loop.yield %b : i32
  }
  loop.store %total, %sum[0] : memref<1xi32>, i32
  memref.dealloc %t : memref<3xi32>
  func.return
}"""
    x = np.array([3, -5, 7], np.int32)
    (got, total) = run(text, x)
    assert got.tolist() == [4 * v * v for v in x]
    assert total.tolist() == [sum(4 * v * v for v in x)]
    program = LoopProgram(parse(text))
    assert program.function("twice") is program.function("twice"), "compiled once"


def test_integer_and_index_arithmetic_of_a_batch():
    (got,) = run(
        """
func.func @main(%out: memref<12xi32> {qcomp.output}) {
  %five = arith.constant 5 : index
  loop.for %i = [0] to [12] parallel {
    %m = affine.min affine_map<(d0) -> (d0 * 2, 9)> (%i)
    %a = arith.maxsi %m, %five : index
    %c = arith.cmpi sgt, %i, %five : index
    %s = arith.select %c, %i, %a : index
    %q = arith.subi %s, %five : index
    %r = arith.index_cast %q : index to i32
    loop.store %r, %out[%i] : memref<12xi32>, i32
  }
  func.return
}"""
    )
    assert got.tolist() == [(i if i > 5 else max(min(2 * i, 9), 5)) - 5 for i in range(12)]


def test_broken_promise_of_a_bounded_rounding():
    text = """
func.func @main(%x: memref<3xf32>, %out: memref<3xi32> {qcomp.output}) {
  %v = loop.load %x[0] over (0) : memref<3xf32>, vector<3xf32>
  %r = loop.round %v {bounded} : vector<3xf32> -> vector<3xi32> loc("head.fc"("m.py":3:0))
  loop.store %r, %out[0] over (0) : memref<3xi32>, vector<3xi32>
  func.return
}
"""
    program = LoopProgram(parse(text))
    fine = np.array([2**22, -(2**22), 2.5], np.float32)
    assert program.run([fine])[0].tolist() == [2**22, -(2**22), 2]
    for bad in (np.nan, np.inf, 2**22 + 1, -(2**22) - 1):
        with pytest.raises(QcompError, match=r"head.fc \(m.py:3\): loop.round promises") as caught:
            program.run([np.array([1, bad, 2], np.float32)])
        assert caught.value.code == "broken-promise"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%c = arith.constant 2 : i32\n%d = arith.divui %c, %c : i32", "arith.divui has no meaning"),
        ("func.call @absent() : () -> ()", "'@absent' could not be found"),
        ("func.call @outside() : () -> ()", "function outside has no body"),
        ("%m = memref.alloc() : memref<60000000000xf64>", "main needs more memory than there is"),
        (
            "%c = arith.constant 2 : index\n%d = affine.apply affine_map<(d0) -> (d0 mod 0)> (%c)",
            "an index of main is divided by 0",
        ),
    ],
)
def test_what_it_cannot_run_is_an_error(body: str, message: str):
    text = f"func.func private @outside()\nfunc.func @main() {{\n{body}\nfunc.return\n}}\n"
    with pytest.raises(QcompError, match=message):
        LoopProgram(parse(text)).run([])


def test_too_deep_a_nest_is_an_error():
    text = "func.return"
    for depth in range(19):
        text = f"loop.for %i{depth} = [0] to [1] {{\n{text if depth else ''}\n}}"
    with pytest.raises(QcompError, match="nest deeper than 18"):
        LoopProgram(parse(f"func.func @main() {{\n{text}\nfunc.return\n}}\n")).run([])
