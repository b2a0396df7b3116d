# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in test/filecheck/dialects are complete: every op, every property, every error message is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from dialect_messages import Message, messages
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

import qcomp.dialects
from qcomp.dialects.context import own_dialects
from qcomp.dialects.text import parse, parse_text, print_text, save

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "filecheck" / "dialects").glob("*/ops*.mlir"))
OPS = {op.name: cast(type[IRDLOperation], op) for factory in own_dialects().values() for op in factory().operations}


@cache
def example_ops() -> list[Operation]:
    return [op for path in EXAMPLES for op in parse(path).walk() if op.name in OPS]


def inherited(name: str, key: str) -> bool:
    """Whether the property comes from a base class, or from xDSL: then an example of any op with it will do."""
    bases = [base for base in OPS[name].__mro__ if not hasattr(base, "name") or base.name != name]
    defined = next((base for base in bases if key in vars(base)), None)
    users = {other for other, kind in OPS.items() if defined is not None and issubclass(kind, defined)}
    return key.endswith("SegmentSizes") or any(key in op.properties for op in example_ops() if op.name in users)


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_an_example_with_every_property(name: str):
    """An op, or a property of it, that no test/filecheck/dialects/*/ops*.mlir shows does not round-trip for sure."""
    examples = [op for op in example_ops() if op.name == name]
    assert examples, f"{name} has no example in test/filecheck/dialects/*/ops.mlir"
    shown = {key for op in examples for key in op.properties}
    missing = {key for key in OPS[name].get_irdl_definition().properties if not inherited(name, key)} - shown
    assert not missing, f"no example of {name} has the properties {sorted(missing)}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_read_back_to_the_same_module(path: Path, tmp_path: Path):
    module = parse(path)
    for locations in (True, False):
        for generic in (True, False):
            text = print_text(module, locations=locations, generic=generic)
            again = parse_text(text, qcomp.context(), str(path))
            assert print_text(again, locations=locations, generic=generic) == text
            assert same(again, module)
    save(module, tmp_path / "saved.mlir")
    again = parse(tmp_path / "saved.mlir")
    assert same(again, module)
    assert print_text(again) == print_text(module), "locations are saved"
    assert same(module.clone(), module)


def same(left: ModuleOp, right: ModuleOp) -> bool:
    return left.is_structurally_equivalent(right)


MESSAGES = messages(Path(qcomp.dialects.__path__[0]))


@pytest.fixture(scope="module")
def tested() -> str:
    """The texts of all announced errors, and the unit tests of the dialects, a line each."""
    files = [*(ROOT / "filecheck" / "dialects").rglob("*.mlir"), *Path(__file__).parent.glob("*.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.place}: {message.text}")
def test_every_error_message_has_a_test(message: Message, tested: str):
    """A message that no expected-error in test/filecheck/dialects shows may be wrong, or never given."""
    assert message.pattern.search(tested), f"no test shows the error {message.text!r} of {message.place}"


def test_the_search_for_messages_finds_some():
    texts = {message.text for message in MESSAGES}
    assert len(MESSAGES) > 90
    assert {"zero point {} is outside the storage range <{}:{}>", "step must be at least 1"} <= texts
    assert re.escape("{}") not in "".join(texts)
