# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass by pass through files is the same as in memory; every op says where it comes from."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.dialects.func import FuncOp

from qcomp.dialects import nn
from qcomp.dialects.location import describe, location
from qcomp.dialects.quant import DequantizeOp, QuantizeOp
from qcomp.dialects.text import parse, print_text, save
from qcomp.transforms import get_all_passes
from qcomp.transforms.pipeline import parse_passes, run_passes

PASSES = "O1,quantize,O2,integer,unsigned-activations"
NETWORK = """
!f = tensor<2x3x6x7xf32>
func.func @main(%x: !f) -> tensor<2x126xf32> {
  %a = quant.observe %x : !f as !quant.uniform<i8:f32, 0.031:-7>
  %w = nn.constant dense<0.37> : tensor<3x3x3x3xf32>
  %o = quant.observe %w : tensor<3x3x3x3xf32> as !quant.uniform<i8<-127:127>:f32:0, {0.01, 0.02, 0.03}>
  %b = nn.constant dense<[0.1, -0.2, 0.3]> : tensor<3xf32>
  %c = nn.conv2d %a, %o bias(%b) {stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!f, tensor<3x3x3x3xf32>, tensor<3xf32>) -> !f
  %r = nn.relu %c : !f -> !f
  %d = quant.observe %r : !f as !quant.uniform<i8:f32, 0.05:-128>
  %s = nn.add %d, %a : (!f, !f) -> !f
  %e = quant.observe %s : !f as !quant.uniform<i8:f32, 0.06:3>
  %v = nn.constant dense<0.61> : tensor<5x3x1x1xf32>
  %g = nn.conv2d %x, %v {stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64} : (!f, tensor<5x3x1x1xf32>) -> tensor<2x5x6x7xf32>
  %t = nn.reshape %e : !f -> tensor<2x126xf32>
  func.return %t : tensor<2x126xf32>
}
"""  # noqa: E501


def test_one_pass_per_file_is_the_same_as_in_memory(tmp_path: Path):
    module = parse(NETWORK)
    path = tmp_path / "step.mlir"
    save(parse(NETWORK), path)
    for step in parse_passes(get_all_passes(), PASSES):
        run_passes(module, str(step))
        loaded = parse(path)
        run_passes(loaded, str(step))
        save(loaded, path)
        loaded.attributes.pop("qcomp.format")
        assert print_text(loaded, locations=False) == print_text(module, locations=False), step.name


def located(text: str) -> ModuleOp:
    """The module of `text` with a location for each op that is named like its result."""
    module = parse(text)
    for op in module.walk():
        if op.results and not isinstance(op, nn.ConstantOp):
            op.location = location(f"net.{op.results[0].name_hint}", "model.py", 7)
    return module


def test_every_op_of_every_pass_has_a_location():
    module = located(NETWORK)
    for step in parse_passes(get_all_passes(), PASSES):
        run_passes(module, str(step))
        for op in module.walk():
            assert isinstance(op, ModuleOp | FuncOp) or not isinstance(op.location, UnknownLoc), (step.name, op.name)


def test_quantize_is_located_at_its_producer_and_dequantize_at_its_consumer():
    module = located(NETWORK)
    run_passes(module, "quantize")
    quantizes = {describe(op.location) for op in module.walk() if isinstance(op, QuantizeOp)}
    assert quantizes == {"net.a (model.py:7)", "net.r (model.py:7)", "net.s (model.py:7)"}
    for op in module.walk():
        if isinstance(op, DequantizeOp):
            (use,) = {use.operation for use in op.result.uses}
            assert op.location == use.location


def test_a_fused_op_is_located_at_the_op_that_computes():
    module = located(NETWORK)
    run_passes(module, "quantize,O2,integer")
    places = {op.name: describe(op.location) for op in module.walk() if isinstance(op, nn.Conv2dOp | nn.AddOp)}
    assert places == {"nn.conv2d": "net.c (model.py:7)", "nn.add": "net.s (model.py:7)"}
