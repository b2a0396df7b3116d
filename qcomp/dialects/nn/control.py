# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow: ops with regions. A region reads values from outside it directly.

    %y = nn.cond %p : (tensor<i1>) -> (tensor<2xf32>) { ... nn.yield %a : tensor<2xf32> } else { ... }
    %n, %s = nn.while (%n0, %s0) : (tensor<i64>, tensor<2xf32>) -> (tensor<i64>, tensor<2xf32>) {
        ^bb0(...): ... nn.yield %more : tensor<i1>
    } do { ^bb0(...): ... nn.yield %n1, %s1 : tensor<i64>, tensor<2xf32> }
    %h, %ys = nn.iterate (%h0 : tensor<2xf32>) over %xs : tensor<5x3xf32> -> tensor<2xf32>, tensor<5x2xf32> {
        ^bb0(%h: tensor<2xf32>, %x: tensor<3xf32>): ... nn.yield %h1, %y : tensor<2xf32>, tensor<2xf32> }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from qcomp.dialects.dims import sizes_of, tensor_of
from qcomp.dialects.nn.base import require, shape, tensor


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region: what it hands to its op."""

    name = "nn.yield"
    values = var_operand_def(TensorType)
    traits = traits_def(IsTerminator(), Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict $values `:` type($values)"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


def yielded(region: Region) -> Sequence[SSAValue]:
    """The values that a region hands over."""
    last = region.block.last_op
    require(isinstance(last, YieldOp), "a region ends with nn.yield")
    return cast(YieldOp, last).values


def _require_types(found: Sequence[SSAValue], expected: Sequence[Attribute], what: str) -> None:
    require([value.type for value in found] == list(expected), f"{what} has other types")


def _require_flag(value: SSAValue) -> None:
    kind = tensor(value)
    require(kind.element_type == IntegerType(1) and all(size == 1 for size in shape(value)), "a condition is one i1")


@irdl_op_definition
class CondOp(IRDLOperation):
    """What the first region yields if `condition` holds, else what the second one yields."""

    name = "nn.cond"
    condition = operand_def(TensorType)
    outputs = var_result_def(TensorType)
    then = region_def("single_block")
    orelse = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `:` functional-type(operands, results) $then `else` $orelse attr-dict-with-keyword"

    def __init__(self, condition: SSAValue, then: Block, orelse: Block):
        last = cast(YieldOp, then.last_op)
        kinds = [value.type for value in last.values]
        super().__init__(operands=[condition], result_types=[kinds], regions=[Region(then), Region(orelse)])

    def verify_(self) -> None:
        _require_flag(self.condition)
        require(bool(self.outputs), "cond needs a result")
        for region in (self.then, self.orelse):
            require(not region.block.args, "branches take no arguments")
            _require_types(yielded(region), self.result_types, "a branch")


@irdl_op_definition
class WhileOp(IRDLOperation):
    """As long as `test` yields true of the carried values, they become what `body` yields of them."""

    name = "nn.while"
    inits = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    test = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`(` $inits `)` `:` functional-type(operands, results) $test `do` $body attr-dict-with-keyword"

    def __init__(self, inits: Sequence[SSAValue], test: Block, body: Block):
        kinds = [value.type for value in inits]
        super().__init__(operands=[inits], result_types=[kinds], regions=[Region(test), Region(body)])

    def verify_(self) -> None:
        kinds = [value.type for value in self.inits]
        require(bool(kinds), "while carries a value")
        require(list(self.result_types) == kinds, "results are the carried values")
        for region in (self.test, self.body):
            _require_types(region.block.args, kinds, "a region's argument list")
        (flag, *rest) = yielded(self.test) or (None,)
        require(flag is not None and not rest, "the test yields one value")
        _require_flag(cast(SSAValue, flag))
        _require_types(yielded(self.body), kinds, "the body")


@irdl_op_definition
class IterateOp(IRDLOperation):
    """`body` of the carried values and of the elements of `inputs` along dimension 0, one after the other.

    It yields the next carried values and elements of the outputs behind them; results are the last carried values and
    these elements along a new dimension 0.
    """

    name = "nn.iterate"
    inits = var_operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = (
        "`(` ($inits^ `:` type($inits))? `)` `over` $inputs `:` type($inputs) `->` type($outputs) $body "
        "attr-dict-with-keyword"
    )

    def __init__(self, inits: Sequence[SSAValue], inputs: Sequence[SSAValue], body: Block):
        length = shape(inputs[0])[0]
        last = cast(YieldOp, body.last_op)
        rows = [tensor_of(tensor(value).element_type, (length, *shape(value))) for value in last.values[len(inits) :]]
        kinds = [*(value.type for value in inits), *rows]
        super().__init__(operands=[inits, inputs], result_types=[kinds], regions=[Region(body)])

    def verify_(self) -> None:
        require(bool(self.inputs) and bool(self.outputs), "iterate needs an input and a result")
        sizes = [shape(value) for value in self.inputs]
        require(all(sizes) and len({size[0] for size in sizes}) == 1, "inputs need the same dimension 0")
        carried = [value.type for value in self.inits]
        parts = [tensor_of(tensor(value).element_type, shape(value)[1:]) for value in self.inputs]
        _require_types(self.body.block.args, [*carried, *parts], "the region's argument list")
        handed = [value.type for value in yielded(self.body)]
        rows = [cast("TensorType[Attribute]", kind) for kind in handed[len(carried) :]]
        stacked = [tensor_of(kind.element_type, (sizes[0][0], *sizes_of(kind))) for kind in rows]
        require(
            [*handed[: len(carried)], *stacked] == [*carried, *self.result_types[len(carried) :]],
            "the body has other types",
        )
        require(list(self.result_types[: len(carried)]) == carried, "results begin with the carried values")


CONTROL = (CondOp, WhileOp, IterateOp, YieldOp)


def is_control(op: Operation) -> bool:
    """Whether `op` runs regions."""
    return isinstance(op, CondOp | WhileOp | IterateOp)
