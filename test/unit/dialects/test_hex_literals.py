# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants printed as their bytes: MLIR's form, bit by bit, for every element type; and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp

import qcomp
from qcomp.dialects.constant import Array
from qcomp.dialects.nn import ConstantOp
from qcomp.dialects.quant import Encoding, UniformQuantizedType
from qcomp.dialects.text import parse_text, print_text, save
from qcomp.errors import QcompError


def read(payload: str) -> Array:
    op = parse_text(f"%a = nn.constant {payload}\n", qcomp.context()).body.block.first_op
    assert isinstance(op, ConstantOp)
    return op.array


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', np.array([1, 2], np.float32)),
        ('dense<"0x0000C03F"> : tensor<2x3xf32>', np.full((2, 3), 1.5, np.float32)),
        ('dense<"0x05"> : tensor<3xi1>', np.array([True, False, True])),
        ('dense<"0xFF"> : tensor<11xi1>', np.ones(11, bool)),
        ('dense<"0xFF01"> : tensor<11xi1>', np.arange(11) < 9),
        ('dense<"0x0F0807"> : tensor<3xi4>', np.array([-1, -8, 7], np.int8)),
        ('dense<"0xFFF807"> : tensor<3xi4>', np.array([-1, -8, 7], np.int8)),
        ('dense<"0x0F0807"> : tensor<3xui4>', np.array([15, 8, 7], np.uint8)),
        ('dense<"0x0100FF7F"> : tensor<2xi15>', np.array([1, -1], np.int16)),
        ('dense<"0xFEFFFFFFFFFFFFFF"> : tensor<1xindex>', np.array([-2])),
        ('dense<"0xC07F"> : tensor<1xbf16>', np.array([0x7FC0], np.uint16)),
        ('dense<"0x7F01"> : tensor<2x!quant.uniform<i8:f32, 0.5>>', np.array([127, 1], np.int8)),
        ('dense<""> : tensor<0xf32>', None),
        ('dense<"0x"> : tensor<0x3xf32>', np.zeros((0, 3), np.float32)),
    ],
)
def test_the_form_is_that_of_mlir(payload: str, expected: Array | None):
    if expected is None:
        with pytest.raises(QcompError, match="a text in dense must begin with 0x, hexadecimal digits"):
            read(payload)
        return
    found = read(payload)
    assert found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


def test_bits_of_narrow_integers_are_cut_as_mlir_prints_them():
    module = parse_text(f"%a = nn.constant dense<[{'-1, ' * 19}-8]> : tensor<20xi4>\n", qcomp.context())
    assert f'dense<"0x{"0F" * 19}08">' in print_text(module, constants="bytes")
    flags = parse_text(f"%a = nn.constant dense<[{'false, ' * 17}true]> : tensor<18xi1>\n", qcomp.context())
    assert 'dense<"0x000002">' in print_text(flags, constants="bytes")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ('dense<"0x0000803F00"> : tensor<2xf32>', "5 bytes of hexadecimal digits, expected 8 for tensor<2xf32>"),
        ('dense<"0x000"> : tensor<2xf32>', "a text in dense must be an even number of hexadecimal digits"),
        ('dense<"0x00zz"> : tensor<2xf32>', "a text in dense must be an even number of hexadecimal digits"),
        ('dense<"0x0000"> : tensor<3xi1>', "2 bytes of hexadecimal digits for 3 truth values, eight to a byte"),
        ('dense<"0x0F1007"> : tensor<3xi4>', "hexadecimal digits hold a number that is not a value of i4 (-8 to 7)"),
        ('dense<"0xF0"> : tensor<3xui4>', "hexadecimal digits hold a number that is not a value of ui4 (0 to 15)"),
        ('dense<"0x00"> : tensor<600000000xi8>', "splat constants of 600000000 bytes"),
        ('dense<"0x80"> : tensor<1x!quant.uniform<i8<-127:127>:f32, 0.5>>', "codes outside the storage range"),
    ],
)
def test_bytes_that_do_not_fit(payload: str, message: str):
    with pytest.raises(QcompError, match=re.escape(message)) as caught:
        read(payload)
    assert caught.value.location is not None and caught.value.location.startswith("<text>:1")


def program() -> ModuleOp:
    weights = np.array([-0.0, np.nan, *range(30)], np.float32)
    kind = UniformQuantizedType(Encoding.make(np.linspace(0.1, 1, 20), range(20), axis=0))
    return ModuleOp([ConstantOp(weights.reshape(4, 8))], {"kind": kind})


def test_a_saved_module_may_hold_its_constants(tmp_path: Path):
    module = program()
    save(module, tmp_path / "net.mlir")
    assert (tmp_path / "net.safetensors").exists()
    save(module, tmp_path / "net.mlir", inline_constants=True)
    assert [path.name for path in tmp_path.iterdir()] == ["net.mlir"]
    text = (tmp_path / "net.mlir").read_text()
    assert text.count('dense<"0x') == 3, "the constant, scales and zero points"
    again = parse_text(text, qcomp.context())
    assert again.is_structurally_equivalent(module) and print_text(again, constants="bytes") == text


def test_xdsl_reads_the_same_bytes():
    text = print_text(program(), constants="bytes", locations=False)
    payload = text[text.index('dense<"0x', text.index("nn.constant")) :].split("\n")[0]
    op = parse_text(f"%a = arith.constant {payload}\n", qcomp.context()).body.block.first_op
    assert isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr)
    ours = next(op for op in program().walk() if isinstance(op, ConstantOp))
    theirs: Any = op.value
    assert theirs.data.data == ours.array.tobytes()


def test_floats_of_xdsl_are_read_by_their_bits():
    text = "%a = arith.constant dense<[0x3FC00000, 2.0, 0xFF800000]> : tensor<3xf32>\n"
    op = parse_text(text, qcomp.context()).body.block.first_op
    assert isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr)
    values: DenseIntOrFPElementsAttr[Any] = op.value
    assert values.get_values() == (1.5, 2.0, -np.inf)
