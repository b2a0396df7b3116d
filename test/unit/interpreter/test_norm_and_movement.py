# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and softmax against float64; data movement against numpy and torch, on floats and on codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, random_codes, same_bits
from xdsl.dialects.builtin import TensorType, bf16, f32, i64

from qcomp.dialects import nn
from qcomp.dialects.nn.base import UNKNOWN
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp
from qcomp.errors import QcompError
from qcomp.interpreter import interpret
from qcomp.interpreter.reference import movement, norm

torch: Any = pytest.importorskip("torch")
KIND = Encoding.make(0.0213, 77, signed=False)
OTHER = Encoding.make(0.0341, -19)


def draw(seed: int, *shape: int) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, True), (False, False)])
def test_batch_norm(affine: tuple[bool, bool]):
    x, mean = draw(1, 4, 3, 5, 6), draw(2, 3)
    var, weight, bias = np.abs(draw(3, 3)), draw(4, 3), draw(5, 3)
    chosen = weight if affine[0] else None, bias if affine[1] else None
    ours = norm.batch_norm(x, mean, var, *chosen, 1e-3)
    tensors = [None if array is None else torch.from_numpy(array).double() for array in (x, mean, var, *chosen)]
    exact = torch.nn.functional.batch_norm(*tensors, eps=1e-3).numpy()
    np.testing.assert_allclose(ours, exact, rtol=2.0**-21, atol=1e-6)


@pytest.mark.parametrize("affine", [(True, True), (True, False), (False, True), (False, False)])
def test_layer_norm(affine: tuple[bool, bool]):
    x, weight, bias = draw(1, 4, 3, 5, 6) * 3 + 7, draw(4, 5, 6), draw(5, 5, 6)
    chosen = weight if affine[0] else None, bias if affine[1] else None
    ours = norm.layer_norm(x, 2, *chosen, 1e-5)
    tensors = [None if array is None else torch.from_numpy(array).double() for array in (x, *chosen)]
    exact = torch.nn.functional.layer_norm(tensors[0], (5, 6), *tensors[1:], eps=1e-5).numpy()
    np.testing.assert_allclose(ours, exact, rtol=2.0**-21, atol=1e-6)
    wide = norm.layer_norm(x.astype(np.float64), 2, *chosen, 1e-5)
    np.testing.assert_allclose(wide, exact, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int):
    x = draw(1, 4, 3, 5) * 30
    ours = norm.softmax(x, axis)
    exact = torch.softmax(torch.from_numpy(x).double(), axis).numpy()
    # What the difference to the largest is rounded by comes out as a relative error.
    bound = 2.0**-22 + 2.0**-23 * (x.max(axis=axis, keepdims=True) - x)
    assert (np.abs(ours - exact) <= bound * exact + 1e-44).all()
    x[1, 2] = -np.inf
    x[2, 1, 3], x[3, 0, 0] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        ours = norm.softmax(x, axis)
    assert np.array_equal(np.isnan(ours), np.isnan(torch.softmax(torch.from_numpy(x), axis).numpy()))


def test_norm_ops_take_their_roles():
    x, mean, var, weight, bias = draw(1, 2, 3, 4), draw(2, 3), np.abs(draw(3, 3)), draw(4, 3), draw(5, 3)

    def build(add: Any, value: Any) -> Any:
        m, v, w, b = (add(constant(array)) for array in (mean, var, weight, bias))
        last = add(constant(draw(6, 4)))
        return [
            add(nn.BatchNormOp(value, m, v, w, b, 0.5)), add(nn.BatchNormOp(value, m, v, None, b, 0.5)),
            add(nn.LayerNormOp(value, (4,), None, last, 0.5)), add(nn.LayerNormOp(value, (4,), last, None, 0.5)),
            add(nn.SoftmaxOp(value, 1)),
        ]  # fmt: skip

    module = program(build, floats(2, 3, 4))
    for ours, torchs in zip(interpret(module, x), interpret(module, x, evaluator="torch"), strict=True):
        np.testing.assert_allclose(ours, torchs, rtol=1e-5, atol=1e-6)


MOVES: dict[str, Any] = {
    "reshape": lambda x, *t: nn.ReshapeOp(x, [6, 20], *t),
    "permute": lambda x, *t: nn.PermuteOp(x, [2, 0, 3, 1], *t),
    "expand": lambda x, *t: nn.ExpandOp(x, [7, 2, 3, 4, 5], *t),
    "slice": lambda x, *t: nn.SliceOp(x, 3, 1, 3, 1, *t),
    "slice_step": lambda x, *t: nn.SliceOp(x, 2, 0, 3, 2, *t),
    "cat": lambda x, *t: nn.CatOp([x, x, x], 1, *t),
    "pad": lambda x, *t: nn.PadOp(x, [0, 1, 0, 2], [3, 0, 0, 1], -0.7, *t),
}


