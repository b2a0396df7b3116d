# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gather, scatter, sorting, running totals and reductions in order: equal in bits at all levels, for all elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_programs import program, quantized
from three_way import check
from xdsl.dialects.builtin import IntegerType, TensorType, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute

from qcomp.dialects import nn
from qcomp.dialects.element import is_float, numpy_dtype, ui8
from qcomp.dialects.nn.indexing import SCANS, SCATTERS
from qcomp.dialects.quant import Encoding
from qcomp.interpreter.reference.narrow_floats import narrow

Array = np.ndarray[Any, np.dtype[Any]]
ELEMENTS = [f32, f64, f16, i1, ui8, i64]
SHAPE = (3, 5, 18)


def sample(element: Attribute, *shape: int) -> Array:
    rng = np.random.default_rng(4)
    if isinstance(element, IntegerType):
        dtype: Any = numpy_dtype(element)
        return (rng.integers(0 if dtype.kind != "i" else -5, 2 if dtype.kind == "b" else 6, shape)).astype(dtype)
    values = np.round(rng.standard_normal(shape) * 2, 1)
    values.reshape(-1)[:5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    return values if element == f64 else narrow(values.astype(np.float32), element)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_all_levels_agree(element: Attribute):
    half = is_float(element) and str(element) in ("f16", "bf16")

    def build(add: Any, x: Any, i: Any, row: Any) -> list[Any]:
        results: list[Any] = [add(nn.GatherOp(x, i, 1)), add(nn.GatherOp(x, row, 1))]
        source = add(nn.SliceOp(x, 1, 0, 4))
        kinds = [kind for kind in SCATTERS if (not half and element != i1) or kind == "none"]
        results += [add(nn.ScatterOp(x, i, source, 1, kind)) for kind in kinds]
        results += [add(nn.ArgsortOp(x, dim, down)) for dim, down in ((0, False), (1, True), (2, False))]
        whole = isinstance(element, IntegerType)
        scans = [kind for kind in SCANS if not (kind == "logaddexp" and (whole or element == f64))]
        scans = [kind for kind in scans if kind != "add" or element != i1]
        results += [add(nn.ScanOp(kind, x, place % 3)) for place, kind in enumerate(scans)]
        for op in (nn.AminOp, nn.ProdOp):
            results += [add(op(x, (1,), True)), add(op(x, (), False))]
        results += [add(op(x, dim, dim == 0)) for op in (nn.ArgmaxOp, nn.ArgminOp) for dim in range(3)]
        if whole:
            results += [add(op(x, (0, 2), False)) for op in (nn.AmaxOp, *([] if element == i1 else [nn.SumOp]))]
        return results

    indices = np.random.default_rng(5).integers(0, 5, (3, 4, 18))
    kinds = [TensorType(element, SHAPE), TensorType(i64, (3, 4, 18)), TensorType(i32, (1, 5, 1))]
    rows = np.array([4, 0, 3, 3, 1], np.int32).reshape(1, 5, 1)
    check(program(build, *kinds), sample(element, *SHAPE), indices, rows)


def test_codes_are_picked_as_they_are():
    encoding = Encoding.make(0.5, 3)
    kinds = [quantized(encoding, 4, 20), TensorType(i64, (3, 1))]

    def build(add: Any, x: Any, i: Any) -> list[Any]:
        return [add(nn.GatherOp(x, i, 0)), add(nn.ArgmaxOp(x, 1, False)), add(nn.ArgsortOp(x, 1, True))]

    codes = np.random.default_rng(1).integers(-128, 128, (4, 20)).astype(np.int8)
    found = check(program(build, *kinds), codes, np.array([[2], [0], [2]]))
    assert np.array_equal(found[0], codes[[2, 0, 2]])


@pytest.mark.parametrize("size", [0, 1, 2, 31])
def test_sizes_of_sorted_lines(size: int):
    def build(add: Any, x: Any) -> list[Any]:
        return [add(nn.ArgsortOp(x, 0, False)), add(nn.ArgsortOp(x, 0, True)), add(nn.ScanOp("max", x, 0))]

    check(program(build, TensorType(f32, (size,))), sample(f32, max(size, 5))[:size].copy())


def test_indices_outside_stay_inside_in_compiled_code():
    from three_way import lower

    from qcomp.backend.target import GENERIC
    from qcomp.interpreter import interpret

    def build(add: Any, x: Any, i: Any) -> Any:
        return add(nn.GatherOp(x, i, 0))

    module = program(build, TensorType(f32, (4,)), TensorType(i64, (3,)))
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(Exception, match="indices outside 0 to 3"):
        interpret(module, x, np.array([4, -1, 2]))
    assert interpret(lower(module, GENERIC), x, np.array([99, -7, 2]))[0].tolist() == [3.0, 0.0, 2.0]
