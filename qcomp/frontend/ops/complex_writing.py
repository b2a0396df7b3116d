# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes of complex numbers as values: through views, into one part, and into real memory seen as complex numbers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Complex, Result, dtype_of, shape_of
from qcomp.frontend.functional import INSERT_VIEW
from qcomp.frontend.graph import Node, Ref
from qcomp.frontend.ops.complexes import (
    COMPLEX_TARGETS,
    complex_op,
    halves_of,
    operand_of,
    view_as_complex,
    view_as_real,
)
from qcomp.frontend.ops.table import HANDLERS


def _like(b: Builder, part: SSAValue, model: SSAValue) -> SSAValue:
    return b.expand(b.cast(part, dtype_of(model)), shape_of(model))


def _both(b: Builder, node: Node, *names: str) -> Complex:
    """The handler of the real op on the parts of the arguments `names`; a real one has an imaginary part of 0."""
    parts: dict[str, Complex] = {}
    for name in names:
        value = node.argument(name)
        if not isinstance(value, Ref):
            raise QcompError(f"argument {name} of {node.target} should be a tensor", code="malformed-graph")
        parts[value.name] = operand_of(b, node, name)
    found = halves_of(b, parts, lambda: HANDLERS[node.target](b, node))
    if not all(isinstance(half, SSAValue) for half in found):
        raise QcompError("of complex numbers is not supported", code="unsupported-op")
    return Complex(*(half for half in found if isinstance(half, SSAValue)))


def _insert_view(b: Builder, node: Node) -> Result:
    """A write through a view of a complex tensor, of one of its parts, or of real memory seen as complex numbers."""
    view = b.text(node, "view").removeprefix("aten.").partition(".")[0]
    base, source = operand_of(b, node, "base"), operand_of(b, node, "source")
    if view == "view_as_complex":
        shape = shape_of(base.real)[:-1]
        return view_as_real(b, Complex(*(b.expand(part, shape) for part in source)))
    if view == "view_as_real":
        real = _like(b, source.real, view_as_real(b, base))
        return view_as_complex(b, real)
    if view in ("real", "imag"):
        new = _like(b, source.real, base.real)
        return Complex(new, base.imag) if view == "real" else Complex(base.real, new)
    return _both(b, node, "base", "source")


COMPLEX_TARGETS[INSERT_VIEW] = _insert_view


@complex_op("slice_scatter.default", "select_scatter.default", "diagonal_scatter.default")
def scatter(b: Builder, node: Node) -> Result:
    """Both parts written in the same place."""
    return _both(b, node, "self", "src")


@complex_op("copy.default")
def copy(b: Builder, node: Node) -> Result:
    """`src` in the shape and type of `self`; into a real tensor only the real part."""
    source, target = operand_of(b, node, "src"), node.argument("self")
    if not isinstance(target, Ref) or not b.is_complex(target.name):
        return _like(b, source.real, b.tensor(node, "self"))
    return Complex(*(_like(b, part, b.complex(target).real) for part in source))
