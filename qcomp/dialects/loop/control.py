# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops with carried values. Bounds are affine in outer variables: the largest of `lower`, the least of `upper`."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, IntegerType, StringAttr, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, RecursiveMemoryEffect, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

KINDS = ("parallel", "unroll")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a loop body: the values carried into the next iteration."""

    name = "loop.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class ForOp(IRDLOperation):
    """``%r = loop.for %i = [0] to [%n, 56] step 14 iter (%a = %init) : type {...}``.

    `kind` "parallel" promises that iterations do not depend on one another, "unroll" asks for full unrolling.
    """

    name = "loop.for"
    lower_operands = var_operand_def(IndexType)
    upper_operands = var_operand_def(IndexType)
    inits = var_operand_def()
    outputs = var_result_def()
    lower = prop_def(AffineMapAttr)
    upper = prop_def(AffineMapAttr)
    step = prop_def(IntegerAttr)
    kind = opt_prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        lower: AffineMap,
        lower_operands: Sequence[SSAValue],
        upper: AffineMap,
        upper_operands: Sequence[SSAValue],
        step: int,
        inits: Sequence[SSAValue],
        body: Region | Block,
        kind: str | None = None,
    ):
        super().__init__(
            operands=[lower_operands, upper_operands, inits],
            result_types=[[value.type for value in inits]],
            properties={
                "lower": AffineMapAttr(lower),
                "upper": AffineMapAttr(upper),
                "step": IntegerAttr(step, i64),
                "kind": StringAttr(kind) if kind else None,
            },
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @property
    def induction(self) -> SSAValue:
        """The loop variable."""
        return self.body.block.args[0]

    @property
    def terminator(self) -> YieldOp:
        """The yield that ends the body."""
        return cast(YieldOp, self.body.block.last_op)

    def constant_bounds(self) -> tuple[int, int] | None:
        """(lower, upper) when both are constants."""
        lower, upper = _constant(self.lower.data), _constant(self.upper.data)
        return None if lower is None or upper is None else (lower, upper)

    def verify_(self) -> None:
        args = self.body.block.args
        carried = [value.type for value in self.inits]
        if not args or not isinstance(args[0].type, IndexType) or [arg.type for arg in args[1:]] != carried:
            raise VerifyException("body arguments must be the loop variable and the carried values")
        if [value.type for value in self.terminator.values] != carried:
            raise VerifyException("the body must yield the carried values")
        if [value.type for value in self.outputs] != carried:
            raise VerifyException("results must be the carried values")
        if self.step.value.data < 1:
            raise VerifyException("step must be at least 1")
        if self.kind is not None and self.kind.data not in KINDS:
            raise VerifyException(f"kind must be one of {', '.join(KINDS)}")
        if self.kind is not None and self.kind.data == "parallel" and carried:
            raise VerifyException("a parallel loop cannot carry values")
        for bound, operands in ((self.lower, self.lower_operands), (self.upper, self.upper_operands)):
            if bound.data.num_symbols != len(operands) or bound.data.num_dims or not bound.data.results:
                raise VerifyException("bounds take one symbol per operand and have a result")
            require_positive_divisors(bound.data)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction)
        printer.print_string(" = ")
        print_indices(printer, self.lower.data, self.lower_operands)
        printer.print_string(" to ")
        print_indices(printer, self.upper.data, self.upper_operands)
        if self.step.value.data != 1:
            printer.print_string(f" step {self.step.value.data}")
        if self.kind is not None:
            printer.print_string(f" {self.kind.data}")
        if self.inits:
            printer.print_string(" iter (")
            pairs = list(zip(self.body.block.args[1:], self.inits, strict=True))
            printer.print_list(pairs, lambda pair: _print_pair(printer, *pair))
            printer.print_string(") : ")
            printer.print_list([value.type for value in self.inits], printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(
            self.body, print_entry_block_args=False, print_block_terminators=bool(self.terminator.values)
        )
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        induction = parser.parse_argument(expect_type=False).resolve(IndexType())
        parser.parse_punctuation("=")
        lower, lower_operands = parse_indices(parser)
        parser.parse_keyword("to")
        upper, upper_operands = parse_indices(parser)
        step = parser.parse_integer() if parser.parse_optional_keyword("step") is not None else 1
        kind = next((word for word in KINDS if parser.parse_optional_keyword(word) is not None), None)
        args, inits = [induction], list[SSAValue]()
        if parser.parse_optional_keyword("iter") is not None:
            pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_pair(parser))
            parser.parse_punctuation(":")
            place = parser.pos
            kinds = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            inits = list(parser.resolve_operands([init for _, init in pairs], kinds, place))
            args += [argument.resolve(kind) for (argument, _), kind in zip(pairs, kinds, strict=True)]
        region = parser.parse_region(args)
        if not isinstance(region.block.last_op, YieldOp):
            region.block.add_op(YieldOp())
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(lower, lower_operands, upper, upper_operands, step, inits, region, kind)
        op.attributes |= attributes.data if attributes else {}
        return op


@irdl_op_definition
class IfOp(IRDLOperation):
    """``loop.if %flag {...} else {...}``: runs the first region unless the loaded byte is 0, else the second."""

    name = "loop.if"
    flag = operand_def(IntegerType(8))
    then = region_def("single_block")
    orelse = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$flag `:` type($flag) $then `else` $orelse attr-dict-with-keyword"

    def __init__(self, flag: SSAValue, then: Block, orelse: Block):
        super().__init__(operands=[flag], regions=[Region(then), Region(orelse)])

    def verify_(self) -> None:
        for region in (self.then, self.orelse):
            last = region.block.last_op
            if not isinstance(last, YieldOp) or last.values:
                raise VerifyException("a branch ends with loop.yield of nothing")


@irdl_op_definition
class WhileOp(IRDLOperation):
    """``loop.while {... loop.yield %flag : i8} do {...}``: the second region as long as the first yields no 0."""

    name = "loop.while"
    test = region_def("single_block")
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$test `do` $body attr-dict-with-keyword"

    def __init__(self, test: Block, body: Block):
        super().__init__(regions=[Region(test), Region(body)])

    @property
    def flag(self) -> SSAValue:
        """The byte that decides."""
        return cast(YieldOp, self.test.block.last_op).values[0]

    def verify_(self) -> None:
        for region in (self.test, self.body):
            if not isinstance(region.block.last_op, YieldOp):
                raise VerifyException("a region ends with loop.yield")
        values = cast(YieldOp, self.test.block.last_op).values
        if [value.type for value in values] != [IntegerType(8)]:
            raise VerifyException("the test yields an i8")
        if cast(YieldOp, self.body.block.last_op).values:
            raise VerifyException("the body yields nothing")


def _constant(bound: AffineMap) -> int | None:
    (expr, *rest) = bound.results
    return expr.value if isinstance(expr, AffineConstantExpr) and not rest else None


def _print_pair(printer: Printer, argument: SSAValue, init: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(init)


def _parse_pair(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def print_indices(printer: Printer, indices: AffineMap, operands: Sequence[SSAValue]) -> None:
    """Print affine index expressions with the operands' names: ``[%i + 1, %k * 4]``."""
    names: list[str] = []
    for operand in operands:
        stream, printer.stream = printer.stream, StringIO()
        printer.print_ssa_value(operand)
        names.append(printer.stream.getvalue())
        printer.stream = stream
    printer.print_string("[" + ", ".join(_expression(expr, names) for expr in indices.results) + "]")


