# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files from strangers: each is read right or refused in one error, never a traceback, a hang or a wrong tensor."""

from __future__ import annotations

import gc
import json
import random
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import qcomp
from qcomp.errors import QcompError
from qcomp.frontend import archive, builder, from_torch
from qcomp.frontend.pt2 import read_pt2
from qcomp.interpreter.run import interpret

Edit = Callable[..., Path]
WEIGHTS = "data/weights/model_weights_config.json"


def refused(path: Path | str, match: str, code: str | None = None) -> None:
    with pytest.raises(QcompError, match=match) as caught:
        from_torch(path)
    if code is not None:
        assert caught.value.code == code
    assert len(str(caught.value)) < 2000


def same_result(path: Path, original: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert np.array_equal(interpret(from_torch(path), x)[0], interpret(from_torch(original), x)[0])


def meta_of(config: Any, name: str = "weight") -> Any:
    return config["config"][name]["tensor_meta"]


def test_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.pt2", "cannot read nothing.pt2", "unreadable-file")
    refused(tmp_path, "cannot read", "unreadable-file")


@pytest.mark.parametrize("content", [b"", b"PK", b"hello", b"\x80\x02}q\x00.", b"PK\x03\x04" + b"\0" * 100])
def test_not_an_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pt2").write_bytes(content)
    refused(tmp_path / "x.pt2", "x.pt2")


def test_other_formats(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "checkpoint.pt")
    refused(tmp_path / "checkpoint.pt", "checkpoint or TorchScript", "legacy-format")
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as old:
        old.writestr("serialized_exported_program.json", "{}")
        old.writestr("serialized_state_dict.pt", b"")
    refused(tmp_path / "old.pt2", "save it again", "legacy-format")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "x")
    refused(tmp_path / "other.zip", "not a .pt2 archive")


@pytest.mark.parametrize(("major", "code"), [(9, "newer-schema"), (7, "legacy-format")])
def test_schema_version(rewrite_json: Edit, major: int, code: str) -> None:
    path = rewrite_json(lambda program: program["schema_version"].update(major=major))
    refused(path, rf"schema {major}\.\d+ \(torch 2", code)


def test_newer_minor_version_and_unknown_fields(rewrite_json: Edit, small_file: Path) -> None:
    def edit(program: Any) -> None:
        program["schema_version"]["minor"] = 99
        program["new_field"] = {"x": 1}
        program["graph_module"]["graph"]["nodes"][0]["new_field"] = None

    same_result(rewrite_json(edit), small_file)


