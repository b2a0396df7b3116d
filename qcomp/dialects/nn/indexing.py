# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements picked and written by computed indices, orders, running totals, and reductions beyond sum, mean and largest.

Indices outside a dimension are an error in the reference; compiled code takes the nearest element instead and never
reads or writes outside the tensor.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import (
    NNOp,
    Shape,
    Tensor,
    broadcast_shapes,
    never_below,
    require,
    require_one_element,
    shape,
    tensor,
)
from qcomp.dialects.nn.pooling import ReduceOp, reduced_shape

i1 = IntegerType(1)
SCATTERS = ("none", "add", "mul", "max", "min")
SCANS = ("add", "mul", "max", "min", "logaddexp", "argmax", "argmin")


def _along(value: SSAValue, dim: int) -> Shape:
    sizes = shape(value)
    require(0 <= dim < len(sizes), f"dim {dim} is outside rank {len(sizes)}")
    return sizes


@irdl_op_definition
class GatherOp(NNOp):
    """numpy's take_along_axis: element indices[...] of dimension `dim` of input, the other dimensions broadcast."""

    name = "nn.gather"
    input = operand_def(TensorType)
    indices = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `[` $indices `]` attr-dict `:` functional-type(operands, results)"

    def __init__(self, value: SSAValue, indices: SSAValue, dim: int, result_type: Tensor | None = None):
        sizes = gathered_shape(value, indices, dim)
        super().__init__(
            operands=[value, indices],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={"dim": IntegerAttr(dim, i64)},
        )

    def infer_shape(self) -> Shape:
        require(isinstance(tensor(self.indices).element_type, IntegerType), "indices must be integers")
        return gathered_shape(self.input, self.indices, self.dim.value.data)


def gathered_shape(value: SSAValue, indices: SSAValue, dim: int) -> Shape:
    """The shape of what `indices` pick."""
    sizes, picked = _along(value, dim), shape(indices)
    require(len(sizes) == len(picked), "input and indices need the same rank")
    return broadcast_shapes((*sizes[:dim], 1, *sizes[dim + 1 :]), picked)


@irdl_op_definition
class ScatterOp(NNOp):
    """`input` with each element of source, in row-major order, put at indices[...] of dimension `dim`: instead of what
    is there (reduce "none"), or added, multiplied, or the larger or smaller of both. indices has the shape of source,
    which nowhere but along `dim` is longer than input; where a dimension is 1, its indices are for all.
    """

    name = "nn.scatter"
    input = operand_def(TensorType)
    indices = operand_def(TensorType)
    source = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    reduce = prop_def(StringAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source `into` $input `[` $indices `]` attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, value: SSAValue, indices: SSAValue, source: SSAValue, dim: int, reduce: str,
        result_type: Tensor | None = None,
    ):  # fmt: skip
        super().__init__(
            operands=[value, indices, source],
            result_types=[result_type or value.type],
            properties={"dim": IntegerAttr(dim, i64), "reduce": StringAttr(reduce)},
        )

    def infer_shape(self) -> Shape:
        sizes, picked, given = _along(self.input, self.dim.value.data), shape(self.indices), shape(self.source)
        require(self.reduce.data in SCATTERS, f"reduce must be one of {', '.join(SCATTERS)}")
        require(self.reduce.data != "add" or tensor(self.input).element_type != i1, "sums of i1 need an integer type")
        require(isinstance(tensor(self.indices).element_type, IntegerType), "indices must be integers")
        require(len(sizes) == len(picked) == len(given), "input, indices and source need the same rank")
        require(broadcast_shapes(picked, given) == given, "indices do not broadcast to source")
        rest = [a - b for axis, (a, b) in enumerate(zip(sizes, given, strict=True)) if axis != self.dim.value.data]
        require(all(never_below(size, 0) for size in rest), "source is longer than input")
        return sizes

    def verify_(self) -> None:
        require_one_element(self.input, self.source)
        super().verify_()


class _AlongOp(NNOp):
    input = operand_def(TensorType)
    result = result_def(TensorType)
    dim = prop_def(IntegerAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    def infer_shape(self) -> Shape:
        return _along(self.input, self.dim.value.data)


@irdl_op_definition
class ArgsortOp(_AlongOp):
    """The indices that sort `dim`, i64: equal elements keep their order; NaN counts as the largest."""

    name = "nn.argsort"
    descending = prop_def(BoolAttr)
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, value: SSAValue, dim: int, descending: bool, result_type: Tensor | None = None):
        super().__init__(
            operands=[value],
            result_types=[result_type or tensor_of(i64, shape(value))],
            properties={"dim": IntegerAttr(dim, i64), "descending": BoolAttr.from_bool(descending)},
        )

    def infer_element(self) -> Attribute:
        return i64


@irdl_op_definition
class ScanOp(_AlongOp):
    """Running totals along `dim`: sums, products, largest and smallest so far (NaN once there was one), logarithms of
    sums of exponentials; argmax and argmin: where the last one of the largest and smallest so far is, i64.
    """

    name = "nn.scan"
    kind = prop_def(StringAttr)
    assembly_format = "$kind `,` $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, kind: str, value: SSAValue, dim: int, result_type: Tensor | None = None):
        element = i64 if kind.startswith("arg") else tensor(value).element_type
        super().__init__(
            operands=[value],
            result_types=[result_type or tensor_of(element, shape(value))],
            properties={"kind": StringAttr(kind), "dim": IntegerAttr(dim, i64)},
        )

    def infer_element(self) -> Attribute:
        return i64 if self.kind.data.startswith("arg") else tensor(self.input).element_type

    def verify_(self) -> None:
        require(self.kind.data in SCANS, f"the kind must be one of {', '.join(SCANS)}")
        require(self.kind.data != "add" or tensor(self.input).element_type != i1, "sums of i1 need an integer type")
        super().verify_()


@irdl_op_definition
class AminOp(ReduceOp):
    """Smallest element; NaN if there is one."""

    name = "nn.amin"


@irdl_op_definition
class ProdOp(ReduceOp):
    """Product, in row-major order; integers wrap."""

    name = "nn.prod"


class ArgOp(ReduceOp):
    """Where along the one dimension in `dim`, i64; the first one of several. NaN counts as what is looked for."""

    def __init__(self, value: SSAValue, dim: int, keepdim: bool, result_type: Tensor | None = None):
        inferred = tensor_of(i64, reduced_shape(shape(value), (dim,), keepdim))
        super().__init__(value, (dim,), keepdim, result_type or inferred)

    def infer_element(self) -> Attribute:
        return i64

    def verify_(self) -> None:
        require(len(self.axes) == 1, "one dimension is searched")
        super().verify_()


@irdl_op_definition
class ArgmaxOp(ArgOp):
    """Where the largest element is."""

    name = "nn.argmax"


@irdl_op_definition
class ArgminOp(ArgOp):
    """Where the smallest element is."""

    name = "nn.argmin"


INDEXING: tuple[type[NNOp], ...] = (GatherOp, ScatterOp, ArgsortOp, ScanOp, AminOp, ProdOp, ArgmaxOp, ArgminOp)
