# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors: each is two real ones (`Complex`), so the IR has none.

The importer asks `complex_handler` for every node that reads a complex value or makes one. What only moves elements, or
is linear with real factors, is the handler of the real op done on both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend import promotion
from qcomp.frontend.builder import Builder, Complex, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.operands import function, unary
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import HANDLERS, Handler

COMPLEX_TARGETS: dict[str, Handler] = {}
"""target -> handler on complex values"""
_MAKERS: set[str] = set()
_BOTH_PARTS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default reshape.default _unsafe_view.default view_copy.default flatten.using_ints unflatten.int "
        "unsqueeze.default squeeze.default squeeze.dim squeeze.dims transpose.int t.default permute.default "
        "movedim.int slice.Tensor select.int narrow.default cat.default stack.default expand.default clone.default "
        "contiguous.default detach.default alias.default lift_fresh_copy.default index_select.default index.Tensor "
        "split.Tensor split_with_sizes.default chunk.default unbind.int flip.default roll.default sum.default "
        "sum.dim_IntList mean.default mean.dim constant_pad_nd.default neg.default repeat.default swapaxes.default "
        "squeeze_copy.default unsqueeze_copy.default permute_copy.default slice_copy.Tensor unfold.default "
        "cumsum.default numpy_T.default"
    ).split()
)


def complex_op(*targets: str, makes: bool = False) -> Callable[[Handler], Handler]:
    """Register the handler of ``aten.`` `targets` on complex values. makes: also when no argument is complex."""

    def register(handler: Handler) -> Handler:
        for target in targets:
            COMPLEX_TARGETS[f"aten.{target}"] = handler
            if makes:
                _MAKERS.add(f"aten.{target}")
        return handler

    return register


def complex_handler(b: Builder, node: Node) -> Handler | None:
    """The handler of a node that reads or makes complex values; None when it does neither.

    Raises QcompError for an op that complex numbers do not have here.
    """
    made = node.target in _MAKERS or (b.dtype(node) or "").startswith("complex")
    made = made or any(isinstance(value, complex) for _, value in node.arguments)
    if not made and not any(b.is_complex(name) for name in node.uses()):
        return None
    if node.target in COMPLEX_TARGETS:
        return COMPLEX_TARGETS[node.target]
    if node.target in _BOTH_PARTS:
        return _on_both_parts
    raise QcompError(
        "of complex numbers is not supported",
        code="unsupported-op",
        hint="split them with torch.view_as_real, or leave it out of the exported module",
    )


def _on_both_parts(b: Builder, node: Node) -> Result:
    """The op on real and imaginary parts. Raises QcompError when it joins complex values with others."""
    joined = node.argument("tensors")
    if isinstance(joined, tuple) and not all(isinstance(part, Ref) and b.is_complex(part.name) for part in joined):
        raise QcompError("of real and complex numbers is not supported", code="unsupported-op")
    parts = {name: b.complex(Ref(name)) for name in node.uses() if b.is_complex(name)}
    halves = halves_of(b, parts, lambda: HANDLERS[node.target](b, node))
    found = [[half] if isinstance(half, SSAValue) else [*_values(half)] for half in halves]
    pairs = [Complex(re, im) for re, im in zip(*found, strict=True) if re is not None and im is not None]
    return pairs[0] if isinstance(halves[0], SSAValue) else pairs


def halves_of(b: Builder, parts: dict[str, Complex], act: Callable[[], Result]) -> list[Result]:
    """What `act` gives with the real parts under the names of `parts`, and what with the imaginary ones."""
    before = {name: b.values[name] for name in parts if name in b.values}
    found: list[Result] = []
    for half in ("real", "imag"):
        b.values.update({name: getattr(value, half) for name, value in parts.items()})
        try:
            found.append(act())
        finally:
            for name in parts:
                del b.values[name]
            b.values.update(before)
    return found


def _values(results: Result) -> Sequence[SSAValue | None]:
    assert not isinstance(results, Complex | SSAValue)
    return [value for value in results or () if not isinstance(value, Complex)]


def operand_of(b: Builder, node: Node, name: str) -> Complex:
    """An argument as a complex value; what is real has an imaginary part of 0."""
    value = node.argument(name)
    if isinstance(value, Ref) and b.is_complex(value.name):
        return b.complex(value)
    if isinstance(value, complex):
        return Complex(b.scalar(value.real, "float32"), b.scalar(value.imag, "float32"))
    real = b.operand(node, name)
    if not isinstance(real, SSAValue):
        real = b.scalar(real, "float32")
    dtype = dtype_of(real)
    real = real if promotion.category(dtype) == 2 else b.cast(real, "float32")
    return Complex(real, b.scalar(0.0, dtype_of(real)))


def is_real(b: Builder, node: Node, name: str) -> bool:
    value = node.argument(name)
    return not isinstance(value, complex) and not (isinstance(value, Ref) and b.is_complex(value.name))


def self_of(b: Builder, node: Node) -> Complex:
    """The argument `self`."""
    return operand_of(b, node, "self")


def add(b: Builder, left: Complex, right: Complex) -> Complex:
    """left + right."""
    return Complex(arithmetic.add(b, left.real, right.real), arithmetic.add(b, left.imag, right.imag))


def scaled(b: Builder, value: Complex, factor: float) -> Complex:
    """`value` times a real number."""
    return Complex(*(arithmetic.multiply(b, part, float(factor)) for part in value))


def multiply(b: Builder, left: Complex, right: Complex) -> Complex:
    """left * right."""
    (a, c), (d, e) = left, right
    real = arithmetic.subtract(b, arithmetic.multiply(b, a, d), arithmetic.multiply(b, c, e))
    return Complex(real, arithmetic.add(b, arithmetic.multiply(b, a, e), arithmetic.multiply(b, c, d)))


