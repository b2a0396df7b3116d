# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops on float16 and bfloat16 after `widen-halves`: in bits at all levels, contractions within the rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import three_way
from layers import Program
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32
from xdsl.ir import Attribute, SSAValue

import qcomp
from qcomp.backend.emit_c import emit_program
from qcomp.backend.target import GENERIC
from qcomp.dialects import loop, nn
from qcomp.dialects.constant import ConstantData, DataAttr
from qcomp.interpreter import interpret
from qcomp.interpreter.reference.narrow_floats import narrow, widen

HALVES = (f16, bf16)
Build = Callable[["Halves"], Sequence[SSAValue]]


class Halves(Program):
    """A program on tensors of one 16-bit type."""

    def __init__(self, element: Attribute, seed: int = 0):
        super().__init__(seed)
        self.element = element

    def real(self, *shape: int) -> SSAValue:
        """An argument of random numbers."""
        return self.given(narrow(self.rng.standard_normal(shape).astype(np.float32), self.element), self.element)

    def weight(self, *shape: int) -> SSAValue:
        """A constant of random numbers."""
        held = narrow(self.rng.standard_normal(shape).astype(np.float32), self.element)
        return self.add(nn.ConstantOp(DataAttr(ConstantData(held, self.element))))

    def kind(self, *shape: int) -> TensorType[Attribute]:
        """The type of a tensor of that shape."""
        return TensorType(self.element, shape)


def widened(module: ModuleOp) -> ModuleOp:
    """`module` as `qcomp.compile` lowers it; the passes before are held to their letters."""
    wide = module.clone()
    qcomp.run_passes(wide, "widen-halves,fold-constants{dequantize=true max-growth=1073741824},dce", verify=True)
    return wide


def norms(p: Halves) -> list[SSAValue]:
    x = p.real(5, 37)
    p.arrays[0][0, 3:6] = narrow(np.array([np.nan, np.inf, -0.0], np.float32), p.element)
    shape = (37,)
    norm = nn.LayerNormOp(x, shape, p.weight(37), p.weight(37), 1e-5)
    return [p.add(op) for op in (nn.SoftmaxOp(x, 1), nn.SoftmaxOp(x, 0), norm)]


def reductions(p: Halves) -> list[SSAValue]:
    x = p.real(3, 37, 5)
    ops = [nn.SumOp(x, (1,), True), nn.MeanOp(x, (0, 2), False), nn.AmaxOp(x, (1, 2), False), nn.AminOp(x, (0,), True)]
    return [p.add(op) for op in [*ops, nn.ProdOp(x, (2,), False), nn.ScanOp("add", x, 1)]]


def windows(p: Halves) -> list[SSAValue]:
    x = p.real(2, 6, 11, 9)
    pools = [
        nn.MaxPool2dOp(x, (3, 2), (2, 1), padding=(1, 1)), nn.AvgPool2dOp(x, (2, 3), (1, 2)),
        nn.AdaptiveAvgPool2dOp(x, (4, 2)), nn.AdaptiveMaxPool2dOp(x, (3, 4)),
        nn.MAX_POOL_INDICES[0](x, (2, 2), (2, 2)), nn.TakeOp(x, 2, (3, 0, 10, 10)),
    ]  # fmt: skip
    return [p.add(op) for op in pools]


def elements(p: Halves) -> list[SSAValue]:
    """Registers of 16, and what is left of one."""
    x, y, row = p.real(3, 41), p.real(3, 41), p.real(41)
    p.arrays[0][1, :5] = narrow(np.array([np.nan, np.inf, 7e-8, 65519.9, -1e-7], np.float32), p.element)
    total = p.add(nn.AddOp(x, p.add(nn.MulOp(y, row))))
    chosen = p.add(nn.SelectOp(p.add(nn.CompareOp("lt", x, y)), x, y))
    return [total, chosen, p.add(nn.SiluOp(total)), p.add(nn.PadOp(x, (0, 2), (1, 0), 0.3)),
            p.add(nn.CatOp([x, y, x], 1)), p.add(nn.CastOp(x, TensorType(f32, (3, 41))))]  # fmt: skip


