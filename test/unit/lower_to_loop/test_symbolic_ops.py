# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops over symbolic sizes: C on both targets and loops against the reference, in bits, sizes 0 and 1 among them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import deep
import numpy as np
import pytest

import qcomp
from qcomp.backend.compile import emit_module
from qcomp.transforms.pipeline import run_passes

TARGETS = ("generic", "native")
A = "!quant.uniform<u8:f32, 0.02:114>"
C = "!quant.uniform<i8:f32, 0.05:-9>"
DIMS = "#nn.dims<"


class Text:
    """A module in text: arguments and results by name, types by their sizes."""

    def __init__(self, symbols: str):
        self.symbols = symbols
        self.arguments: list[str] = []
        self.results: list[tuple[str, str]] = []
        self.lines: list[str] = []

    @staticmethod
    def type(sizes: str, element: str = "f32") -> str:
        parts = [part.strip() for part in sizes.split(",")] if sizes else []
        dims = "".join(f"{part if part.isdigit() else '?'}x" for part in parts)
        symbolic = not all(part.isdigit() for part in parts)
        return f"tensor<{dims}{element}{f', #nn.dims<[{sizes}]>' if symbolic else ''}>"

    def input(self, name: str, sizes: str, element: str = "f32") -> str:
        self.arguments.append(f'%{name}: {self.type(sizes, element)} {{nn.name = "{name}"}}')
        return self.type(sizes, element)

    def op(self, text: str, kinds: str, sizes: str, element: str = "f32", arrow: str = "({}) -> {}") -> None:
        """`text` with operand types `kinds`; the result has a name of its own and is returned."""
        name, kind = f"r{len(self.results)}", self.type(sizes, element)
        self.lines.append(f"  %{name} = {text} : {arrow.format(kinds, kind)}")
        self.results.append((name, kind))

    def module(self) -> Any:
        kinds = ", ".join(kind for _, kind in self.results)
        names = ", ".join(f"%{name}" for name, _ in self.results)
        head = f"func.func @main({', '.join(self.arguments)}) -> ({kinds})"
        body = "\n".join(self.lines)
        return qcomp.parse(
            f"{head} attributes {{nn.symbols = [{self.symbols}]}} {{\n{body}\n  func.return {names} : {kinds}\n}}\n"
        )


def selections() -> Text:
    """Searches, orders and running totals along and beside a symbolic dimension."""
    t = Text("#nn.symbol<b, 0, 40>, #nn.symbol<s, 1, 90>")
    x = t.input("x", "b, 3, s")
    q = t.input("q", "b, s", A)
    for dim, reduced in ((2, "b, 3"), (1, "b, s")):
        for name in ("nn.argmax", "nn.argmin"):
            t.op(f"{name} %x {{dim = array<i64: {dim}>, keepdim = false}}", x, reduced, "i64", "{} -> {}")
        for name in ("nn.amax", "nn.amin", "nn.prod"):
            t.op(f"{name} %x {{dim = array<i64: {dim}>, keepdim = false}}", x, reduced, "f32", "{} -> {}")
        for descending in ("true", "false"):
            text = f"nn.argsort %x {{dim = {dim} : i64, descending = {descending}}}"
            t.op(text, x, "b, 3, s", "i64", "{} -> {}")
        for kind, element in (("add", "f32"), ("max", "f32"), ("argmin", "i64")):
            t.op(f'nn.scan "{kind}", %x {{dim = {dim} : i64}}', x, "b, 3, s", element, "{} -> {}")
    t.op("nn.argsort %x {dim = 0 : i64, descending = true}", x, "b, 3, s", "i64", "{} -> {}")
    t.op('nn.scan "add", %x {dim = 0 : i64}', x, "b, 3, s", "f32", "{} -> {}")
    t.op("nn.argmax %q {dim = array<i64: 1>, keepdim = true}", q, "b, 1", "i64", "{} -> {}")
    t.op("nn.amax %q {dim = array<i64: 1>, keepdim = true}", q, "b, 1", A, "{} -> {}")
    return t


def averages() -> Text:
    """Sums and means of codes: of a bounded count in 32 bits, of any in 64."""
    t = Text("#nn.symbol<b, 0, 40>, #nn.symbol<h, 0, 90>, #nn.symbol<n, 0>")
    q = t.input("q", "b, 20, h, n", A)
    r = t.input("r", "b, h, 5", C)
    for name in ("nn.sum", "nn.mean"):
        for axes, sizes in (("2, 3", "b, 20"), ("1", "b, h, n"), ("3", "b, 20, h"), ("0, 1", "h, n")):
            for element in ("f32", C):
                t.op(f"{name} %q {{dim = array<i64: {axes}>, keepdim = false}}", q, sizes, element, "{} -> {}")
        for axes, sizes in (("1", "b, 5"), ("1, 2", "b"), ("0", "h, 5")):
            t.op(f"{name} %r {{dim = array<i64: {axes}>, keepdim = false}}", r, sizes, A, "{} -> {}")
    return t


