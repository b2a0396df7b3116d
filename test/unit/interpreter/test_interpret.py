# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""interpret: inputs and results, functions, observers, lifetimes, errors."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, same_bits
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

from qcomp.dialects import nn
from qcomp.dialects.location import location
from qcomp.dialects.nn.base import UNKNOWN
from qcomp.dialects.quant import DequantizeOp, Encoding, ObserveOp, QuantizeOp, RequantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import evaluate_op, interpret, meaning

KIND = Encoding.make(0.5, 3, qmin=-100, qmax=100)


def doubled() -> ModuleOp:
    return program(lambda add, x: add(nn.AddOp(x, x)), floats(2, 3))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "main takes 1 inputs, got 0"),
        ([np.zeros((2, 3), np.float64)], "input 0 of main: expected dtype float32, got float64"),
        ([np.zeros((2, 4), np.float32)], r"expected shape \[2, 3\], got \[2, 4\]"),
        ([np.zeros(6, np.float32)], r"expected shape \[2, 3\], got \[6\]"),
        ([[[0.0] * 3] * 2], "expected a numpy array, got list"),
    ],
)
@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_inputs_that_do_not_fit(inputs: list[Any], message: str, evaluator: str):
    with pytest.raises(QcompError, match=message) as caught:
        interpret(doubled(), *inputs, evaluator=evaluator)
    assert caught.value.code == "input"


def test_unknown_dimensions_take_any_size():
    module = program(lambda add, x: add(nn.ReluOp(x)), TensorType(f32, [UNKNOWN, 3]))
    assert interpret(module, np.ones((5, 3), np.float32))[0].shape == (5, 3)
    with pytest.raises(QcompError, match=r"expected shape \['\?', 3\], got \[5, 4\]"):
        interpret(module, np.ones((5, 4), np.float32))


def test_options():
    with pytest.raises(QcompError, match="unknown evaluator fast"):
        interpret(doubled(), np.zeros((2, 3), np.float32), evaluator="fast")
    with pytest.raises(QcompError, match="no function other"):
        interpret(doubled(), function="other")


@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_codes_come_and_go_as_codes(evaluator: str):
    module = program(
        lambda add, q: [q, add(DequantizeOp(q)), add(RequantizeOp(q, Encoding.make(0.25, signed=False)))],
        quantized(KIND, 4),
    )
    codes = np.array([-100, 3, 5, 100], np.int8)
    same, real, other = interpret(module, codes, evaluator=evaluator)
    assert same_bits(same, codes)
    assert real.tolist() == [-51.5, 0.0, 1.0, 48.5]
    assert other.dtype == np.uint8 and other.tolist() == [0, 0, 4, 194]
    with pytest.raises(QcompError, match="codes outside the storage range <-100:100>"):
        interpret(module, np.array([-100, 3, 5, 101], np.int8), evaluator=evaluator)


@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_bfloat16_comes_and_goes_as_bits(evaluator: str):
    module = program(lambda add, x: add(nn.MulOp(x, x)), floats(3, element=bf16))
    bits = np.array([0x3F80, 0x3FC0, 0xC040], np.uint16)  # 1, 1.5, -3
    (result,) = interpret(module, bits, evaluator=evaluator)
    assert result.tolist() == [0x3F80, 0x4010, 0x4110]  # 1, 2.25, 9


@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_results_are_fresh(evaluator: str):
    held = np.arange(20, dtype=np.float32)
    module = program(
        lambda add, x: [x, add(nn.ReshapeOp(x, [3, 2])), add(constant(held)), add(ObserveOp(x, KIND))], floats(2, 3)
    )
    x = np.ones((2, 3), np.float32)
    for result in interpret(module, x, evaluator=evaluator):
        result += 1
    assert (x == 1).all() and held[0] == 0


def with_function(recursive: bool = False) -> ModuleOp:
    """main(x) = half(x) + x, where half multiplies by a constant; or a function that calls itself."""
    kind = floats(3)
    inner = Block(arg_types=[kind])
    if recursive:
        ops: list[Operation] = [CallOp("half", [inner.args[0]], [kind])]
    else:
        ops = [constant(np.full(3, 0.5, np.float32))]
        ops.append(nn.MulOp(inner.args[0], ops[0].results[0]))
    inner.add_ops([*ops, ReturnOp(ops[-1].results[0])])
    outer = Block(arg_types=[kind])
    call = CallOp("half", [outer.args[0]], [kind])
    total = nn.AddOp(call.results[0], outer.args[0])
    outer.add_ops([call, total, ReturnOp(total.result)])
    half = FuncOp("half", ([kind], [kind]), Region(inner), visibility="private")
    return ModuleOp([FuncOp("main", ([kind], [kind]), Region(outer)), half])


