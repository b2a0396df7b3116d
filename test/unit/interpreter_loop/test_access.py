# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores: where elements lie, partial tiles, over-reads, views, and the checks."""

from __future__ import annotations

import numpy as np
import pytest
from loop_case import run, same_bits

from qcomp.dialects.text import parse
from qcomp.errors import QcompError
from qcomp.interpreter.loop import LoopProgram


@pytest.mark.parametrize("kind", ["parallel", ""])
@pytest.mark.parametrize(
    ("over", "shape", "strides"),
    [
        ("(0, 1, 2)", (2, 3, 4), (35, 7, 1)),
        ("(2, 1, 0)", (4, 3, 2), (1, 7, 35)),
        ("(1 step 2, 2)", (2, 4), (14, 1)),
        ("(2 step 3, 2)", (2, 3), (3, 1)),
        ("(1, 2 step 2, 2)", (2, 2, 2), (7, 2, 1)),
        ("(2 step 0, 1)", (3, 2), (0, 7)),
        ("(0 step -1)", (3,), (-35,)),
    ],
)
def test_where_the_elements_of_a_tile_lie(over: str, shape: tuple[int, ...], strides: tuple[int, ...], kind: str):
    x = np.arange(9 * 5 * 7, dtype=np.int32).reshape(9, 5, 7)
    tile = "x".join(map(str, shape))
    places = ", ".join(str(axis + 1) for axis in range(len(shape)))
    (got,) = run(
        f"""
func.func @main(%x: memref<9x5x7xi32>, %out: memref<3x{tile}xi32> {{qcomp.output}}) {{
  loop.for %i = [0] to [3] {kind} {{
    %v = loop.load %x[%i * 2 + 2, 1, %i floordiv 2] over {over} : memref<9x5x7xi32>, vector<{tile}xi32>
    loop.store %v, %out[%i{", 0" * len(shape)}] over ({places}) : memref<3x{tile}xi32>, vector<{tile}xi32>
  }}
  func.return
}}""",
        x,
    )
    places_read = np.einsum("i...,i->...", np.indices(shape), np.array(strides))
    bases = [(2 * i + 2) * 35 + 7 + i // 2 for i in range(3)]
    assert same_bits(got, x.reshape(-1)[np.array(bases).reshape(-1, *[1] * len(shape)) + places_read])


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_partial_tiles_load_zeros_and_store_a_prefix(kind: str):
    x = np.arange(1, 16, dtype=np.int8).reshape(3, 5)
    (got, kept) = run(
        f"""
func.func @main(%x: memref<3x5xi8>, %all: memref<3x8xi8> {{qcomp.output}}, %some: memref<3x8xi8> {{qcomp.output}}) {{
  loop.for %i = [0] to [3] {kind} {{
    %v = loop.load %x[%i, 0] over (1) valid 5 : memref<3x5xi8>, vector<8xi8>
    loop.store %v, %all[%i, 0] over (1) : memref<3x8xi8>, vector<8xi8>
    loop.store %v, %some[%i, 0] over (1) valid 3 : memref<3x8xi8>, vector<8xi8>
  }}
  func.return
}}""",
        x,
    )
    assert same_bits(got, np.pad(x, ((0, 0), (0, 3))))
    garbage = np.full((3, 5), 0xCD, np.uint8).view(np.int8)
    assert same_bits(kept, np.concatenate([x[:, :3], garbage], 1))


def test_a_loaded_tile_does_not_change_when_the_buffer_does():
    x = np.arange(4, dtype=np.int32)
    (got,) = run(
        """
func.func @main(%x: memref<4xi32>, %out: memref<4xi32> {qcomp.output}) {
  %v = loop.load %x[0] over (0) : memref<4xi32>, vector<4xi32>
  %w = arith.addi %v, %v : vector<4xi32>
  loop.store %w, %x[0] over (0) : memref<4xi32>, vector<4xi32>
  loop.store %v, %out[0] over (0) : memref<4xi32>, vector<4xi32>
  func.return
}""",
        x,
    )
    assert got.tolist() == [0, 1, 2, 3]
    assert x.tolist() == [0, 1, 2, 3], "inputs are the caller's"


def test_buffers_of_rank_0_and_scalars():
    (got, flag) = run(
        """
func.func @main(%x: memref<f32>, %out: memref<f32> {qcomp.output}, %flag: memref<i1> {qcomp.output}) {
  %v = loop.load %x[] : memref<f32>, f32
  %zero = arith.constant 0.0 : f32
  %c = arith.cmpf ogt, %v, %zero : f32
  %w = arith.addf %v, %v : f32
  loop.store %w, %out[] : memref<f32>, f32
  loop.store %c, %flag[] : memref<i1>, i1
  func.return
}""",
        np.array(1.25, np.float32),
    )
    assert same_bits(got, np.array(2.5, np.float32))
    assert same_bits(flag, np.array(True))


def test_views_share_bytes():
    (got,) = run(
        """
func.func @main(%arena: memref<64xi8> {qcomp.arena}, %out: memref<3xi32> {qcomp.output}) {
  %a = loop.view %arena {offset = 8 : i64} : memref<64xi8> to memref<2x3xi32>
  %b = loop.view %arena {offset = 20 : i64} : memref<64xi8> to memref<3xi32>
  %v = arith.constant dense<[1, -2, 300000]> : vector<3xi32>
  loop.store %v, %a[1, 0] over (1) : memref<2x3xi32>, vector<3xi32>
  %w = loop.load %b[0] over (0) : memref<3xi32>, vector<3xi32>
  loop.store %w, %out[0] over (0) : memref<3xi32>, vector<3xi32>
  func.return
}"""
    )
    assert got.tolist() == [1, -2, 300000]


def test_constants_are_buffers_of_signless_elements():
    (got,) = run(
        """
func.func @main(%out: memref<2x2xi8> {qcomp.output, qcomp.unsigned}) {
  %c = loop.constant {value = #nn.data<dense<[[1, 200], [3, 255]]> : tensor<2x2xui8>>} : memref<2x2xi8>
  %v = loop.load %c[0, 0] over (1, 0) : memref<2x2xi8>, vector<2x2xi8>
  loop.store %v, %out[0, 0] over (0, 1) : memref<2x2xi8>, vector<2x2xi8>
  func.return
}"""
    )
    assert same_bits(got, np.array([[1, 3], [200, 255]], np.uint8))


def test_fresh_memory_holds_garbage():
    (got, also) = run(
        """
func.func @main(%arena: memref<8xi8> {qcomp.arena}, %out: memref<8xi8> {qcomp.output},
                %b: memref<2xi32> {qcomp.output}) {
  %v = loop.load %arena[0] over (0) : memref<8xi8>, vector<8xi8>
  loop.store %v, %out[0] over (0) : memref<8xi8>, vector<8xi8>
  %m = memref.alloc() : memref<2xi32>
  %w = loop.load %m[0] over (0) : memref<2xi32>, vector<2xi32>
  loop.store %w, %b[0] over (0) : memref<2xi32>, vector<2xi32>
  func.return
}"""
    )
    assert set(got.view(np.uint8)) == {0xCD} and set(also.view(np.uint8)[:1]) == {0xCD}


def _reads(start: int, count: int) -> str:
    return f"""
func.func @main(%x: memref<2x10xi8>, %out: memref<{count}xi8> {{qcomp.output}}) {{
  %v = loop.load %x[1, {start}] over (1) : memref<2x10xi8>, vector<{count}xi8> loc("net.conv1"("model.py":7:0))
  loop.store %v, %out[0] over (0) : memref<{count}xi8>, vector<{count}xi8>
  func.return
}}
"""


def test_a_read_may_run_63_bytes_over_the_end():
    x = np.arange(20, dtype=np.int8).reshape(2, 10)
    for checked in (True, False):
        (got,) = LoopProgram(parse(_reads(3, 70)), checked=checked).run([x])
        assert got[:7].tolist() == [13, 14, 15, 16, 17, 18, 19]


def test_a_read_further_over_the_end_is_an_error_that_names_op_and_location():
    x = np.zeros((2, 10), np.int8)
    with pytest.raises(QcompError) as caught:
        LoopProgram(parse(_reads(3, 71)), checked=True).run([x])
    assert caught.value.code == "out-of-bounds"
    assert caught.value.op == "loop.load"
    assert str(caught.value) == (
        "net.conv1 (model.py:7): loop.load: load from [1, 3..73] lies outside a buffer of shape [2, 10]"
    )
    with pytest.raises(QcompError, match=r"outside a buffer.*checked=True"):
        LoopProgram(parse(_reads(3, 100))).run([x])


def _access(index: str, store: bool, kind: str, tile: str = "vector<4xi32>", over: str = " over (1)") -> str:
    op = "loop.store %v, %out" if store else "%w = loop.load %x"
    return f"""
func.func @main(%x: memref<6x8xi32>, %out: memref<6x8xi32> {{qcomp.output}}) {{
  loop.for %i = [0] to [6] {kind} {{
    %v = loop.load %x[%i, 0]{over} : memref<6x8xi32>, {tile}
    {op}[{index}]{over} : memref<6x8xi32>, {tile}
  }}
  func.return
}}
"""


@pytest.mark.parametrize("kind", ["parallel", ""])
@pytest.mark.parametrize(
    ("index", "store", "message"),
    [
        ("%i, 4", True, None),
        ("%i, 5", True, "5..8"),
        ("%i + 1, 0", True, "store to"),
        ("%i - 1, 0", True, "-1"),
        ("%i, %i - 1", False, "load from"),
        ("%i, 19", False, None),  # 15 elements, 60 bytes over the row's end
        ("%i, 20", False, "20..23"),
        ("%i + 1, 0", False, None),  # 32 bytes over the end
        ("%i + 2, 0", False, "load from"),
    ],
)
def test_checks(index: str, store: bool, message: str | None, kind: str):
    x = np.arange(48, dtype=np.int32).reshape(6, 8)
    program = LoopProgram(parse(_access(index, store, kind)), checked=True)
    if message is None:
        program.run([x])
        return
    with pytest.raises(QcompError, match=r"lies outside a buffer of shape \[6, 8\]") as caught:
        program.run([x])
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["parallel", ""])
def test_checks_of_scalars(kind: str):
    x = np.arange(48, dtype=np.int32).reshape(6, 8)
    LoopProgram(parse(_access("%i, 7", True, kind, "i32", "")), checked=True).run([x])
    with pytest.raises(QcompError, match="store to"):
        LoopProgram(parse(_access("%i, 8", True, kind, "i32", "")), checked=True).run([x])


def test_iterations_of_a_parallel_loop_that_collide_are_found():
    def collide(index: str) -> LoopProgram:
        return LoopProgram(parse(_access(index, True, "parallel")), checked=True)

    x = np.arange(48, dtype=np.int32).reshape(6, 8)
    with pytest.raises(QcompError, match="different values to the same place"):
        collide("%i floordiv 2, 0").run([x])
    with pytest.raises(QcompError, match="to the same place"):
        collide("0, 0").run([x])
    collide("%i floordiv 2, 0").run([np.zeros((6, 8), np.int32)])


def test_unsupported_buffers_are_refused():
    text = """
func.func @main(%x: memref<?xi32>) {
  %v = loop.load %x[0] : memref<?xi32>, i32
  func.return
}
"""
    with pytest.raises(QcompError, match="row-major and static"):
        LoopProgram(parse(text)).function("main")