def contractions(p: Halves) -> list[SSAValue]:
    x, image = p.real(5, 33), p.real(2, 6, 7, 9)
    ops = [
        nn.LinearOp(x, p.weight(19, 33), p.weight(19)), nn.MatmulOp(x, p.weight(33, 18)),
        nn.MatmulOp(p.real(3, 5, 33), p.real(3, 33, 21)),
        nn.Conv2dOp(image, p.weight(20, 6, 3, 3), p.weight(20), stride=(2, 1), padding=(1, 1)),
        nn.Conv2dOp(image, p.weight(6, 1, 3, 3), padding=(1, 0), groups=6),
        nn.Conv2dOp(image, p.weight(8, 3, 2, 2), groups=2),
        nn.ConvTranspose2dOp(image, p.weight(5, 6, 3, 3), stride=(2, 2)),
    ]  # fmt: skip
    return [p.add(op) for op in ops]


@pytest.mark.parametrize("element", HALVES, ids=str)
@pytest.mark.parametrize("build", [norms, reductions, windows, elements], ids=lambda build: build.__name__)
def test_in_bits(build: Build, element: Attribute) -> None:
    p = Halves(element)
    module = p.module(*build(p))
    wide = widened(module)
    expected = interpret(module, *p.arrays)
    for want, have in zip(expected, three_way.check(wide, *p.arrays), strict=True):
        assert want.tobytes() == have.tobytes()


@pytest.mark.parametrize("element", HALVES, ids=str)
def test_elements_by_all_compilers(element: Attribute) -> None:
    p = Halves(element, 1)
    module = widened(p.module(*elements(p)))
    three_way.check(module, *p.arrays, compilers=three_way.COMPILERS, loops=False)


@pytest.mark.parametrize("element", HALVES, ids=str)
def test_contractions(element: Attribute) -> None:
    """Sums in float32 in any order, rounded once: two neighbours at most, and most elements alike."""
    p = Halves(element, 2)
    module = p.module(*contractions(p))
    expected, wide = interpret(module, *p.arrays), widened(module)
    for target in three_way.TARGETS:
        lowered = three_way.lower(wide, target)
        program = emit_program(lowered, target, "net")
        loops = interpret(lowered, *p.arrays)
        code = run(program, p.arrays, expected)
        for want, in_loops, in_c in zip(expected, loops, code, strict=True):
            for have in (in_loops, in_c):
                close(want, have, element)


def run(program: object, arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> list[np.ndarray]:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        library = three_way.build(program, "gcc -O1", Path(folder))  # type: ignore[arg-type]
        return three_way.run_c(program, library, arrays, like)  # type: ignore[arg-type]


def close(want: np.ndarray, have: np.ndarray, element: Attribute) -> None:
    left, right = (widen(side, element).astype(np.float64) for side in (want, have))
    unit = 2.0 ** (-10 if element == f16 else -7)
    assert (np.abs(left - right) <= unit * np.abs(left) + 1e-4).all()
    assert (left == right).mean() > 0.97


@pytest.mark.parametrize("element", HALVES, ids=str)
def test_weights_stay_16_bits_wide(element: Attribute) -> None:
    """The kernel reads the patterns; no float32 copy is stored or made at run time."""
    p = Halves(element)
    x = p.real(3, 64)
    module = widened(p.module(p.add(nn.LinearOp(x, p.weight(96, 64))), p.add(nn.MatmulOp(x, p.weight(64, 96)))))
    for target in three_way.TARGETS:
        program = emit_program(three_way.lower(module, target), target, "net")
        sizes = [array.nbytes for array in program.constants.values() if array.size >= 64 * 96]
        assert sizes == [2 * 64 * 96] * 2
        assert program.arena_bytes < 6 * 3 * (64 + 96 + 96) + 1024


def test_a_small_constant_is_folded_and_a_large_one_is_not() -> None:
    p = Halves(bf16)
    x = p.real(64, 64)
    module = p.module(p.add(nn.LinearOp(x, p.weight(80, 64), p.weight(80))))
    kinds = [str(op.result.type) for op in widened(module).walk() if isinstance(op, nn.ConstantOp)]
    assert sorted(kinds) == ["tensor<80x64xbf16>", "tensor<80xf32>"]


def test_a_large_constant_that_is_no_weight_is_widened_where_it_is_read() -> None:
    p = Halves(f16)
    x, table = p.real(48, 64), p.weight(48, 64)
    module = p.module(p.add(nn.MatmulOp(table, p.add(nn.PermuteOp(x, (1, 0))))), p.add(nn.SoftmaxOp(table, 1)))
    lowered = three_way.lower(widened(module), GENERIC)
    assert any(isinstance(op, loop.WidenHalfOp) for op in lowered.walk())
    for want, have in zip(interpret(module, *p.arrays), interpret(lowered, *p.arrays), strict=True):
        close(want, have, f16)