def _expression(expr: AffineExpr, names: Sequence[str]) -> str:
    text = str(expr)
    for position in reversed(range(len(names))):
        text = text.replace(f"s{position}", f"\0{position}\0")
    for position, name in enumerate(names):
        text = text.replace(f"\0{position}\0", name)
    return text.removeprefix("(").removesuffix(")") if _wrapped(text) else text


def _wrapped(text: str) -> bool:
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return place == len(text) - 1 and text.startswith("(")
    return False


def parse_indices(parser: Parser) -> tuple[AffineMap, Sequence[SSAValue]]:
    """Parse what `print_indices` printed."""
    return parser.parse_affine_map_of_ssa_ids()


def require_positive_divisors(indices: AffineMap) -> None:
    """Raise VerifyException when an expression divides by what is not a positive constant."""
    for expr in (part for result in indices.results for part in result.dfs()):
        if isinstance(expr, AffineBinaryOpExpr) and expr.kind not in (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul):
            if not isinstance(expr.rhs, AffineConstantExpr) or expr.rhs.value < 1:
                raise VerifyException("indices divide by positive constants only")


def constant_map(*values: int) -> AffineMap:
    """The map without operands whose results are `values`."""
    return AffineMap(0, 0, tuple(AffineExpr.constant(value) for value in values))