def test_files_are_closed(small_file: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.pt2").write_bytes(small_file.read_bytes()[:-40])
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from_torch(small_file)
        refused(tmp_path / "damaged.pt2", "damaged")
        gc.collect()
    assert not [str(item.message) for item in caught if issubclass(item.category, ResourceWarning)]


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_cut_off(small_file: Path, keep: float) -> None:
    content = small_file.read_bytes()
    small_file.write_bytes(content[: int(len(content) * keep)])
    refused(small_file, "small.pt2")


@pytest.mark.parametrize(
    "name", ["data/weights/weight_0", WEIGHTS, "models/model.json", "data/constants/model_constants_config.json"]
)
def test_missing_member(rewrite: Edit, name: str) -> None:
    refused(rewrite(lambda members: members.pop(name)), "lacks|no exported program")


def test_zipped_again_with_compression(small_file: Path, rewrite: Edit) -> None:
    same_result(rewrite(lambda members: None, zipfile.ZIP_DEFLATED), small_file)
    same_result(rewrite(lambda members: members.pop("data/sample_inputs/model.pt")), small_file)


def test_damaged_weight(small_file: Path) -> None:
    content = bytearray(small_file.read_bytes())
    with zipfile.ZipFile(small_file) as source:
        info = next(info for info in source.infolist() if info.filename.endswith("weight_0"))
    start = content.index(archive_bytes(small_file, info.filename), info.header_offset)
    content[start] ^= 1
    small_file.write_bytes(content)
    refused(small_file, "does not match its checksum")


def archive_bytes(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as source:
        return source.read(name)


def test_header_offset_outside(small_file: Path) -> None:
    content = bytearray(small_file.read_bytes())
    end = content.rindex(b"PK\x05\x06")
    position = struct.unpack_from("<I", content, end + 16)[0]
    while content[position : position + 4] == b"PK\x01\x02":
        name, extra, comment = struct.unpack_from("<HHH", content, position + 28)
        struct.pack_into("<I", content, position + 42, 0x7FFFFF00)
        position += 46 + name + extra + comment
    small_file.write_bytes(content)
    refused(small_file, "small.pt2")


@pytest.mark.parametrize(
    "edit",
    [
        lambda meta: meta.update(sizes=[{"as_int": 1 << 40}, {"as_int": 3}]),
        lambda meta: meta.update(storage_offset={"as_int": 7}),
        lambda meta: meta.update(storage_offset={"as_int": -1}),
        lambda meta: meta.update(strides=[{"as_int": -3}, {"as_int": 1}]),
        lambda meta: meta.update(strides=[{"as_int": 1}]),
        lambda meta: meta.update(sizes=[{"as_int": "2"}, {"as_int": 3}]),
        lambda meta: meta.update(sizes=None),
        lambda meta: meta.update(dtype=8),
        lambda meta: meta.update(dtype=99),
        lambda meta: meta.update(layout=2),
        lambda meta: meta.clear(),
    ],
)
def test_bad_tensor_meta(rewrite_json: Edit, edit: Callable[[Any], object]) -> None:
    refused(rewrite_json(lambda config: edit(meta_of(config)), WEIGHTS), ".")


def test_expanded_tensor_bomb(rewrite_json: Edit) -> None:
    def edit(config: Any) -> None:
        meta_of(config).update(sizes=[{"as_int": 1 << 20}] * 2, strides=[{"as_int": 0}] * 2)

    refused(rewrite_json(edit, WEIGHTS), "too much data", "archive-bomb")


def test_expanded_tensor(rewrite_json: Edit) -> None:
    path = rewrite_json(lambda config: meta_of(config).update(strides=[{"as_int": 0}, {"as_int": 1}]), WEIGHTS)
    weight = next(c for c in read_pt2(path).constants.values() if c.name == "weight").data.array
    assert weight.shape == (2, 3) and np.array_equal(weight[0], weight[1])


def test_pickled_weight_is_never_loaded(rewrite_json: Edit, rewrite: Edit) -> None:
    path = rewrite_json(lambda config: config["config"]["weight"].update(use_pickle=True), WEIGHTS)
    refused(path, "pickled object", "pickled")
    refused(rewrite(lambda members: members.update({"data/weights/model.pt": b""})), "pickled weights", "pickled")


def test_record_outside_the_archive(rewrite_json: Edit) -> None:
    path = rewrite_json(lambda config: config["config"]["weight"].update(path_name="../../../etc/passwd"), WEIGHTS)
    refused(path, "lacks", "missing-record")


def test_deflate_bomb(rewrite: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_INFLATE_FLOOR", 16 << 20)
    path = rewrite(lambda members: members.update({"models/model.json": b" " * (90 << 20)}), zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    refused(path, "inflates to more", "archive-bomb")


@pytest.mark.parametrize(
    "text", ["[" * 200000, '{"a":' * 50000, "[" + "{}," * 3_100_000 + "{}]", "\xff", "{", "[1e999]"]
)
def test_hostile_json(rewrite: Edit, text: str) -> None:
    refused(rewrite(lambda members: members.update({"models/model.json": text.encode("latin1")})), ".")


def test_two_members_of_one_name(small_file: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(small_file, "a") as target:
        target.writestr(target.namelist()[0], b"x")
    refused(small_file, "two members of one name")


def test_several_models(rewrite: Edit) -> None:
    def edit(members: dict[str, bytes]) -> None:
        members["models/other.json"] = members["models/third.json"] = members.pop("models/model.json")

    refused(rewrite(edit), "several models: other, third")


def test_code_in_a_size(rewrite_json: Edit, tmp_path: Path) -> None:
    def edit(program: Any) -> None:
        text = f"__import__('pathlib').Path({str(tmp_path / 'pwned')!r}).touch()"
        sizes = program["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"]
        sizes[0] = {"as_expr": {"expr_str": text, "hint": None}}

    refused(rewrite_json(edit), "symbolic size")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    "edit",
    [
        lambda graph: graph["nodes"][0]["inputs"][0].update(arg={"as_tensor": {"name": "nobody"}}),
        lambda graph: graph["nodes"][0].update(inputs=[]),
        lambda graph: graph["nodes"][0]["outputs"].append({"as_tensor": {"name": "more"}}),
        lambda graph: graph["nodes"][0].update(outputs=[{"as_int": 3}]),
        lambda graph: graph["outputs"][0].update(as_tensor={"name": "nobody"}),
        lambda graph: graph["inputs"].pop(),
        lambda graph: graph["tensor_values"].pop("input"),
        lambda graph: graph.pop("nodes"),
        lambda graph: graph["nodes"][0].update(target=7),
        lambda graph: graph["nodes"][0].update(target="aten.linear.default\n\x1b[31mred"),
        lambda graph: graph["tensor_values"]["linear"].update(dtype=8),
        lambda graph: nest(graph, 40),
    ],
)
def test_inconsistent_graph(rewrite_json: Edit, edit: Callable[[Any], object]) -> None:
    refused(rewrite_json(lambda program: edit(program["graph_module"]["graph"])), ".")


def nest(graph: Any, depth: int) -> None:
    """Put a subgraph into a subgraph, `depth` times."""
    inner = json.dumps(graph)
    for _ in range(depth):
        outer = json.loads(json.dumps(graph | {"nodes": graph["nodes"][:1]}))
        outer["nodes"][0]["inputs"][0]["arg"] = {"as_graph": {"name": "g", "graph": json.loads(inner)}}
        inner = json.dumps(outer)
    graph.update(json.loads(inner))


def test_names_with_code_in_them(rewrite_json: Edit, small_file: Path) -> None:
    name = '../x"); system("id"); //\n'

    def edit(program: Any) -> None:
        graph = program["graph_module"]["graph"]
        graph["tensor_values"][name] = graph["tensor_values"].pop("input")
        program["graph_module"]["signature"]["input_specs"][-1]["user_input"]["arg"]["as_tensor"]["name"] = name
        graph["inputs"][-1]["as_tensor"]["name"] = name
        graph["nodes"][0]["inputs"][0]["arg"]["as_tensor"]["name"] = name

    path = rewrite_json(edit)
    same_result(path, small_file)
    assert from_torch(path).body.block.first_op is not None
    qcomp.parse(write(from_torch(path), path.with_suffix(".mlir")))


def write(module: Any, path: Path) -> Path:
    qcomp.save(module, path)
    return path


def test_more_than_there_is_room_for(rewrite_json: Edit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks take time quadratic in their arguments; a node of a few characters makes a large sequence."""

    def many_inputs(program: Any) -> None:
        graph = program["graph_module"]["graph"]
        spec = program["graph_module"]["signature"]["input_specs"][-1]
        program["graph_module"]["signature"]["input_specs"] += [spec] * 9000
        graph["inputs"] += [graph["inputs"][-1]] * 9000

    refused(rewrite_json(many_inputs), "takes 9001 inputs")

    class Sequence(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x, torch.arange(100), torch.arange(101)

    program = torch.export.export(Sequence(), (torch.ones(1),))
    from_torch(program)
    monkeypatch.setattr(builder, "MAX_COMPUTED_BYTES", 1000)
    with pytest.raises(QcompError, match="constants of 1608 bytes"):
        from_torch(program)


def test_many_refusals(rewrite_json: Edit) -> None:
    def edit(program: Any) -> None:
        graph = program["graph_module"]["graph"]
        node, meta = json.dumps(graph["nodes"][0]), graph["tensor_values"]["input"]
        graph["nodes"] = []
        for index in range(4000):
            name = "input" if index == 0 else f"v{index - 1}"
            graph["nodes"].append({
                **json.loads(node), "target": f"torch.ops.aten.nosuch{index}.default",
                "inputs": [{"name": "self", "arg": {"as_tensor": {"name": name}}, "kind": 1}],
                "outputs": [{"as_tensor": {"name": f"v{index}"}}],
            })  # fmt: skip
            graph["tensor_values"][f"v{index}"] = meta
        graph["outputs"] = [{"as_tensor": {"name": "v3999"}}]

    refused(rewrite_json(edit), "20[0-9]{2} ops of the program cannot be imported")


def test_byte_mutants(small_file: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    original = small_file.read_bytes()
    path = tmp_path / "mutant.pt2"
    for _ in range(150):
        content = bytearray(original)
        for _ in range(rng.choice((1, 1, 2, 8))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
        try:
            from_torch(path)
        except QcompError:
            pass


def test_json_mutants(rewrite_json: Edit) -> None:
    rng = random.Random(1)
    values: list[Any] = [None, -1, 0, 3, 1 << 70, 1.5, "", "s0", [], {}, True, [[]], {"as_int": -7}, "NaN"]
    for _ in range(150):

        def edit(program: Any) -> None:
            place = program
            while isinstance(place, dict | list) and place:
                key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
                if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.1:
                    place[key] = rng.choice(values)
                    return
                place = place[key]

        try:
            from_torch(rewrite_json(edit))
        except QcompError:
            pass