def moves() -> Text:
    """Elements picked and written by indices, parts written over."""
    t = Text("#nn.symbol<b, 0, 40>, #nn.symbol<s, 1, 90>")
    x, i = t.input("x", "b, s, 5"), t.input("i", "b, 4, 1", "i64")
    j, u = t.input("j", "4", "i64"), t.input("u", "b, 4, 5")
    k, q = t.input("k", "1, s, 1", "i64"), t.input("q", "b, s, 5", C)
    t.op("nn.gather %x[%i] {dim = 1 : i64}", f"{x}, {i}", "b, 4, 5")
    t.op("nn.gather %q[%i] {dim = 1 : i64}", f"{q}, {i}", "b, 4, 5", C)
    t.op("nn.gather %u[%k] {dim = 1 : i64}", f"{u}, {k}", "b, s, 5")
    for reduce in ("none", "add", "max"):
        text = f'nn.scatter %u into %x[%i] {{dim = 1 : i64, reduce = "{reduce}"}}'
        t.op(text, f"{x}, {i}, {u}", "b, s, 5")
    t.lines.append(f"  %c = nn.index_copy %u into %x[%j] {{dim = 1 : i64}} : {u} into {x}[{j}] -> {x}")
    t.results.append(("c", x))
    part = t.input("p", "b, 1, 5")
    for name, start in (("d", "#nn.dim<s - 1>"), ("e", "0 : i64")):
        t.lines.append(
            f"  %{name} = nn.insert_slice %p into %x {{dim = 1 : i64, start = {start}, step = 1 : i64}} : "
            f"{part} into {x} -> {x}"
        )
        t.results.append((name, x))
    return t


def recurrent(reverse: str) -> Text:
    """Layers over any number of steps, which torch's exports fix."""
    t = Text("#nn.symbol<t, 0, 90>, #nn.symbol<b, 0, 90>")
    gates, three, one = (t.input(f"x{n}", f"t, b, {n * 3}") for n in (4, 3, 1))
    hidden, cell = t.input("h", "b, 3"), t.input("c", "b, 3")
    kinds = {n: Text.type(f"{n * 3}, 3") for n in (4, 3, 1)}
    for n, kind in kinds.items():
        values = ", ".join(f"[{', '.join(f'{0.1 * (i - j) - 0.03 * n:.3f}' for j in range(3))}]" for i in range(n * 3))
        t.lines.append(f"  %w{n} = nn.constant dense<[{values}]> : {kind}")
    flag = f"{{reverse = {reverse}}}"
    t.op(f"nn.lstm %x4, %h, %c, %w4 {flag}", f"{gates}, {hidden}, {cell}, {kinds[4]}", "t, b, 6", arrow="({}) -> {}")
    t.op(f"nn.gru %x3, %h, %w3 {flag}", f"{three}, {hidden}, {kinds[3]}", "t, b, 3")
    t.op(
        f'nn.rnn %x1, %h, %w1 {{nonlinearity = "tanh", reverse = {reverse}}}', f"{one}, {hidden}, {kinds[1]}", "t, b, 3"
    )
    return t


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reverse", ["false", "true"])
def test_recurrent_layers_over_any_time(reverse: str, target: str):
    module = recurrent(reverse).module()
    artifact = qcomp.compile(module, target=target)
    for number, sizes in enumerate(SIZES):
        arrays = inputs(module, dict(zip(("t", "b"), sizes, strict=True)), number)
        for one, other in zip(artifact.run(arrays), qcomp.interpret(module, *arrays), strict=True):
            assert one.shape == other.shape and np.allclose(one, other, rtol=1e-5, atol=1e-6), sizes


PROGRAMS = {"selections": selections, "averages": averages, "moves": moves}
SIZES = ((2, 7), (0, 3), (1, 1), (7, 2), (2, 33), (33, 64))


def inputs(module: Any, sizes: dict[str, int], seed: int) -> list[np.ndarray]:
    """Random arguments; integers are places from 0 to 0 or to the least of the sizes of s and 4."""
    from qcomp.backend.signature import interface_of

    rng, found = np.random.default_rng(seed), list[np.ndarray]()
    for port in interface_of(module).at(sizes).inputs:
        if port.dtype == "float32":
            found.append(np.round(rng.standard_normal(port.shape).astype(np.float32), 1))
        elif port.dtype == "int64":
            found.append(rng.integers(0, min(sizes.get("s", 4), 4), port.shape))
        else:
            found.append(rng.integers(port.low, port.high + 1, port.shape).astype(port.dtype))
    return found


@pytest.mark.parametrize("name, target", deep.in_turn(PROGRAMS, TARGETS))
def test_ops_over_symbols(name: str, target: str):
    module = PROGRAMS[name]().module()
    artifact = qcomp.compile(module, target=target, opt_level=1)
    loops = emit_module(module.clone(), target, 1, "net").module.clone()
    run_passes(loops, f"lower-to-loop{{target={artifact.manifest.target}}},plan-memory")
    names = [symbol.name for symbol in artifact.interface.symbols]
    for number, sizes in enumerate(SIZES):
        values = dict(zip(names, (*sizes, 3), strict=False))
        arrays = inputs(module, values, number)
        want = qcomp.interpret(module, *arrays)
        for place, (one, other) in enumerate(zip(artifact.run(arrays), want, strict=True)):
            assert one.shape == other.shape and one.tobytes() == other.tobytes(), (sizes, place)
        if number < 3:
            for place, (one, other) in enumerate(zip(qcomp.interpret(loops, *arrays), want, strict=True)):
                assert one.tobytes() == other.tobytes(), (sizes, place)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_c_over_symbols_is_free_of_warnings(name: str, target: str, tmp_path: Path):
    program = emit_module(PROGRAMS[name]().module(), target, 1, "net").program
    (tmp_path / "net.c").write_text(program.source)
    (tmp_path / "net.h").write_text(program.header)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "net.c", "-o", "net.o"]
    done = subprocess.run(["gcc", *flags], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
