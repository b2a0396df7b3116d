# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong rules, seeded on purpose, are caught and named."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.location import location
from qcomp.dialects.nn.base import tensor
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, RequantizeOp, encoding_of
from qcomp.errors import QcompError
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.rewriting import Rewriter, Rule, apply_rules
from qcomp.transforms.verify_rewrites import apply_verified, check
from qcomp.transforms.weighted import rebuild

X = Encoding.make(0.03, -7)
Y = Encoding.make(0.2, 5)
W = Encoding.make([0.5, 0.25], 0, axis=0)


class Wrong(Rule[Operation, bool]):
    """Applies `change` to every op of `kind` once."""

    matches: ClassVar = Operation

    def __init__(self, kind: type[Operation]):
        self.kind = kind
        self.done: set[str] = set()

    def plan(self, op: Operation) -> bool | None:
        return True if isinstance(op, self.kind) and "seen" not in op.attributes else None

    def apply(self, op: Operation, plan: bool, rewriter: Rewriter) -> None:
        new = self.change(op)
        for item in new:
            item.attributes["seen"] = item.attributes.get("seen") or _unit()
        rewriter.replace(op, *new)

    @abstractmethod
    def change(self, op: Operation) -> list[Operation]:
        """The ops that take the place of `op`."""


def _unit():
    from xdsl.dialects.builtin import UnitAttr

    return UnitAttr()


def run(module: ModuleOp, rule: Wrong, promised: Letter) -> str:
    @dataclass(frozen=True)
    class Seeded(QcompPass):
        name = "seeded"
        letter: ClassVar[Letter] = promised

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            apply_rules(op, [rule])

    with pytest.raises(QcompError) as caught:
        apply_verified(Seeded(), Context(), module)
    assert caught.value.code == "verify-rewrites"
    return caught.value.message


class TimesZero(Wrong):
    """x * 0 => 0: wrong for NaN and infinities only."""

    def change(self, op: Operation) -> list[Operation]:
        kind = tensor(op.results[0])
        return [nn.ConstantOp(np.zeros(kind.get_shape(), np.float32))]


def test_exact_is_held_to_nan_and_infinity():
    zero = constant(np.zeros((4, 5), np.float32))
    module = program(lambda add, x: add(nn.MulOp(x, add(zero))), floats(4, 5))
    message = run(module, TimesZero(nn.MulOp), Letter.EXACT)
    assert message.startswith("pass seeded is declared exact but is not (rule TimesZero on nn.mul): @main: result 0")
    assert "before, 0.0 after" in message


class PlusZero(Wrong):
    """x + 0.0 => x: wrong for -0.0 only."""

    def change(self, op: Operation) -> list[Operation]:
        return [nn.ClampOp.of(op.operands[0])]


def test_exact_is_held_to_negative_zero():
    module = program(lambda add, x: add(nn.AddOp(x, add(constant(np.zeros((4, 5), np.float32))))), floats(4, 5))
    assert "0.0 before, -0.0 after (1 of 20 elements)" in run(module, PlusZero(nn.AddOp), Letter.EXACT)


class Swapped(Wrong):
    """sub(x, y) => sub(y, x), but only the one that comes third."""

    count = 0

    def change(self, op: Operation) -> list[Operation]:
        self.count += 1
        lhs, rhs = op.operands
        return [nn.SubOp(rhs, lhs)] if "third" in str(op.location) else [nn.SubOp(lhs, rhs)]


def test_the_first_wrong_application_is_named():
    def build(add, x, y):
        for index in ("first", "second", "third", "fourth", "fifth"):
            op = nn.SubOp(x, y)
            op.location = location(index, "model.py", 7)
            x = add(op)
        return x

    message = run(program(build, floats(3), floats(3)), Swapped(nn.SubOp), Letter.EXACT)
    assert "(rule Swapped on nn.sub at third (model.py:7))" in message


class SlightlyMore(Wrong):
    """x => x * 1.001: more than the reals allow."""

    def change(self, op: Operation) -> list[Operation]:
        factor = nn.ConstantOp(np.array(1.001, np.float32))
        relu = nn.ReluOp(op.operands[0])
        return [factor, relu, nn.MulOp(relu.result, factor.result)]


def test_real_is_held_to_a_relative_bound():
    message = run(program(lambda add, x: add(nn.ReluOp(x)), floats(3, 5)), SlightlyMore(nn.ReluOp), Letter.REAL)
    assert "rule SlightlyMore" in message
    assert "result 0 differs at" in message


