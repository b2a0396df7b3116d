# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guards of exports: the artifact takes the sizes that torch's own program takes, and computes the same there."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export
from torch.fx.experimental.symbolic_shapes import sym_or

import qcomp
from qcomp.dialects.dims import declared_guards
from qcomp.dialects.guard import Guard
from qcomp.frontend import read_graph
from qcomp.frontend.guard_text import read_guards
from qcomp.frontend.symbols import symbol

D = Dim.DYNAMIC
Function = Callable[[torch.Tensor], torch.Tensor]


class Net(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def program_of(function: Callable[..., Any], strict: bool = False) -> ExportedProgram:
    return export(Net(function), (torch.ones(3, 12),), dynamic_shapes=({0: D, 1: D},), strict=strict)


def branch(condition: Callable[[int, int], bool]) -> Function:
    return lambda x: x * 2 if condition(x.shape[0], x.shape[1]) else x * 3


BRANCHES: dict[str, Function] = {
    "even": branch(lambda n, m: m % 2 == 0),
    "wider": branch(lambda n, m: m > n),
    "other": branch(lambda n, m: m != n),
    "longer": branch(lambda n, m: m <= 16),
    "area": branch(lambda n, m: n * m < 100),
    "half": branch(lambda n, m: m // 2 < 8),
    "either": branch(lambda n, m: bool(sym_or(m > 20, n < 4))),
    "no_multiple": lambda x: (
        torch.cat([x, x.new_zeros(x.shape[0], (8 - x.shape[1] % 8) % 8)], 1) if x.shape[1] % 8 else x.flip(1)
    ),
}
SIZES = [(3, 12), (3, 13), (9, 4), (5, 5), (3, 30), (20, 12), (3, 16), (2, 4), (7, 22), (4, 10), (5, 8)]


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_on_sizes(name: str, tmp_path: Path):
    program = program_of(BRANCHES[name], strict=name in ("wider", "either"))
    torch.export.save(program, tmp_path / "p.pt2")
    module = qcomp.from_torch(program)
    own, refused = program.module(), 0
    for shape in SIZES:
        x = torch.randn(shape)
        try:
            expected = own(x).numpy()
        except (AssertionError, RuntimeError):
            refused += 1
            with pytest.raises(qcomp.QcompError, match=r"does not work for|allowed are"):
                qcomp.interpret(module, x.numpy())
            continue
        assert np.array_equal(expected, BRANCHES[name](x).numpy())
        assert np.array_equal(qcomp.interpret(module, x.numpy())[0], expected)
    assert refused
    # The file has the same conditions, and so has the text.
    assert _conditions(qcomp.from_torch(tmp_path / "p.pt2")) == _conditions(module)
    qcomp.save(module, tmp_path / "p.mlir")
    assert str(qcomp.parse(tmp_path / "p.mlir")) == str(module)
    # A graph module has no list of guards: what its shapes refer to has them.
    assert _conditions(qcomp.from_torch(own)) == _conditions(module)


def _conditions(module: Any) -> set[tuple[int, str]]:
    return {guard.condition for guard in declared_guards(next(iter(module.body.block.ops)))}


def test_a_violated_guard_is_named_wherever_sizes_are_given(tmp_path: Path):
    program = program_of(lambda x: x * 2 if x.shape[1] % 2 == 0 and x.shape[0] * x.shape[1] < 100 else x * 3)
    artifact = qcomp.compile(program, "generic", opt_level=1, name="net")
    artifact.save(tmp_path / "net")
    loaded = qcomp.load(tmp_path / "net")
    message = (
        r"does not work for \w+ = 13: it needs .*mod 2\) == 0, "
        r"from \(x.size\(\)\[1\] % 2\) == 0 at test_guards.py:\d+"
    )
    for run in (
        lambda: artifact(torch.ones(3, 13)),
        lambda: loaded(torch.ones(3, 13)),
        lambda: qcomp.interpret(cast(Any, artifact.module), np.ones((3, 13), np.float32)),
        lambda: qcomp.compile(program, "generic", dims={"x.1": 13}),
        lambda: qcomp.run_passes(qcomp.from_torch(program), 'specialize-dims{dims="x.1=13"}'),
    ):
        with pytest.raises(qcomp.QcompError, match=message):
            run()
    with pytest.raises(qcomp.QcompError, match=r"= 12, \w+ = 20: .* must not be negative"):
        qcomp.compile(program, "generic", dims={"x.0": 20, "x.1": 12})
    # In part: what is left is checked at the call.
    fixed = qcomp.compile(program, "generic", opt_level=0, dims={"x.1": 12})
    assert fixed(torch.ones(8, 12)).sum() == 192
    with pytest.raises(qcomp.QcompError, match=r"= 9: .* must not be negative"):
        fixed(torch.ones(9, 12))
    # C says the same of all sizes, and of such as no memory holds.
    assert loaded.library is not None
    check = ctypes.CDLL(str(loaded.library.path)).net_sizes_ok
    for n, m in product(range(-1, 12), range(-1, 30)):
        allowed = n >= 0 and m >= 0 and m % 2 == 0 and n * m < 100
        assert check(ctypes.c_int64(n), ctypes.c_int64(m)) == allowed
    assert not check(ctypes.c_int64(1 << 62), ctypes.c_int64(4))
    header = (tmp_path / "net" / "net.h").read_text()
    assert re.search(r"mod 2\) == 0  \(\(x.size\(\)\[1\] % 2\) == 0 at test_guards.py:\d+\)", header)
    assert loaded.interface.conditions == artifact.interface.conditions


class Nested(nn.Module):
    """Inputs in structures, and by name."""

    def forward(self, x: torch.Tensor, y: list[torch.Tensor], *rest: torch.Tensor, z: dict[str, torch.Tensor]) -> Any:
        sizes = x.shape[0], y[1].shape[0], rest[1].shape[0], z["q"].shape[0]
        return x * 2 if sizes[0] < sizes[1] < sizes[2] < sizes[3] else x


@pytest.mark.parametrize("strict", [False, True])
def test_guards_find_inputs_in_structures(strict: bool):
    t = [torch.ones(n) for n in (3, 4, 5, 4, 6, 7)]
    args, kwargs = (t[0], [t[3], t[1]], t[4], t[2]), {"z": {"q": t[5]}}
    one = {0: D}
    shapes = {"x": one, "y": [one, one], "rest": (one, one), "z": {"q": one}}
    program = export(Nested(), args, kwargs, dynamic_shapes=shapes, strict=strict)
    module = qcomp.from_torch(program)
    flat = [t[0], t[3], t[1], t[4], t[2], t[5]]
    assert np.array_equal(qcomp.interpret(module, *(each.numpy() for each in flat))[0], np.full(3, 2, np.float32))
    for place, size in ((0, 4), (2, 5), (4, 7), (5, 5)):
        changed = [torch.ones(size) if index == place else each for index, each in enumerate(flat)]
        with pytest.raises(qcomp.QcompError, match="must not be negative"):
            qcomp.interpret(module, *(each.numpy() for each in changed))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("__import__('os').system('x') == 0", "cannot read"),
        ("L['x'].size()[2] > 1", "cannot read"),
        ("L['y'].size()[0] > 1", "y is no input"),
        ("L['x'].data_ptr()[0] > 1", "cannot read"),
        ("L['x'].size()[0] ** 0.5 > 1.5", "is not supported"),
        ("L['x'].size()[0] > 1.5", "compared with 1.5"),
        ("L['x'].size()[0] + 1", "neither true nor false"),
        ("(" * 100 + "1 > 0" + ")" * 100, "cannot read"),
        ("torch.load('x')", "cannot read"),
        ("L['x'].size()[0] > 1 if True else 2", "cannot read"),
    ],
)
def test_guards_that_cannot_be_read_are_refused(text: str, problem: str):
    with pytest.raises(qcomp.QcompError, match=re.escape(problem)) as found:
        read_guards([(text, "")], {("x",): (symbol("s"), 4)})
    assert found.value.message.startswith("the guard ") and found.value.hint == "export with fixed sizes"


