# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the passes on quantize and dequantize look for: codes behind a value, the op between them, exact identities."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from qcomp.dialects.nn import ActivationAttr, AddOp, BinaryOp, UnaryOp, WeightedOp
from qcomp.dialects.nn.base import shape, tensor
from qcomp.dialects.quant import DequantizeOp, Encoding, QuantizeOp, encoding_of
from qcomp.transforms.activations import activation_attribute, bounds_of, merge
from qcomp.transforms.code_identities import MAX_WIDTH
from qcomp.transforms.rewriting import Refusal, only_user


def codes_of(value: SSAValue) -> SSAValue | None:
    """The codes that `value` is dequantized from, if it is."""
    owner = value.owner
    return owner.input if isinstance(owner, DequantizeOp) else None


def encoded(value: SSAValue) -> Encoding:
    """The encoding of a value that is known to be quantized."""
    encoding = encoding_of(value.type)
    assert encoding is not None
    return encoding


def activation_codes_of(value: SSAValue, role: str) -> SSAValue | Refusal:
    """The codes behind the operand `value`, which must be per-tensor ones of at most 16 bits that express f32."""
    codes = codes_of(value)
    if codes is None:
        return Refusal(f"{role} is not dequantized")
    problem = activation_problem(encoded(codes))
    return codes if problem is None else Refusal(f"{role} is {problem}")


def activation_problem(encoding: Encoding) -> str | None:
    """Why integer ops do not take activations of this encoding; None when they do."""
    if not encoding.per_tensor:
        return "not quantized per tensor"
    if encoding.width > MAX_WIDTH:
        return f"wider than {MAX_WIDTH} bits"
    if not isinstance(encoding.expressed, Float32Type):
        return f"quantized from {encoding.expressed}, not f32"
    return None


@dataclass(frozen=True)
class Body:
    """The op whose result, with `activation` applied, is quantized: conv, or conv + residual."""

    op: Operation
    activation: ActivationAttr | None = None
    residual: SSAValue | None = None


def body_of(quantize: QuantizeOp) -> Body | Refusal | None:
    """What `quantize` is the end of; None when an argument or a dequantize feeds it.

    op -> quantize; op -> relu or clamp -> quantize for ops that take an activation; convolution or linear -> add of a
    dequantized value of the same shape -> [activation] -> quantize. No value in between has another use.
    """
    producer = quantize.input.owner
    if not isinstance(producer, Operation) or isinstance(producer, DequantizeOp):
        return None
    if only_user(quantize.input) is not quantize:
        return Refusal(f"the result of {producer.name} has other uses")
    body = _activated(producer)
    if isinstance(body, Body) and isinstance(body.op, AddOp):
        return _with_residual(body.op, body.activation)
    return body


def _activated(producer: Operation) -> Body | Refusal:
    """`producer`, or the op in front of it when `producer` is its activation."""
    bounds = bounds_of(producer)
    if bounds is None or not isinstance(producer, UnaryOp):
        return Body(producer, getattr(producer, "activation", None))
    inner = producer.input.owner
    if not isinstance(inner, WeightedOp | BinaryOp):
        return Body(producer)
    if only_user(producer.input) is not producer:
        return Refusal(f"the result of {inner.name} has other uses")
    merged = bounds if inner.activation is None else merge(inner.activation.bounds, bounds)
    if merged is None:
        return Refusal("the merged bounds are both zero")
    return Body(inner, activation_attribute(merged))


def _with_residual(add: AddOp, activation: ActivationAttr | None) -> Body | Refusal:
    """The convolution or linear that `add` adds a dequantized value to; `add` itself when both are dequantized."""
    for value, other in ((add.lhs, add.rhs), (add.rhs, add.lhs)):
        op = value.owner
        if not isinstance(op, WeightedOp):
            continue
        if codes_of(other) is None:
            return Refusal(f"neither operand of the add behind {op.name} is dequantized")
        if only_user(value) is not add:
            return Refusal(f"the result of {op.name} has other uses")
        if op.activation is not None or op.residual is not None:
            return Refusal(f"{op.name} has an activation or a residual before the add")
        if not (shape(value) == shape(other) == shape(add.result)):
            return Refusal("the residual is broadcast")
        return Body(op, activation, other)
    return Body(add, activation)


def is_float32(*values: SSAValue) -> bool:
    """Whether all of `values` are f32 tensors."""
    return all(isinstance(tensor(value).element_type, Float32Type) for value in values)
