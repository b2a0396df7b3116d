# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convention of main at loop level."""

from __future__ import annotations

import numpy as np
import pytest

import qcomp
from qcomp.dialects.text import parse
from qcomp.errors import QcompError
from qcomp.interpreter.loop import LoopProgram, interpret_loop

COPY = """
func.func @main(%out: memref<2x3xi8> {qcomp.output, qcomp.unsigned}, %x: memref<2x3xi8>,
                %arena: memref<6xi8> {qcomp.arena}, %y: memref<2xf32>, %z: memref<2xf32> {qcomp.output},
                %s: memref<2x3xi8> {qcomp.output}) {
  %v = loop.load %x[0, 0] over (0, 1) : memref<2x3xi8>, vector<2x3xi8>
  loop.store %v, %out[0, 0] over (0, 1) : memref<2x3xi8>, vector<2x3xi8>
  loop.store %v, %s[0, 0] over (0, 1) : memref<2x3xi8>, vector<2x3xi8>
  %w = loop.load %y[0] over (0) : memref<2xf32>, vector<2xf32>
  loop.store %w, %z[0] over (0) : memref<2xf32>, vector<2xf32>
  func.return
}
"""
X = np.array([[1, 2, 255], [128, 4, 5]], np.uint8)
Y = np.array([1.5, -0.0], np.float32)


@pytest.mark.parametrize("x", [X, X.view(np.int8)])
def test_inputs_in_order_and_outputs_with_their_signs(x: np.ndarray):
    u, z, s = interpret_loop(parse(COPY), [x, Y])
    assert u.dtype == np.uint8 and s.dtype == np.int8 and z.dtype == np.float32
    assert u.tolist() == X.tolist() and s.tolist() == X.view(np.int8).tolist() and z.tobytes() == Y.tobytes()


def test_the_public_interpreter_runs_loop_level_modules():
    outputs = qcomp.interpret(parse(COPY), X, Y)
    assert [array.tolist() for array in outputs] == [X.tolist(), Y.tolist(), X.view(np.int8).tolist()]


def test_inputs_need_not_be_contiguous():
    x = np.ascontiguousarray(X.T).T
    assert interpret_loop(parse(COPY), [x, Y])[0].tolist() == X.tolist()


def test_results_of_two_runs_are_two_arrays():
    program = LoopProgram(parse(COPY))
    first = program.run([X, Y])
    program.run([np.zeros_like(X), Y])
    assert first[0].tolist() == X.tolist()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X], "takes more inputs"),
        ([X, Y, Y], "inputs fewer"),
        ([X.reshape(3, 2), Y], "does not fit memref<2x3xi8>"),
        ([X.astype(np.int32), Y], "does not fit"),
        ([X, Y.view(np.int32)], "does not fit memref<2xf32>"),
    ],
)
def test_inputs_that_do_not_fit(inputs: list[np.ndarray], message: str):
    with pytest.raises(QcompError, match=message):
        interpret_loop(parse(COPY), inputs)


def test_a_module_without_main():
    with pytest.raises(QcompError, match="no function main"):
        interpret_loop(parse("func.func private @f() {\nfunc.return\n}\n"), [])