@pytest.mark.parametrize("name", MOVES)
def test_movement(name: str):
    """The bits of torch on floats, NaN included; codes move unchanged, or are requantized to another encoding."""
    x = draw(1, 2, 3, 4, 5)
    x[1, 2, 3, 4] = np.nan
    module = program(lambda add, value: add(MOVES[name](value)), floats(2, 3, 4, 5))
    ours = interpret(module, x)[0]
    assert same_bits(ours, interpret(module, x, evaluator="torch")[0])
    if name != "pad":
        narrow = program(lambda add, value: add(MOVES[name](value)), floats(2, 3, 4, 5, element=bf16))
        bits = np.arange(0x3F80, 0x3F80 + 120, dtype=np.uint16).reshape(2, 3, 4, 5)
        assert same_bits(interpret(narrow, bits)[0], interpret(narrow, bits, evaluator="torch")[0])

    def build(add: Any, value: Any) -> Any:
        results: list[Any] = []
        for target in (KIND, OTHER):
            plain = add(QuantizeOp(add(MOVES[name](add(DequantizeOp(value)))), target))
            results += [add(MOVES[name](value, plain.type)), plain]
        return results

    codes = random_codes(np.random.default_rng(2), KIND, 2, 3, 4, 5)
    results = interpret(program(build, quantized(KIND, 2, 3, 4, 5)), codes)
    assert same_bits(results[0], results[1]) and same_bits(results[2], results[3])


def test_permute_carries_per_channel_codes():
    kind = Encoding.make([0.1, 0.2, 0.3], [3, -4, 5], axis=1)
    codes = random_codes(np.random.default_rng(3), kind, 2, 3, 4)
    module = program(
        lambda add, x: add(nn.PermuteOp(x, [2, 0, 1], quantized(kind.with_axis(2), 4, 2, 3))), quantized(kind, 2, 3, 4)
    )
    assert same_bits(interpret(module, codes)[0], np.ascontiguousarray(codes.transpose(2, 0, 1)))


def test_cat_of_different_encodings():
    a, b = random_codes(np.random.default_rng(3), KIND, 2, 3), random_codes(np.random.default_rng(4), OTHER, 4, 3)

    def build(add: Any, x: Any, y: Any) -> Any:
        plain = add(QuantizeOp(add(nn.CatOp([add(DequantizeOp(x)), add(DequantizeOp(y))], 0)), OTHER))
        return add(nn.CatOp([x, y], 0, plain.type)), plain

    fused, plain = interpret(program(build, quantized(KIND, 2, 3), quantized(OTHER, 4, 3)), a, b)
    assert same_bits(fused, plain) and same_bits(fused[2:], b)


def test_embedding():
    table, indices = draw(1, 11, 5), np.array([[0, 10, 3], [3, 7, 1]])
    kinds = (floats(11, 5), TensorType(i64, [2, 3]))
    module = program(lambda add, w, i: add(nn.EmbeddingOp(w, i)), *kinds)
    assert same_bits(interpret(module, table, indices)[0], table[indices])
    for bad in (11, -1):
        with pytest.raises(QcompError, match="indices outside 0 to 10") as caught:
            interpret(module, table, np.full((2, 3), bad))
        assert caught.value.op == "nn.embedding"
    rows = Encoding.make(np.linspace(0.1, 0.9, 11), np.arange(11), axis=0)
    codes = random_codes(np.random.default_rng(5), rows, 11, 5)
    module = program(
        lambda add, i: [
            add(nn.EmbeddingOp(add(constant(codes, rows)), i, floats(2, 3, 5))),
            add(nn.EmbeddingOp(add(DequantizeOp(add(constant(codes, rows)))), i)),
        ],
        kinds[1],
    )
    fused, plain = interpret(module, indices)
    assert same_bits(fused, plain)


def test_unknown_sizes():
    module = program(
        lambda add, x: [add(nn.ReshapeOp(x, [UNKNOWN, 6])), add(nn.ExpandOp(x, [2, UNKNOWN, 2, 3]))],
        TensorType(f32, [UNKNOWN, 2, 3]),
    )
    for batch in (4, 5):
        x = draw(1, batch, 2, 3)
        flat, spread = interpret(module, x)
        assert flat.shape == (batch, 6) and spread.shape == (2, batch, 2, 3)
    with pytest.raises(QcompError, match="more than one unknown size"):
        movement.reshape(draw(1, 2, 3), [-1, -1])
    with pytest.raises(QcompError, match=r"padding of integers with 0\.5"):
        movement.pad(np.zeros(3, np.int32), [1], [1], 0.5)
