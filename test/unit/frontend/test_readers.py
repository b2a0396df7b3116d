# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file reader and the object reader say the same of one program."""

from __future__ import annotations

from pathlib import Path

import networks
import numpy as np
import pytest
import torch
from torch.export import ExportedProgram

from qcomp.frontend import from_torch, read_graph
from qcomp.frontend.exported_program import read_exported_program
from qcomp.frontend.graph import Graph, Ref, SymbolRange, TensorMeta
from qcomp.frontend.pt2 import read_pt2
from qcomp.frontend.symbols import symbol


def assert_same(left: Graph, right: Graph) -> None:
    """Field by field, so that a failure names what differs."""
    for name, field in Graph.__dataclass_fields__.items():
        if field.compare:
            assert getattr(left, name) == getattr(right, name), name


def test_varied(varied: ExportedProgram, varied_file: Path) -> None:
    graph = read_pt2(varied_file)
    assert_same(graph, read_exported_program(varied))
    assert_same(graph, read_exported_program(torch.export.load(varied_file)))


def test_what_is_read(varied_file: Path) -> None:
    graph = read_graph(varied_file)
    assert [entry.name for entry in graph.inputs] == ["d_a", "d_b_0", "y", "k"]
    assert graph.argument_names == ("d", "y", "k")
    ((name, limits),) = graph.ranges.items()
    assert limits == SymbolRange(2, 64)
    assert graph.values["d_a"] == TensorMeta("float32", (symbol(name), 5))
    assert graph.outputs[2:6] == (Ref("y"), 3, None, Ref("k"))
    assert graph.out_tree is not None and graph.in_tree is not None
    assert [*graph.out_tree.paths()][:2] == [(0, "main"), (0, "rest", 0)]
    kinds = {constant.name: (constant.kind, constant.persistent) for constant in graph.constants.values()}
    assert kinds["first.weight"] == ("parameter", True)
    assert kinds["hidden"] == ("buffer", False)
    assert kinds["halves"] == ("constant", True)
    split = next(node for node in graph.nodes if node.target.startswith("aten.split"))
    assert len(split.outputs) == 1 and len(split.results()) == 3
    linear = next(node for node in graph.nodes if node.target == "aten.linear.default")
    assert str(linear.location).startswith("first (conftest.py:")


def test_tensors(varied: ExportedProgram, varied_file: Path) -> None:
    constants = {constant.name: constant.data for constant in read_pt2(varied_file).constants.values()}
    state = varied.state_dict
    assert np.array_equal(constants["strided"].array, state["strided"].detach().numpy())
    assert np.array_equal(constants["shared"].array, state["shared"].numpy())
    assert constants["strided"].identity[0] == constants["shared"].identity[0] != constants["first.bias"].identity[0]
    assert np.array_equal(constants["hidden"].array, np.arange(10))
    bits = torch.tensor([0.5, -1.25, 3.0], dtype=torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(constants["halves"].array, bits) and constants["halves"].dtype == "bfloat16"
    assert constants["first.weight"].identity == constants["second.weight"].identity
    assert not constants["strided"].array.flags.writeable


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("decompose", [False, True])
def test_networks(strict: bool, decompose: bool, tmp_path: Path) -> None:
    program = torch.export.export(networks.build("resnet8"), networks.example("resnet8"), strict=strict)
    program = program.run_decompositions() if decompose else program
    torch.export.save(program, tmp_path / "model.pt2")
    assert_same(read_pt2(tmp_path / "model.pt2"), read_exported_program(program))


def test_converted_in_all_three_doors(tmp_path: Path) -> None:
    inputs = networks.example("golden")
    _, converted = networks.quantize(networks.build("golden"), inputs)
    program = torch.export.export(converted, inputs)
    torch.export.save(program, tmp_path / "model.pt2")
    assert_same(read_pt2(tmp_path / "model.pt2"), read_exported_program(program))
    texts = [
        [(op.name, op.properties.get("value"), [str(r.type) for r in op.results]) for op in module.walk()][2:]
        for module in (from_torch(converted), from_torch(program), from_torch(tmp_path / "model.pt2"))
    ]
    assert sorted(map(str, texts[0])) == sorted(map(str, texts[1])) == sorted(map(str, texts[2]))


def test_control_flow_is_read(tmp_path: Path) -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda t: (t * 2,), lambda t: (t - 1,), (x,))[0]  # pyright: ignore

    program = torch.export.export(Branch(), (torch.randn(3),))
    torch.export.save(program, tmp_path / "model.pt2")
    graph = read_pt2(tmp_path / "model.pt2")
    assert [node.target for node in graph.nodes] == [node.target for node in read_exported_program(program).nodes]
    assert graph.nodes == read_exported_program(program).nodes
