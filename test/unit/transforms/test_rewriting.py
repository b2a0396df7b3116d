# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rewriting helper: plans first, refusals logged once, locations passed on, an end to everything."""

from __future__ import annotations

from typing import ClassVar

import pytest
from tensor_programs import floats, program
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.dim import symbol
from qcomp.dialects.dims import tensor_of
from qcomp.dialects.location import describe, location
from qcomp.dialects.nn.base import shape
from qcomp.errors import QcompError
from qcomp.transforms.rewriting import (
    Refusal,
    Rewriter,
    Rule,
    apply_rules,
    counted_rewrites,
    only_user,
    refusal_log,
)


class NegToAbs(Rule[nn.NegOp, bool]):
    """neg(x) => abs(x)"""

    matches: ClassVar = nn.NegOp

    def plan(self, op: nn.NegOp) -> bool:
        return True

    def apply(self, op: nn.NegOp, plan: bool, rewriter: Rewriter) -> None:
        rewriter.replace(op, nn.AbsOp(op.input))


class Forever(Rule[nn.NegOp, bool]):
    """neg(x) => neg(x)"""

    matches: ClassVar = nn.NegOp

    def plan(self, op: nn.NegOp) -> bool:
        return True

    def apply(self, op: nn.NegOp, plan: bool, rewriter: Rewriter) -> None:
        rewriter.replace(op, nn.NegOp(op.input))


class NegToSteps(Rule[nn.NegOp, bool]):
    """neg(x) => abs(relu(x))"""

    matches: ClassVar = nn.NegOp

    def plan(self, op: nn.NegOp) -> bool:
        return True

    def apply(self, op: nn.NegOp, plan: bool, rewriter: Rewriter) -> None:
        step = nn.ReluOp(op.input)
        rewriter.replace(op, step, nn.AbsOp(step.result))


def test_only_the_last_of_several_steps_has_the_old_name() -> None:
    """A name tells `qcomp.compare` which value of the program a value is."""
    module = program(lambda add, x: add(nn.NegOp(x)), floats(2, 3))
    (op,) = [op for op in module.walk() if isinstance(op, nn.NegOp)]
    op.result.name_hint = "y.7"
    apply_rules(module, [NegToSteps()])
    names = {type(op): op.results[0].name_hint for op in module.walk() if isinstance(op, nn.UnaryOp)}
    assert names == {nn.ReluOp: None, nn.AbsOp: "y.7"}


class Never(Rule[nn.NegOp, bool]):
    """Refuses always."""

    matches: ClassVar = nn.NegOp

    def plan(self, op: nn.NegOp) -> Refusal:
        return Refusal("not today")

    def apply(self, op: nn.NegOp, plan: bool, rewriter: Rewriter) -> None:
        raise AssertionError("a refused rule is not applied")


def chain(length: int) -> ModuleOp:
    def build(add, value):
        for index in range(length):
            op = nn.NegOp(value)
            op.location = location(f"layer{index}", "model.py", index + 1)
            value = add(op)
        return value

    return program(build, floats(3))


def names(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name.startswith("nn.")]


def test_new_ops_take_the_location_and_the_name_of_what_they_replace():
    module = chain(2)
    for op in module.walk():
        if isinstance(op, nn.NegOp):
            op.result.name_hint = "negated"
    assert apply_rules(module, [NegToAbs()])
    found = [op for op in module.walk() if isinstance(op, nn.AbsOp)]
    assert [describe(op.location) for op in found] == ["layer0 (model.py:1)", "layer1 (model.py:2)"]
    assert {op.result.name_hint for op in found} == {"negated"}


def test_a_rule_that_feeds_itself_ends_in_an_error_that_names_it():
    with pytest.raises(QcompError, match="rule Forever does not come to an end") as caught:
        apply_rules(chain(1), [Forever()])
    assert caught.value.code == "no-fixpoint"
    assert caught.value.location == "layer0 (model.py:1)"


def test_once_visits_no_op_again():
    module = chain(3)
    assert apply_rules(module, [Forever()], once=True)
    assert names(module) == ["nn.neg"] * 3


def test_refusals_are_logged_once_with_op_place_and_reason():
    module = chain(2)
    with refusal_log() as log:
        assert not apply_rules(module, [Never()])
        apply_rules(module, [Never()])
    assert [str(record) for record in log] == [
        "Never: nn.neg at layer0 (model.py:1): not today",
        "Never: nn.neg at layer1 (model.py:2): not today",
    ]


def test_nothing_is_logged_outside_of_a_log():
    assert not apply_rules(chain(1), [Never()])


def test_rewrites_can_be_counted_and_stopped():
    with counted_rewrites() as all_of_them:
        apply_rules(chain(5), [NegToAbs()])
    assert all_of_them.done == 5
    module = chain(5)
    with counted_rewrites(2) as some:
        apply_rules(module, [NegToAbs()])
    assert some.done == 2
    assert some.last == "NegToAbs on nn.neg at layer1 (model.py:2)"
    assert names(module) == ["nn.abs", "nn.abs", "nn.neg", "nn.neg", "nn.neg"]


def test_only_user_counts_uses_not_users():
    module = program(lambda add, x: add(nn.MulOp(y := add(nn.NegOp(x)), y)), floats(2))
    values = {op.name: op for op in module.walk()}
    assert only_user(values["nn.neg"].results[0]) is None
    assert isinstance(only_user(values["nn.mul"].results[0]), Operation)


class AsksForANumber(Rule[nn.NegOp, int]):
    """neg(x) => abs(x) where the first size is below 3, asked in `plan` or in `apply`."""

    matches: ClassVar = nn.NegOp

    def __init__(self, late: bool):
        self.late = late

    def plan(self, op: nn.NegOp) -> int | None:
        return 1 if self.late or shape(op.input)[0] < 3 else None

    def apply(self, op: nn.NegOp, plan: int, rewriter: Rewriter) -> None:
        if shape(op.input)[0] < 3:
            rewriter.replace(op, nn.AbsOp(op.input))


def test_a_rule_that_cannot_tell_declines() -> None:
    module = program(lambda add, x: add(nn.NegOp(x)), tensor_of(f32, (symbol("b"), 2)))
    with refusal_log() as refusals:
        assert not apply_rules(module, [AsksForANumber(late=False)])
    assert [str(record) for record in refusals] == ["AsksForANumber: nn.neg: whether b < 3 depends on the sizes"]


def test_an_error_in_a_rule_names_op_and_line() -> None:
    module = program(lambda add, x: add(nn.NegOp(x)), tensor_of(f32, (symbol("b"), 2)))
    next(op for op in module.walk() if isinstance(op, nn.NegOp)).location = location("net.neg", "model.py", 12)
    with pytest.raises(QcompError, match=r"net\.neg \(model\.py:12\): nn\.neg: whether b < 3 depends on the sizes"):
        apply_rules(module, [AsksForANumber(late=True)])
