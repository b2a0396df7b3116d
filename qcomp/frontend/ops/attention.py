# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention: matmul, softmax and matmul, also for torch's fused kernels and whole encoder layers.

    result = softmax(query * scale @ key^T + mask) @ value

A row that the mask hides altogether gives zeros, as in torch; the code for that is there only when there is a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import HALF, Builder, Result, axis_of, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.counting import has_symbols, triangle_mask
from qcomp.frontend.ops.operands import compare
from qcomp.frontend.ops.shape import permute_to, reshape_to
from qcomp.frontend.ops.table import op


def safe_softmax(b: Builder, value: SSAValue, axis: int) -> SSAValue:
    """Softmax, but 0 along lines that are -inf altogether."""
    dtype = dtype_of(value)
    low = float(np.finfo(np.float64 if dtype == "float64" else np.float32).min)
    finite = b.add(nn.SoftmaxOp(b.add(nn.ClampOp.of(value, low, float("inf"))), axis))
    # Masks may hold the least number in place of -inf: such a line has equal weights.
    seen = compare(b, "ne", b.add(nn.AmaxOp(value, (axis,), True)), -np.inf)
    return arithmetic.multiply(b, finite, b.cast(seen, dtype))


def hidden_by(b: Builder, keep: SSAValue, dtype: str) -> SSAValue:
    """A bool mask of what to keep as a number to add: 0 for true, -inf for false."""
    number = b.cast(keep, dtype)
    return arithmetic.divide(b, arithmetic.subtract(b, number, 1.0), number)


def causal(b: Builder, rows: int, columns: int, dtype: str) -> SSAValue:
    """The mask that hides later keys, as a number to add."""
    if has_symbols((rows, columns)):
        return hidden_by(b, triangle_mask(b, rows, columns, 0, below=True), dtype)
    b.room(rows, columns)
    seen = np.tril(np.ones((rows, columns), np.bool_))
    return b.cast(b.constant(np.where(seen, 0.0, -np.inf).astype(np.float32)), dtype)


def attend(
    b: Builder, query: SSAValue, key: SSAValue, value: SSAValue, mask: SSAValue | None, scale: float,
    is_causal: bool = False,
) -> tuple[SSAValue, SSAValue]:  # fmt: skip
    """The result and the weights. query [..., L, E], key [..., S, E], value [..., S, V]; mask: bool, or added.

    Of 16-bit floats all is computed in float32 and rounded once.
    """
    dtype = dtype_of(query)
    if dtype in HALF:
        query, key, value = (b.cast(side, "float32") for side in (query, key, value))
        result, weights = attend(b, query, key, value, mask, scale, is_causal)
        return b.cast(result, dtype), b.cast(weights, dtype)
    scores = b.add(nn.MatmulOp(arithmetic.multiply(b, query, scale), arithmetic.exchanged(b, key)))
    axis = len(shape_of(scores)) - 1
    if mask is not None:
        dtype = dtype_of(scores)
        added = hidden_by(b, mask, dtype) if dtype_of(mask) == "bool" else b.cast(mask, dtype)
        weights = safe_softmax(b, arithmetic.add(b, scores, added), axis)
    else:
        if is_causal:
            rows, columns = shape_of(scores)[-2:]
            scores = arithmetic.add(b, scores, causal(b, rows, columns, dtype_of(scores)))
        weights = b.add(nn.SoftmaxOp(scores, axis))
    return b.add(nn.MatmulOp(weights, value)), weights