def _broadcast(b: Builder, value: Complex, shape: Sequence[int]) -> Complex:
    return Complex(*(b.expand(part, shape) for part in value))


@complex_op("add.Tensor", "sub.Tensor")
def _add(b: Builder, node: Node) -> Result:
    alpha = b.real(node, "alpha", 1.0) * (1 if "add" in node.target else -1)
    total = add(b, self_of(b, node), scaled(b, operand_of(b, node, "other"), alpha))
    shape = shape_of(arithmetic.add(b, total.real, total.imag))
    return _broadcast(b, total, shape)


@complex_op("mul.Tensor", "mul.Scalar")
def _mul(b: Builder, node: Node) -> Result:
    left, right = self_of(b, node), operand_of(b, node, "other")
    for name, one, other in (("other", left, right), ("self", right, left)):
        if is_real(b, node, name):
            return Complex(*(arithmetic.multiply(b, part, other.real) for part in one))
    return multiply(b, left, right)


@complex_op("square.default", "pow.Tensor_Scalar")
def _square(b: Builder, node: Node) -> Result:
    value = self_of(b, node)
    if "pow" in node.target and node.argument("exponent") != 2:
        raise QcompError("of complex numbers is supported for the power 2 only", code="unsupported-op")
    return multiply(b, value, value)


@complex_op("abs.default")
def _abs(b: Builder, node: Node) -> Result:
    return function(b, "hypot", *self_of(b, node))


@complex_op("angle.default")
def _angle(b: Builder, node: Node) -> Result:
    value = self_of(b, node)
    return function(b, "atan2", value.imag, value.real)


@complex_op("real.default")
def _real(b: Builder, node: Node) -> Result:
    return self_of(b, node).real


@complex_op("imag.default")
def _imag(b: Builder, node: Node) -> Result:
    return self_of(b, node).imag


@complex_op("_conj.default", "conj.default", "conj_physical.default", "_conj_physical.default", "_conj_copy.default")
def _conj(b: Builder, node: Node) -> Result:
    value = self_of(b, node)
    return Complex(value.real, b.add(nn.NegOp(value.imag)))


@complex_op("resolve_conj.default", "resolve_neg.default")
def _resolved(b: Builder, node: Node) -> Result:
    return self_of(b, node)


def real_dtype(dtype: str) -> str:
    """The element type of the parts."""
    if dtype not in _REAL_DTYPE:
        raise QcompError(f"{dtype or 'this type'} is not supported", code="unsupported-dtype")
    return _REAL_DTYPE[dtype]


_REAL_DTYPE = {"complex64": "float32", "complex128": "float64"}


@complex_op("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device")
def _cast(b: Builder, node: Node) -> Result:
    value, dtype = self_of(b, node), b.dtype(node)
    if dtype is None:
        return value
    if dtype not in _REAL_DTYPE:
        return b.cast(value.real, dtype)
    return Complex(*(b.expand(b.cast(part, _REAL_DTYPE[dtype]), shape_of(value.real)) for part in value))


@complex_op("view_as_real.default", "view_as_real_copy.default")
def _view_as_real(b: Builder, node: Node) -> Result:
    return view_as_real(b, self_of(b, node))


def view_as_real(b: Builder, value: Complex) -> SSAValue:
    """The parts along a new last dimension."""
    shape = shape_of(value.real)
    return b.add(nn.CatOp([reshape_to(b, part, (*shape, 1)) for part in value], len(shape)))


@complex_op("view_as_complex.default", "view_as_complex_copy.default", makes=True)
def _view_as_complex(b: Builder, node: Node) -> Result:
    return view_as_complex(b, b.tensor(node, "self"))


def view_as_complex(b: Builder, value: SSAValue) -> Complex:
    """The parts from the last dimension, whose size is 2."""
    *shape, two = shape_of(value)
    if two != 2:
        raise QcompError(f"the last dimension is {two}, not 2", code="malformed-graph")
    first, second = (b.add(nn.SliceOp(value, len(shape), part, part + 1)) for part in (0, 1))
    return Complex(reshape_to(b, first, shape), reshape_to(b, second, shape))


@complex_op("complex.default", makes=True)
def _complex(b: Builder, node: Node) -> Result:
    real, imag = b.tensor(node, "real"), b.tensor(node, "imag")
    shape = shape_of(arithmetic.add(b, real, imag))
    return _broadcast(b, Complex(real, imag), shape)


@complex_op("polar.default", makes=True)
def _polar(b: Builder, node: Node) -> Result:
    size, angle = b.tensor(node, "abs"), b.tensor(node, "angle")
    return Complex(*(arithmetic.multiply(b, size, unary(b, name, angle)) for name in ("cos", "sin")))


@complex_op("matmul.default", "mm.default", "bmm.default")
def _matmul(b: Builder, node: Node) -> Result:
    left = self_of(b, node)
    right = operand_of(b, node, "other" if node.argument("other") is not None else "mat2")
    return product(b, left, right)


def product(b: Builder, left: Complex, right: Complex) -> Complex:
    """left @ right of matrices."""
    (a, c), (d, e) = left, right
    if any(len(shape_of(part)) < 2 for part in (a, d)):
        raise QcompError("of complex vectors is not supported", code="unsupported-op")
    dots = [b.add(nn.MatmulOp(one, other)) for one, other in ((a, d), (c, e), (a, e), (c, d))]
    return Complex(arithmetic.subtract(b, *dots[:2]), arithmetic.add(b, *dots[2:]))
