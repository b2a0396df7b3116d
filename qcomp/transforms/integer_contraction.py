# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolution, linear and matmul on codes: which operands, and the proof that the integer arithmetic works out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from xdsl.ir import SSAValue

from qcomp.dialects.constant import Array
from qcomp.dialects.dims import largest_size
from qcomp.dialects.nn import ActivationAttr, MatmulOp, WeightedOp
from qcomp.dialects.nn.base import UNKNOWN, Tensor, shape
from qcomp.dialects.quant import Encoding
from qcomp.errors import QcompError
from qcomp.transforms.qdq_pattern import activation_codes_of, codes_of, encoded, is_float32
from qcomp.transforms.rewriting import Refusal, constant
from qcomp.transforms.weighted import rebuild


@dataclass(frozen=True)
class Contraction:
    """A convolution or linear on codes. bias: a float constant, or int32 codes; residual: codes."""

    op: WeightedOp
    input: SSAValue
    weight: SSAValue
    bias: SSAValue | None
    residual: SSAValue | None
    activation: ActivationAttr | None

    def build(self, result_type: Tensor) -> WeightedOp:
        """The op itself, at the location of the float one."""
        return rebuild(self.op, self.input, self.weight, self.bias, self.residual, self.activation, result_type)


def contraction(op: WeightedOp, residual: SSAValue | None, activation: ActivationAttr | None) -> Contraction | Refusal:
    """`op` with the codes behind its operands, or which operand stands in the way.

    Input and residual are per-tensor activations; the weight is a constant; the bias is a constant, float or codes.
    """
    if not is_float32(op.result):
        return Refusal(f"{op.name} does not compute in f32")
    source = activation_codes_of(op.input, "input")
    if isinstance(source, Refusal):
        return source
    weight = codes_of(op.weight)
    if weight is None or constant(weight) is None:
        return Refusal("weight is not a quantized constant")
    bias = op.bias
    if bias is not None and constant(bias) is None:
        bias = codes_of(bias)
        if bias is None or constant(bias) is None:
            return Refusal("bias is not constant")
    if residual is None:
        return Contraction(op, source, weight, bias, None, activation)
    added = activation_codes_of(residual, "residual")
    return added if isinstance(added, Refusal) else Contraction(op, source, weight, bias, added, activation)


def integer_problem(by: Contraction, output: Encoding | None) -> str | None:
    """Why the integer arithmetic of `by` does not work out; None when it is proved to."""
    from qcomp.interpreter.reference.integer_plan import integer_plan

    bias, residual = by.bias, by.residual
    try:
        integer_plan(
            _array(by.weight),
            encoded(by.input),
            encoded(by.weight),
            output,
            bias=None if bias is None else _array(bias),
            bias_encoding=None if bias is None or is_float32(bias) else encoded(bias),
            residual_encoding=None if residual is None else encoded(residual),
            activation=None if by.activation is None else by.activation.bounds,
        )
    except QcompError as problem:
        return problem.message
    return None


@dataclass(frozen=True)
class Product:
    """A matmul on codes."""

    op: MatmulOp
    lhs: SSAValue
    rhs: SSAValue

    def build(self, result_type: Tensor) -> MatmulOp:
        """The op itself, at the location of the float one."""
        new = MatmulOp(self.lhs, self.rhs, result_type)
        new.location = self.op.location
        return new


def product(op: MatmulOp, output: Encoding | None) -> Product | Refusal:
    """`op` with the codes behind its operands, or why it has no integer form.

    The left side is a per-tensor activation; the right side is quantized per tensor, or with zero points 0 along its
    last dimension. Sums of products of codes, zero points not yet taken off, fit int32.
    """
    from qcomp.interpreter.reference.integer_plan import matmul_plan

    if not is_float32(op.result):
        return Refusal(f"{op.name} does not compute in f32")
    lhs, rhs = activation_codes_of(op.lhs, "left side"), codes_of(op.rhs)
    if isinstance(lhs, Refusal):
        return lhs
    if rhs is None:
        return Refusal("right side is not dequantized")
    right = encoded(rhs)
    if right.axis not in (None, len(shape(rhs)) - 1):
        return Refusal("right side is quantized along another dimension than its last")
    inner = inf if shape(lhs)[-1] == UNKNOWN else largest_size(shape(lhs)[-1], op)
    if inner == inf:
        return Refusal("the number of products is not known")
    try:
        matmul_plan(int(inner), encoded(lhs), right, output)
    except QcompError as problem:
        return Refusal(problem.message)
    largest = int(inner) * (2**right.width - 1) * (2 ** encoded(lhs).width - 1)
    if largest >= 2**31 and right.width == 8 and constant(rhs) is None:
        return Refusal(f"int32 accumulator overflows: sums of products of codes can reach {largest}")
    return Product(op, lhs, rhs)


def _array(value: SSAValue) -> Array:
    op = constant(value)
    assert op is not None
    return op.array
