# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: names, options, order, errors, hooks."""

from __future__ import annotations

import itertools

import pytest
from tensor_programs import floats, program
from xdsl.passes import ModulePass

from qcomp.dialects import nn
from qcomp.dialects.quant import Encoding, ObserveOp
from qcomp.errors import QcompError
from qcomp.transforms import get_all_passes, own_passes
from qcomp.transforms.base import Letter, QcompPass
from qcomp.transforms.fold_constants import FoldConstantsPass
from qcomp.transforms.pipeline import PIPELINES, letter_of, parse_passes, run_passes


def parse(text: str) -> list[str]:
    return [step.name for step in parse_passes(get_all_passes(), text)]


def observed():
    return program(lambda add, x: add(nn.ReluOp(add(ObserveOp(x, Encoding.make(0.1, 3))))), floats(2, 3))


def test_names_stand_for_their_passes():
    steps = ["fold-batch-norm-qat", "insert-qdq", "duplicate-dequantize", "fold-constants", "dce"]
    assert parse("quantize,dce") == steps
    assert parse("") == []


def test_options():
    (step,) = parse_passes(get_all_passes(), "fold-constants{dequantize=true max-growth=7}")
    assert step == FoldConstantsPass(dequantize=True, max_growth=7)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("insert-qdk", "unknown-pass", "did you mean insert-qdq"),
        ("fold-constants{grow=1}", "pass-option", "pass fold-constants"),
        ("O1{level=3}", "pass-option", "takes no options"),
        ("dce,,", "pipeline", "pipeline 'dce,,'"),
        ("duplicate-dequantize,cse", "pass-order", "merge the private dequantizes"),
        ("quantize,O1", "pass-order", "merge the private dequantizes"),
        ("insert-qdq,fold-batch-norm", "pass-order", "before any quantize is placed"),
        ("duplicate-dequantize,insert-qdq", "pass-order", "would stay shared"),
        ("fuse-qdq,insert-qdq", "pass-order", "would stay unfused"),
        ("unsigned-activations,fuse-qdq", "pass-order", "when ops work on codes"),
        ("fuse-activation,fold-batch-norm", "pass-order", "keeps a batch norm from being folded"),
    ],
)
def test_what_is_refused(text: str, code: str, message: str):
    with pytest.raises(QcompError, match=message) as caught:
        parse_passes(get_all_passes(), text)
    assert caught.value.code == code


def test_levels_go_together_in_the_order_of_the_design():
    assert len(parse("O1,quantize,O2,integer,unsigned-activations")) > 15


def test_only_quantize_holds_a_lossy_pass():
    for name in PIPELINES:
        lossy = [step.name for step in parse_passes(get_all_passes(), name) if letter_of(step) is Letter.LOSSY]
        assert lossy == (["insert-qdq"] if name == "quantize" else [])


def test_every_pass_of_ours_declares_its_letter_and_has_tests_and_its_own_file(request: pytest.FixtureRequest):
    tests = request.config.rootpath / "test" / "filecheck" / "transforms"
    for name, factory in own_passes().items():
        step = factory()
        assert issubclass(step, QcompPass), name
        assert isinstance(step.letter, Letter), name
        assert step.name == name
        assert step.__module__.split(".")[2] == name.replace("-", "_")
        assert (tests / f"{name}.mlir").exists(), name


def test_the_order_of_the_quantization_steps_does_not_matter_where_it_is_not_refused():
    """insert-qdq, duplicate-dequantize, fold-constants: another order is refused or gives the same program."""
    from qcomp.dialects.text import print_text

    texts: set[str] = set()
    refused = 0
    for order in itertools.permutations(("insert-qdq", "duplicate-dequantize", "fold-constants")):
        module = observed()
        try:
            run_passes(module, ",".join(order))
        except QcompError as problem:
            assert problem.code == "pass-order"
            refused += 1
        else:
            texts.add(print_text(module, locations=False))
    assert refused == 3
    assert len(texts) == 1


def test_hooks_see_each_pass_the_module_and_the_time():
    seen: list[tuple[str, int]] = []

    def hook(step: ModulePass, module: object, seconds: float) -> None:
        assert seconds >= 0
        seen.append((step.name, sum(1 for _ in module.walk())))  # type: ignore[attr-defined]

    run_passes(observed(), "insert-qdq,dce", hooks=[hook])
    assert seen == [("insert-qdq", 6), ("dce", 6)]


def test_a_marked_module_refuses_cse_in_a_later_pipeline():
    module = observed()
    run_passes(module, "quantize")
    with pytest.raises(QcompError, match="would merge the private dequantizes again"):
        run_passes(module, "cse")
