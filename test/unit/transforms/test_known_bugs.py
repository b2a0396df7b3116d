# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes that public optimizers have made, as programs. Every pass is held to its letter while it runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tensor_programs import constant, floats, program, quantized, same_bits
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, RequantizeOp, encoding_of
from qcomp.interpreter import interpret
from qcomp.transforms.pipeline import run_passes
from qcomp.transforms.rewriting import only_user, refusal_log

RNG = np.random.default_rng(5)
X = Encoding.make(0.03, -7)
Y = Encoding.make(0.2, 5)
WEIGHT = Encoding.make([0.011, 0.007, 0.019, 0.005], axis=0, qmin=-127)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def batch_norm(add, value, channels: int, eps: float = 0.1):
    statistics = [normal(channels), RNG.random(channels).astype(np.float32) + 0.2, normal(channels), normal(channels)]
    return add(nn.BatchNormOp(value, *(add(constant(item)) for item in statistics), eps=eps))


def ops(module: ModuleOp, *kinds: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kinds)]


def weights(add, *shape: int):
    codes = RNG.integers(-127, 128, shape).astype(np.int8)
    return add(DequantizeOp(add(constant(codes, WEIGHT))))


# ---- batch norm


def test_a_convolution_that_feeds_a_batch_norm_and_a_pool_is_not_folded():
    """TNN#68"""

    def build(add, x):
        conv = add(nn.Conv2dOp(x, add(constant(normal(4, 3, 3, 3))), add(constant(normal(4)))))
        return batch_norm(add, conv, 4), add(nn.MaxPool2dOp(conv, (2, 2), (1, 1)))

    module = program(build, floats(1, 3, 5, 7))
    run_passes(module, "fold-batch-norm", verify=True)
    assert len(ops(module, nn.BatchNormOp)) == 1