@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_calls(evaluator: str):
    x = np.array([2, 4, 6], np.float32)
    assert interpret(with_function(), x, evaluator=evaluator)[0].tolist() == [3, 6, 9]
    assert interpret(with_function(), x, evaluator=evaluator, function="half")[0].tolist() == [1, 2, 3]
    with pytest.raises(QcompError, match=r"func\.call: function half calls itself too deeply"):
        interpret(with_function(recursive=True), x, evaluator=evaluator)


@pytest.mark.parametrize("evaluator", ["numpy", "torch"])
def test_observer_sees_every_op_with_its_results(evaluator: str):
    seen: list[tuple[str, list[Any]]] = []
    interpret(
        with_function(), np.array([2, 4, 6], np.float32), evaluator=evaluator,
        observer=lambda op, results: seen.append((op.name, [result.tolist() for result in results])),
    )  # fmt: skip
    assert seen == [
        ("nn.constant", [[0.5, 0.5, 0.5]]),
        ("nn.mul", [[1, 2, 3]]),
        ("func.call", [[1, 2, 3]]),
        ("nn.add", [[3, 6, 9]]),
    ]


def test_values_are_dropped_after_their_last_use():
    alive: list[weakref.ref[Any]] = []
    most = 0

    def observe(op: Operation, results: tuple[Any, ...]) -> None:
        nonlocal most
        most = max(most, sum(ref() is not None for ref in alive))
        alive.append(weakref.ref(results[0]))

    def build(add: Any, x: Any) -> Any:
        for _ in range(20):
            x = add(nn.AddOp(x, x))
            add(nn.ReluOp(x))  # not used at all
        return x

    interpret(program(build, floats(2, 3)), np.ones((2, 3), np.float32), observer=observe)
    assert most <= 3


def test_errors_name_op_and_place():
    module = program(
        lambda add, x: add(nn.DivOp(x, x)), TensorType(nn.ConstantOp(np.zeros(2, np.int32)).value.data.element, [2])
    )
    op = next(op for op in module.walk() if isinstance(op, nn.DivOp))
    op.location = location("block.0", "model.py", 12)
    with pytest.raises(QcompError, match=r"block\.0 \(model\.py:12\): nn\.div: division of integers") as caught:
        interpret(module, np.ones(2, np.int32))
    assert caught.value.op == "nn.div" and caught.value.code == "unsupported-type" and caught.value.hint


def test_evaluate_op_gives_stored_arrays_for_folding():
    x = constant(np.array([0.2, -7.0, 9.0], np.float32))
    codes = evaluate_op(QuantizeOp(x.result, KIND), [x.array])
    assert codes.dtype == np.int8 and codes.tolist() == [3, -11, 21]


@irdl_op_definition
class CubeOp(IRDLOperation):
    """A third party's op."""

    name = "test.cube"
    input = operand_def(TensorType)
    result = result_def(TensorType)


def test_third_parties_bind_their_ops():
    def build(add: Any, x: Any) -> Any:
        return add(CubeOp(operands=[x], result_types=[x.type]))

    module = program(build, quantized(KIND, 3))
    codes = np.array([3, 5, 1], np.int8)
    with pytest.raises(QcompError, match=r"test\.cube: no reference meaning") as caught:
        interpret(module, codes)
    assert caught.value.code == "unsupported-op"

    @meaning(CubeOp)
    def _cube(op: CubeOp, arrays: Any) -> Any:
        return arrays[0] ** 3

    assert interpret(module, codes)[0].tolist() == [3, 5, 1], "(1.0)**3 and (-1.0)**3 by the general rule"


def test_loop_level_takes_no_options():
    from xdsl.dialects.builtin import MemRefType

    block = Block(arg_types=[MemRefType(f32, [2])])
    block.add_op(ReturnOp())
    module = ModuleOp([FuncOp("main", ([MemRefType(f32, [2])], []), Region(block))])
    with pytest.raises(QcompError, match="unobserved"):
        interpret(module, np.zeros(2, np.float32), evaluator="torch")