def test_real_does_not_mind_a_code_that_flips_in_between():
    fine = Encoding.make(1e-4, 0, width=16)
    seventh, magnify = np.array(1 / 7, np.float32), np.array([1e4], np.float32)

    def quantized_by(scale):
        def build(add, x):
            codes = add(QuantizeOp(scale(add, x), fine))
            return add(nn.MulOp(add(DequantizeOp(codes)), add(constant(magnify))))

        return program(build, floats(200000))

    before = quantized_by(lambda add, x: add(nn.MulOp(x, add(constant(seventh)))))
    after = quantized_by(lambda add, x: add(nn.DivOp(x, add(constant(np.array(7, np.float32))))))
    assert check(Letter.EXACT, before, after) is not None
    assert check(Letter.REAL, before, after) is None


def coded_linear(residual: bool) -> ModuleOp:
    weight = constant(np.array([[5, -7, 127], [-2, 88, 1]], np.int8), W)

    def build(add, x, r):
        return add(nn.LinearOp(x, add(weight), residual=r if residual else None, result_type=quantized(Y, 9, 2)))

    return program(build, quantized(X, 9, 3), quantized(Y, 9, 2))


class DropResidual(Wrong):
    """linear(x, w) residual(r) => linear(x, w)."""

    def change(self, op: Operation) -> list[Operation]:
        assert isinstance(op, nn.LinearOp)
        return [rebuild(op, op.input, op.weight, op.bias, None, op.activation, tensor(op.result))]


def test_code_sees_what_the_structure_lost():
    message = run(coded_linear(True), DropResidual(nn.LinearOp), Letter.CODE)
    assert "(rule DropResidual on nn.linear): @main: result 0 differs at [0, " in message


class RoundTwice(Wrong):
    """linear(x, w) => requantize(linear(x, w)) with a coarser step in between."""

    def change(self, op: Operation) -> list[Operation]:
        encoding = encoding_of(op.results[0].type)
        assert isinstance(op, nn.LinearOp) and encoding is not None
        coarse = Encoding.make(0.21, 6)
        bare = rebuild(op, op.input, op.weight, op.bias, None, None, quantized(coarse, 9, 2))
        return [bare, RequantizeOp(bare.result, encoding)]


def test_code_sees_another_rounding():
    assert "rule RoundTwice" in run(coded_linear(False), RoundTwice(nn.LinearOp), Letter.CODE)


def test_code_checks_every_op_against_the_float_op_on_its_own_operands(monkeypatch: pytest.MonkeyPatch):
    from qcomp.interpreter.ops import contraction

    def wrong(total, plan, axis, residual=None):
        return (finish(total, plan, axis, residual).astype(np.int64) // 2 * 2).astype(np.int8)

    finish = contraction.contraction.finish
    monkeypatch.setattr(contraction.contraction, "finish", wrong)

    class Nothing(Wrong):
        def plan(self, op: Operation) -> bool | None:
            return None

        def change(self, op: Operation) -> list[Operation]:
            return []

    message = run(coded_linear(False), Nothing(nn.LinearOp), Letter.CODE)
    assert message.startswith("pass seeded is declared code but is not: @main: nn.linear differs at")


class Shrunk(Wrong):
    """relu(x) => sum(relu(x))."""

    def change(self, op: Operation) -> list[Operation]:
        relu = nn.ReluOp(op.operands[0])
        return [relu, nn.SumOp(relu.result, (0,), True)]


def test_a_lossy_pass_keeps_shapes():
    module = program(lambda add, x: add(nn.ReluOp(x)), floats(5))
    with pytest.raises(QcompError, match="was float32"):
        _shrink(module)


def _shrink(module: ModuleOp) -> None:
    @dataclass(frozen=True)
    class Seeded(QcompPass):
        name = "seeded"
        letter: ClassVar[Letter] = Letter.LOSSY

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            function = next(item for item in op.walk() if item.name == "func.func")
            apply_rules(op, [Shrunk(nn.ReluOp)])
            function.update_function_type()  # type: ignore[attr-defined]

    apply_verified(Seeded(), Context(), module)


def test_what_cannot_be_run_is_left_out():
    from qcomp.dialects.text import parse
    from qcomp.transforms.pipeline import run_passes

    module = parse(
        """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %a = func.call @outside(%x) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %a : tensor<2xf32>
        }
        func.func private @outside(tensor<2xf32>) -> tensor<2xf32>"""
    )
    run_passes(module, "fold-constants", verify=True)