def test_two_convolutions_with_one_weight_and_two_batch_norms():
    """TNN#808, pytorch/ao PR#2795"""

    def build(add, x):
        weight, bias = add(constant(normal(4, 3, 3, 3))), add(constant(normal(4)))
        first = batch_norm(add, add(nn.Conv2dOp(x, weight, bias)), 4)
        second = batch_norm(add, add(nn.Conv2dOp(add(nn.NegOp(x)), weight, bias)), 4)
        return first, second, add(nn.Conv2dOp(x, weight, bias, stride=(2, 1)))

    module = program(build, floats(1, 3, 5, 7))
    run_passes(module, "fold-batch-norm,fold-constants", verify=True)
    convolutions = ops(module, nn.Conv2dOp)
    assert not ops(module, nn.BatchNormOp)
    assert len({op.operands[1] for op in convolutions}) == len({op.operands[2] for op in convolutions}) == 3


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_bias_eps_and_groups(bias: bool, rank: int, groups: int):
    """mace#262 (own bias), pytorch PR#102224 (eps), onnxruntime#12498 (groups)"""
    kind = nn.CONVOLUTIONS[rank - 1]

    def build(add, x):
        held = add(constant(normal(6))) if bias else None
        weight = add(constant(normal(6, 4 // groups, *(3, 2, 1)[:rank])))
        return batch_norm(add, add(kind(x, weight, held, groups=groups)), 6, eps=0.37)

    module = program(build, floats(2, 4, *(5, 6, 7)[:rank]))
    run_passes(module, "fold-batch-norm", verify=True)
    assert not ops(module, nn.BatchNormOp)


# ---- fusion and uses


@pytest.mark.parametrize("inner", ["conv", "add", "relu"])
def test_an_inner_value_that_is_returned_is_not_fused_away(inner: str):
    """onnxruntime#4110, PR#15109"""

    def build(add, x, r):
        conv = add(nn.Conv2dOp(add(DequantizeOp(x)), weights(add, 4, 3, 3, 3)))
        total = add(nn.AddOp(conv, add(DequantizeOp(r))))
        relu = add(nn.ReluOp(total))
        return add(QuantizeOp(relu, Y)), {"conv": conv, "add": total, "relu": relu}[inner]

    module = program(build, quantized(X, 1, 3, 5, 7), quantized(Y, 1, 4, 3, 5))
    with refusal_log() as log:
        run_passes(module, "duplicate-dequantize,O2,integer", verify=True)
    assert any("has other uses" in record.reason for record in log)
    (end,) = ops(module, ReturnOp)
    coded, real = end.operands
    assert encoding_of(coded.type) == Y and encoding_of(real.type) is None and coded.owner is not real.owner
    assert only_user(real) is None


@pytest.mark.parametrize("shape", [(4, 1, 1), (5,), (1, 5), (3, 1), (1, 4, 3, 5), (1, 1, 1, 1), ()])
def test_adds_behind_a_grouped_convolution(shape: tuple[int, ...]):
    """onnxruntime#12498, openxla#46897: what is added broadcasts along its own axes."""
    encoding = Encoding.make(0.05, 9)

    def build(add, x):
        conv = add(nn.Conv2dOp(add(DequantizeOp(x)), weights(add, 4, 2, 3, 3), groups=2))
        added = constant(RNG.integers(-128, 128, shape).astype(np.int8), encoding)
        return add(QuantizeOp(add(nn.AddOp(conv, add(DequantizeOp(add(added))))), Y))

    module = program(build, quantized(X, 1, 4, 5, 7))
    run_passes(module, "duplicate-dequantize,O2,integer", verify=True)
    (conv,) = ops(module, nn.Conv2dOp)
    assert isinstance(conv, nn.Conv2dOp)
    assert (conv.residual is not None) == (shape == (1, 4, 3, 5))


def test_both_operands_of_a_square_read_one_copy():
    """pytorch PR#37637"""

    def build(add, x):
        real = add(DequantizeOp(x))
        return add(QuantizeOp(add(nn.MulOp(real, real)), Y)), add(nn.NegOp(real))

    module = program(build, quantized(X, 2, 3))
    run_passes(module, "duplicate-dequantize", verify=True)
    (square,) = ops(module, nn.MulOp)
    assert square.operands[0] is square.operands[1]
    run_passes(module, "fuse-qdq", verify=True)
    assert encoding_of(ops(module, nn.MulOp)[0].operands[1].type) == X


# ---- encodings


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("zero", [0, 3])
def test_propagation_keeps_the_storage_type(signed: bool, zero: int):
    """onnxruntime#27845, #28491: an unsigned quantize behind a signed dequantize lost the negative values"""
    encoding = Encoding.make(0.1, zero, signed=signed)

    def build(add, x):
        moved = add(nn.ReshapeOp(add(DequantizeOp(x)), (6, 5)))
        return add(nn.PermuteOp(moved, (1, 0)))

    module = program(build, quantized(encoding, 2, 3, 5))
    run_passes(module, "propagate-qdq", verify=True)
    assert {encoding_of(op.results[0].type) for op in ops(module, nn.ReshapeOp, nn.PermuteOp)} == {encoding}


RANGES = [
    Encoding.make(0.1, 0), Encoding.make(0.1, -128), Encoding.make(0.1, -127, qmin=-127), Encoding.make(0.1, 7),
    Encoding.make(0.1, 0, signed=False), Encoding.make(0.1, 128, signed=False),
    Encoding.make(0.1, -32768, width=16), Encoding.make(0.1, 0, width=16),
]  # fmt: skip


@pytest.mark.parametrize("encoding", RANGES, ids=str)
def test_relu_goes_only_where_no_code_is_negative(encoding: Encoding):
    """onnxruntime#9425, #11660, PR#20187"""

    def build(add, x):
        negated = add(QuantizeOp(add(nn.NegOp(add(DequantizeOp(x)))), encoding))
        return add(QuantizeOp(add(nn.ReluOp(add(DequantizeOp(negated)))), encoding))

    module = program(build, quantized(encoding, 40))
    run_passes(module, "duplicate-dequantize,integer", verify=True)
    assert not ops(module, QuantizeOp)
    assert bool(ops(module, nn.ReluOp)) == (encoding.zero_point != encoding.qmin)


def test_the_quantization_axis_follows_a_permutation_that_is_not_its_own_inverse():
    """onnxruntime#12151, PR#21793; executorch PR#21894"""
    encoding = Encoding.make([0.1, 0.2, 0.3, 0.4, 0.5], [1, 2, 3, 4, 5], axis=2)

    def build(add, x):
        moved = add(nn.PermuteOp(add(DequantizeOp(x)), (0, 2, 3, 1)))
        back = add(nn.PermuteOp(moved, (0, 3, 1, 2)))
        return moved, back

    module = program(build, quantized(encoding, 2, 3, 5, 7))
    run_passes(module, "propagate-qdq,compose-permutes", verify=True)
    axes = [item.axis for op in ops(module, DequantizeOp) if (item := encoding_of(op.operands[0].type))]
    assert sorted(axis for axis in axes if axis is not None) == [1, 2]


@pytest.mark.parametrize("tiny", [1e-12, 1e-30])
def test_a_bias_over_a_tiny_weight_scale(tiny: float):
    """onnxruntime#21000: the int32 bias overflowed"""
    encoding = Encoding.make([0.01, tiny], axis=0, qmin=-127)
    codes = RNG.integers(-127, 128, (2, 6)).astype(np.int8)

    def build(add, x):
        weight = add(DequantizeOp(add(constant(codes, encoding))))
        linear = add(nn.LinearOp(add(DequantizeOp(x)), weight, add(constant(np.array([0.7, -0.4], np.float32)))))
        return add(QuantizeOp(add(nn.ReluOp(linear)), Y))

    module = program(build, quantized(X, 50, 6))
    run_passes(module, "duplicate-dequantize,O2,integer", verify=True)
    (linear,) = ops(module, nn.LinearOp)
    assert isinstance(linear, nn.LinearOp)
    assert linear.bias is not None and encoding_of(linear.input.type) == X
    assert encoding_of(linear.result.type) == Y


def test_one_bias_of_two_convolutions_with_unlike_inputs():
    """onnxruntime-qnn PR#739, Paddle-Lite PR#3679"""
    other = Encoding.make(0.0071, 100, signed=False)

    def build(add, x, y):
        bias = add(constant(normal(4)))
        first = add(nn.Conv2dOp(add(DequantizeOp(x)), weights(add, 4, 3, 1, 1), bias))
        second = add(nn.Conv2dOp(add(DequantizeOp(y)), weights(add, 4, 3, 1, 1), bias))
        return add(QuantizeOp(first, Y)), add(QuantizeOp(second, Y))

    module = program(build, quantized(X, 2, 3, 5, 7), quantized(other, 2, 3, 5, 7))
    run_passes(module, "fuse-qdq", verify=True)
    assert not ops(module, QuantizeOp, DequantizeOp)


# ---- numbers


def test_add_of_all_pairs_of_codes():
    """onnxruntime#32132"""
    left, right, out = Encoding.make(0.031, -7), Encoding.make(0.017, 100, signed=False), Encoding.make(0.043, 3)

    def build(add, x, y):
        return add(QuantizeOp(add(nn.AddOp(add(DequantizeOp(x)), add(DequantizeOp(y)))), out))

    module = program(build, quantized(left, 256, 1), quantized(right, 1, 256))
    inputs = np.arange(-128, 128, dtype=np.int8).reshape(256, 1), np.arange(256, dtype=np.uint8).reshape(1, 256)
    before = interpret(module, *inputs)[0]
    run_passes(module, "fuse-qdq")
    assert not ops(module, QuantizeOp)
    assert same_bits(before, interpret(module, *inputs)[0])


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("zero", [-7, 100])
def test_average_pools_count_what_they_should(ceil: bool, include: bool, zero: int):
    """onnxruntime PR#23190, TVM: padding is the zero point, counted or not; no truncation"""
    encoding = Encoding.make(0.05, zero)

    def build(add, x):
        pool = nn.AvgPool2dOp(add(DequantizeOp(x)), (3, 2), (2, 2), (1, 1), ceil, include)
        return add(QuantizeOp(add(pool), encoding))

    module = program(build, quantized(encoding, 3, 2, 6, 7))
    run_passes(module, "integer", verify=True)
    assert not ops(module, QuantizeOp)


@pytest.mark.parametrize("zero", [-7, 100, -128])
@pytest.mark.parametrize("padded_by", ["conv", "pad"])
def test_padding_is_the_zero_point(zero: int, padded_by: str):
    """tvm PR#4807, executorch PR#13576, XNNPACK PR#8647"""
    encoding = Encoding.make(0.05, zero)

    def build(add, x):
        real = add(DequantizeOp(x))
        if padded_by == "pad":
            real = add(nn.PadOp(real, (0, 0, 1, 1), (0, 0, 1, 1), 0.0))
        around = (1, 1) if padded_by == "conv" else (0, 0)
        return add(QuantizeOp(add(nn.Conv2dOp(real, weights(add, 4, 3, 3, 3), padding=around)), Y))

    module = program(build, quantized(encoding, 1, 3, 5, 7))
    run_passes(module, "duplicate-dequantize,integer,unsigned-activations", verify=True)
    assert not ops(module, QuantizeOp)
    assert all(encoding_of(op.operands[0].type) is not None for op in ops(module, nn.Conv2dOp, nn.PadOp))


def test_sums_of_the_largest_products_do_not_saturate():
    """onnxruntime#16105, #6004: pairs of u8 x s8 products exceed 16 bits"""
    unsigned, weight = Encoding.make(1.0, 0, signed=False), Encoding.make([1.0, 1.0], axis=0, qmin=-127)
    codes = np.array([[127] * 64, [-127] * 64], np.int8)

    def build(add, x):
        return add(nn.LinearOp(add(DequantizeOp(x)), add(DequantizeOp(add(constant(codes, weight))))))

    module = program(build, quantized(unsigned, 1, 64))
    run_passes(module, "fuse-qdq", verify=True)
    (found,) = interpret(module, np.full((1, 64), 255, np.uint8))
    assert found.tolist() == [[255.0 * 127 * 64, -255.0 * 127 * 64]]


# ---- movement


@pytest.mark.parametrize("dims", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("shape", [(4, 4, 4), (2, 3, 5), (1, 4, 1)])
def test_a_trailing_permute_is_not_dropped(dims: tuple[int, ...], shape: tuple[int, ...]):
    """ncnn#3439, #5679; onnxruntime#32228: the permutation is read, whatever the sizes"""

    def build(add, x):
        return add(nn.PermuteOp(add(nn.PermuteOp(add(nn.NegOp(x)), dims)), (1, 2, 0)))

    module = program(build, floats(*shape))
    run_passes(module, "compose-permutes,compose-reshapes", verify=True)
    assert len(ops(module, nn.PermuteOp, nn.ReshapeOp)) <= 1


def test_a_dimension_of_zero_is_a_size():
    """onnxruntime#28348"""
    module = program(lambda add, x: add(nn.ReshapeOp(add(nn.ReshapeOp(x, (0,))), (5, 0))), floats(0, 3))
    run_passes(module, "compose-reshapes", verify=True)
    assert len(ops(module, nn.ReshapeOp)) == 1


def test_requantize_does_not_merge_across_a_clamp_that_bites():
    """double-QDQ merging changes results (onnxruntime#25259): dequantize, quantize in a narrow range, and back"""
    narrow = Encoding.make(0.01, 0)

    def build(add, x):
        once = add(QuantizeOp(add(DequantizeOp(x)), narrow))
        return add(QuantizeOp(add(DequantizeOp(once)), X))

    module = program(build, quantized(X, 300))
    run_passes(module, "integer,unsigned-activations", verify=True)
    assert len(ops(module, RequantizeOp)) >= 2
