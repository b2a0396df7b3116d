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
    wrong = (("c=2", "no symbolic size c", 2), ("b", "'b' is no NAME=SIZE", 2), ("b=9", "b is 9, allowed are 0", 1))
    for dim, message, code in wrong:
        assert main(["compile", str(tmp_path / "net.mlir"), "-o", str(tmp_path / "out"), "--dim", dim]) == code
        assert message in capsys.readouterr().err


RESIZED = """\
func.func @main(%x: tensor<1x?xf32, #nn.dims<[1, t]>> {nn.name = "x"}) -> tensor<1x2xf32>
    attributes {nn.symbols = [#nn.symbol<t, 2, 9>]} {
  %i = nn.constant dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>
  %w = nn.constant dense<[[0.25, 0.75], [0.5, 0.5]]> : tensor<2x2xf32>
  %y = nn.resample %x, %i, %w {dim = 1 : i64}
    : (tensor<1x?xf32, #nn.dims<[1, t]>>, tensor<2x2xi64>, tensor<2x2xf32>) -> tensor<1x2xf32>
  func.return %y : tensor<1x2xf32>
}
"""


def test_check_fixes_sizes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "net.mlir"
    path.write_text(RESIZED)
    assert main(["check", str(path)]) == 1
    assert "resampling of a symbolic size is not lowered" in capsys.readouterr().out
    for dim in ("t=4", "x.1=4"):
        assert main(["check", str(path), "--dim", dim]) == 0
        assert "everything is supported" in capsys.readouterr().out
    assert main(["check", str(path), "--dim", "t=1"]) == 1
    assert "t is 1, allowed are 2 to 9" in capsys.readouterr().err
    assert main(["check", str(path), "--json", "--dim", "c=1"]) == 1
    assert "no symbolic size c" in capsys.readouterr().out