def test_readable_guards():
    sources: Any = {("x",): (symbol("s"), 4, symbol("t"))}
    texts = [
        "not (L['x'].size()[0] < max(1, L['x'].size()[2] // 3))"
        " and math.floor(2.0*torch.sym_float(L['x'].size()[0])) >= 2",
        "L['x'].stride()[0] == 4*L['x'].size()[2] and L['x'].storage_offset() == 0",
        "Ne(s, Mod(t, 5)) or 1 > 2",
    ]
    found = read_guards([(text, "m.py:3") for text in texts], sources)
    assert len(found) == 3 and all("m.py:3" in guard.note for guard in found)
    values = [{"s": s, "t": t} for s, t in product(range(7), range(12))]
    meant = [s >= max(1, t // 3) and 2 * s >= 2 and s != t % 5 for s, t in product(range(7), range(12))]
    assert [all(guard.holds(each) for guard in found) for each in values] == meant


def test_manifests_of_before_have_sizes_as_conditions():
    assert Guard.from_json([[1, ["b"]], [-1, []]]).holds({"b": 1})
    for data in ({"size": 1}, {"size": 1, "relation": "<", "note": ""}, {"size": 1, "relation": ">=", "note": 3}):
        with pytest.raises((TypeError, ValueError)):
            Guard.from_json(data)


def test_the_example_of_a_file_is_known(tmp_path: Path):
    program = program_of(lambda x: x[:, x.shape[1] - 1])
    torch.export.save(program, tmp_path / "p.pt2")
    graph = read_graph(tmp_path / "p.pt2")
    assert sorted(graph.example.values()) == [3, 12] and graph.example == read_graph(program).example
