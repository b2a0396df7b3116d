# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""qcomp compile --dim and qcomp check --dim."""

from __future__ import annotations

from pathlib import Path

import pytest

import qcomp
from qcomp.cli.main import main

TEXT = """\
func.func @main(%x: tensor<?x3xf32, #nn.dims<[b, 3]>> {nn.name = "x"}) -> tensor<?x3xf32, #nn.dims<[b, 3]>>
    attributes {nn.symbols = [#nn.symbol<b, 0, 8>]} {
  %y = nn.relu %x : tensor<?x3xf32, #nn.dims<[b, 3]>> -> tensor<?x3xf32, #nn.dims<[b, 3]>>
  func.return %y : tensor<?x3xf32, #nn.dims<[b, 3]>>
}
"""


@pytest.mark.parametrize("dim", ["b=2", "x.0=2"])
def test_a_size_is_fixed(dim: str, tmp_path: Path):
    (tmp_path / "net.mlir").write_text(TEXT)
    assert main(["compile", str(tmp_path / "net.mlir"), "-o", str(tmp_path / "out"), "--dim", dim]) == 0
    assert qcomp.load(tmp_path / "out").interface.inputs[0].shape == (2, 3)


def test_wrong_sizes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "net.mlir").write_text(TEXT)
    for dim, message in (("c=2", "no symbolic size c"), ("b", "'b' is no NAME=SIZE"), ("b=9", "b is 9, allowed are 0")):
        assert main(["compile", str(tmp_path / "net.mlir"), "-o", str(tmp_path / "out"), "--dim", dim]) == 1
        assert message in capsys.readouterr().err


UNPOOLED = """\
func.func @main(%x: tensor<?x3x?xf32, #nn.dims<[b, 3, t]>> {nn.name = "x"}) -> tensor<?x3x2xf32, #nn.dims<[b, 3, 2]>>
    attributes {nn.symbols = [#nn.symbol<b, 0, 8>, #nn.symbol<t, 2, 9>]} {
  %y = nn.take %x {dim = 2 : i64, indices = array<i64: 1, 0>} : tensor<?x3x?xf32, #nn.dims<[b, 3, t]>>
    -> tensor<?x3x2xf32, #nn.dims<[b, 3, 2]>>
  func.return %y : tensor<?x3x2xf32, #nn.dims<[b, 3, 2]>>
}
"""