def _grouped(b: Builder, query: SSAValue, other: SSAValue) -> SSAValue:
    """The heads of `other` repeated so that there are as many as in `query`."""
    heads, (*lead, own, length, size) = shape_of(query)[-3], shape_of(other)
    if own == heads:
        return other
    if own == 0 or heads % own:
        raise QcompError(f"{heads} heads of queries for {own} of keys", code="malformed-graph")
    wide = b.expand(reshape_to(b, other, (*lead, own, 1, length, size)), (*lead, own, heads // own, length, size))
    return reshape_to(b, wide, (*lead, heads, length, size))


@op("scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default")
def scaled_dot_product_attention(b: Builder, node: Node) -> Result:
    """With a mask that is bool (true: seen) or added, causal or none; groups of heads may share keys and values."""
    output, _ = _attention(b, node)
    return output if node.target == "aten.scaled_dot_product_attention.default" else [output, None]


@op("_scaled_dot_product_attention_math.default", "_scaled_dot_product_attention_math_for_mps.default")
def scaled_dot_product_attention_math(b: Builder, node: Node) -> Result:
    """The same, with the weights as second result."""
    return _attention(b, node)


def _attention(b: Builder, node: Node) -> tuple[SSAValue, SSAValue]:
    if b.real(node, "dropout_p", 0.0) != 0.0:
        raise QcompError("attention with dropout", code="training", hint="call model.eval() before exporting")
    query, key, value = (b.tensor(node, name) for name in ("query", "key", "value"))
    mask, is_causal = b.optional(node, "attn_mask"), b.flag(node, "is_causal")
    if mask is not None and is_causal:
        raise QcompError("attention with a mask and is_causal", code="malformed-graph")
    if b.flag(node, "enable_gqa"):
        key, value = _grouped(b, query, key), _grouped(b, query, value)
    size = shape_of(query)[-1]
    scale = 1.0 / sqrt(max(size, 1)) if node.argument("scale") is None else b.real(node, "scale")
    return attend(b, query, key, value, mask, scale, is_causal)


@op("_safe_softmax.default")
def safe_softmax_(b: Builder, node: Node) -> Result:
    """Softmax, but 0 along lines that are -inf altogether."""
    value, dtype = b.tensor(node, "self"), b.dtype(node)
    value = value if dtype is None else b.cast(value, dtype)
    return safe_softmax(b, value, axis_of(b.integer(node, "dim"), len(shape_of(value))))


def _heads(b: Builder, value: SSAValue, heads: int) -> SSAValue:
    """[N, L, E] as [N, heads, L, E / heads]."""
    batch, length, size = shape_of(value)
    return permute_to(b, reshape_to(b, value, (batch, length, heads, size // heads)), (0, 2, 1, 3))


def _hidden(b: Builder, node: Node, shape: Sequence[int]) -> SSAValue | None:
    """The mask of torch's fused layers (true: hidden) as a number to add to scores [N, heads, L, S]."""
    mask = b.optional(node, "mask")
    if mask is None:
        return None
    sizes = shape_of(mask)
    if b.integer(node, "mask_type", 2) == 1 or (len(sizes) == 2 and sizes != tuple(shape[2:])):
        mask = reshape_to(b, mask, (sizes[0], 1, 1, sizes[1]))
    if dtype_of(mask) != "bool":
        return mask
    number = b.cast(mask, "float32")
    # 0 where it is false; -1 / 0 where it is true.
    return arithmetic.divide(b, arithmetic.multiply(b, number, -1.0), arithmetic.subtract(b, number, 1.0))


def _self_attention(b: Builder, node: Node, inputs: Sequence[SSAValue], heads: int) -> tuple[SSAValue, SSAValue]:
    """torch's packed attention over [N, L, E]: the projected result and the weights [N, heads, L, S]."""
    weight, bias = b.tensor(node, "qkv_weight"), b.tensor(node, "qkv_bias")
    size = shape_of(weight)[1]
    parts: list[SSAValue] = []
    for index, value in enumerate(inputs):
        own = [b.add(nn.SliceOp(whole, 0, index * size, (index + 1) * size)) for whole in (weight, bias)]
        parts.append(_heads(b, b.add(nn.LinearOp(value, *own)), heads))
    (batch, _, length, width), keys = shape_of(parts[0]), shape_of(parts[1])[2]
    mask = _hidden(b, node, (batch, heads, length, keys))
    output, weights = attend(b, parts[0], parts[1], parts[2], mask, 1.0 / sqrt(width))
    merged = reshape_to(b, permute_to(b, output, (0, 2, 1, 3)), (batch, length, size))
    return b.add(nn.LinearOp(merged, b.tensor(node, "proj_weight"), b.tensor(node, "proj_bias"))), weights


@op("_native_multi_head_attention.default")
def native_multi_head_attention(b: Builder, node: Node) -> Result:
    """The fast path of nn.MultiheadAttention; the second result are the weights, averaged over heads or not."""
    inputs = [b.tensor(node, name) for name in ("query", "key", "value")]
    output, weights = _self_attention(b, node, inputs, b.integer(node, "num_head"))
    if not b.flag(node, "need_weights", True):
        return [output, None]
    return [output, b.add(nn.MeanOp(weights, (1,), False)) if b.flag(node, "average_attn_weights", True) else weights]


@op("_transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(b: Builder, node: Node) -> Result:
    """The fast path of nn.TransformerEncoderLayer: attention and a network of two linears, with their norms."""
    source, first = b.tensor(node, "src"), b.flag(node, "norm_first")

    def norm(value: SSAValue, number: int) -> SSAValue:
        weight, bias = (b.tensor(node, f"norm_{name}_{number}") for name in ("weight", "bias"))
        return b.add(nn.LayerNormOp(value, shape_of(weight), weight, bias, b.real(node, "eps")))

    def attention(value: SSAValue) -> SSAValue:
        return _self_attention(b, node, (value, value, value), b.integer(node, "num_heads"))[0]

    def network(value: SSAValue) -> SSAValue:
        w1, b1, w2, b2 = (b.tensor(node, f"ffn_{name}_{i}") for i in (1, 2) for name in ("weight", "bias"))
        inner = b.add(nn.LinearOp(value, w1, b1))
        exact = StringAttr("none")
        inner = b.add(nn.GeluOp(inner, approximate=exact) if b.flag(node, "use_gelu") else nn.ReluOp(inner))
        return b.add(nn.LinearOp(inner, w2, b2))

    if first:
        middle = arithmetic.add(b, source, attention(norm(source, 1)))
        return arithmetic.add(b, middle, network(norm(middle, 2)))
    middle = norm(arithmetic.add(b, source, attention(source)), 1)
    return norm(arithmetic.add(b, middle, network(middle)), 2)
