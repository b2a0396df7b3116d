# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors that are made, compared, chosen from, and multiplied over named dimensions."""

from __future__ import annotations

from itertools import product

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Complex, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.complexes import complex_op, operand_of, real_dtype, self_of
from qcomp.frontend.ops.operands import choose, compare, function
from qcomp.frontend.ops.shape import permute_to
from qcomp.frontend.ops.table import HANDLERS


def _filled(b: Builder, value: Complex, dtype: str, shape: tuple[int, ...]) -> Complex:
    return Complex(*(b.expand(b.cast(part, dtype), shape) for part in value))


def _fill_value(b: Builder, node: Node) -> Complex:
    """0, 1 or the argument that the op has for it."""
    for name in ("fill_value", "value", "s"):
        if node.argument(name) is not None:
            return operand_of(b, node, name)
    parts = (float("ones" in node.target), 0.0)
    return Complex(*(b.scalar(part, "float32") for part in parts))


@complex_op("zeros.default", "ones.default", "full.default", "empty.memory_format", "scalar_tensor.default")
def make(b: Builder, node: Node) -> Result:
    """Complex numbers that are all the same."""
    shape = () if node.argument("size") is None else b.integers(node, "size")
    return _filled(b, _fill_value(b, node), real_dtype(b.dtype(node) or "complex64"), shape)


@complex_op(
    "zeros_like.default", "ones_like.default", "full_like.default", "empty_like.default", "fill.Scalar", "fill.Tensor"
)  # fmt: skip
def make_like(b: Builder, node: Node) -> Result:
    """As many complex numbers as `self` has elements, or real ones like complex `self`."""
    like, dtype = self_of(b, node), b.dtype(node)
    if dtype is not None and not dtype.startswith("complex"):
        return b.expand(b.cast(_fill_value(b, node).real, dtype), shape_of(like.real))
    kind = dtype_of(like.real) if dtype is None else real_dtype(dtype)
    return _filled(b, _fill_value(b, node), kind, shape_of(like.real))


@complex_op("where.self", "where.ScalarSelf", "where.ScalarOther")
def where(b: Builder, node: Node) -> Result:
    """``condition ? self : other``."""
    condition, left, right = b.tensor(node, "condition"), self_of(b, node), operand_of(b, node, "other")
    wide = "float64" if "float64" in (dtype_of(left.real), dtype_of(right.real)) else dtype_of(left.real)
    pairs = [(b.cast(one, wide), b.cast(other, wide)) for one, other in zip(left, right, strict=True)]
    found = [choose(b, condition, one, other, wide) for one, other in pairs]
    shape = shape_of(arithmetic.add(b, *found))
    return Complex(*(b.expand(part, shape) for part in found))


@complex_op("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(b: Builder, node: Node) -> Result:
    """`value` where the mask is set."""
    value, fill, mask = self_of(b, node), operand_of(b, node, "value"), b.tensor(node, "mask")
    kind = dtype_of(value.real)
    return Complex(*(choose(b, mask, b.cast(new, kind), old, kind) for new, old in zip(fill, value, strict=True)))


@complex_op("eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar")
def equal(b: Builder, node: Node) -> Result:
    """Equal where both parts are."""
    name, joined = ("eq", "and") if ".eq." in node.target else ("ne", "or")
    pairs = zip(self_of(b, node), operand_of(b, node, "other"), strict=True)
    return function(b, joined, *(compare(b, name, left, right) for left, right in pairs))


@complex_op("einsum.default")
def einsum(b: Builder, node: Node) -> Result:
    """The sum over all choices of a part of each operand, times the power of i that the imaginary ones make."""
    listed = node.argument("tensors")
    refs = [part for part in listed if isinstance(part, Ref)] if isinstance(listed, tuple) else []
    names = list(dict.fromkeys(ref.name for ref in refs if b.is_complex(ref.name)))
    if len([ref for ref in refs if b.is_complex(ref.name)]) > len(names):
        raise QcompError("of a complex tensor with itself is not supported", code="unsupported-op", hint="clone it")
    parts = [tuple(b.complex(Ref(name))) for name in names]
    total: list[SSAValue | None] = [None, None]
    for places in product((0, 1), repeat=len(names)):
        b.values.update({name: part[place] for name, part, place in zip(names, parts, places, strict=True)})
        try:
            value = HANDLERS[node.target](b, node)
        finally:
            for name in names:
                del b.values[name]
        assert isinstance(value, SSAValue)
        power = sum(places) % 4
        old = total[power % 2]
        value = value if power < 2 else b.add(nn.NegOp(value))
        total[power % 2] = value if old is None else arithmetic.add(b, old, value)
    return Complex(*(part for part in total if part is not None))


@complex_op("mT.default", "mH.default", "adjoint.default")
def transposed(b: Builder, node: Node) -> Result:
    """The last two dimensions exchanged; mH and adjoint also conjugate."""
    value = self_of(b, node)
    rank = len(shape_of(value.real))
    order = [*range(rank - 2), rank - 1, rank - 2]
    real, imag = (permute_to(b, part, order) for part in value)
    return Complex(real, imag if ".mT." in node.target else b.add(nn.NegOp(imag)))
