# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions by name, comparison and choice.

The functions that have passes of their own (relu, sigmoid, add ...) are ops in `elementwise`; all others are a name
here, with a formula in `qcomp.interpreter.reference.functions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, Float64Type, IntegerType, StringAttr, TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.element import is_float
from qcomp.dialects.nn.base import (
    NNOp,
    Shape,
    Tensor,
    broadcast_shapes,
    require,
    require_one_element,
    shape,
    tensor,
)
from qcomp.dialects.nn.elementwise import BinaryOp, UnaryOp
from qcomp.dialects.quant import encoding_of

i1 = IntegerType(1)

UNARY_FUNCTIONS: dict[str, int] = {
    "acos": 0, "acosh": 0, "asin": 0, "asinh": 0, "atan": 0, "atanh": 0, "bitwise_not": 0, "ceil": 0, "cos": 0,
    "cosh": 0, "elu": 3, "erfc": 0, "exp2": 0, "expm1": 0, "floor": 0, "hardshrink": 1, "log": 0, "log10": 0,
    "log1p": 0, "log2": 0, "log_sigmoid": 0, "logit": 0, "mish": 0, "nan_to_num": 3, "reciprocal": 0, "round": 0,
    "round_decimals": 1, "sign": 0, "sin": 0, "sinh": 0, "softplus": 2, "softshrink": 1, "tan": 0, "threshold": 2,
    "trunc": 0, "wrap_index": 1,
}  # fmt: skip
"""Name -> number of parameters."""
BINARY_FUNCTIONS = (
    "and", "atan2", "copysign", "floor_divide", "fmax", "fmin", "fmod", "heaviside", "hypot", "logaddexp", "or", "pow",
    "remainder", "shift_left", "shift_right", "trunc_divide", "xlogy", "xor",
)  # fmt: skip
INTEGER_FUNCTIONS = {
    "and", "bitwise_not", "floor_divide", "fmod", "or", "pow", "remainder", "shift_left", "shift_right", "sign",
    "trunc_divide", "wrap_index", "xor",
}  # fmt: skip
"""Those that integers have."""
BOOL_FUNCTIONS = {"and", "bitwise_not", "or", "xor"}
ONLY_INTEGER = {"and", "bitwise_not", "or", "shift_left", "shift_right", "trunc_divide", "wrap_index", "xor"}
"""Those that reals do not have."""
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def check_element(function: str, element: Attribute) -> None:
    """Raise VerifyException when elements of that type do not have the function."""
    if isinstance(element, IntegerType):
        known = BOOL_FUNCTIONS if element == i1 else INTEGER_FUNCTIONS
        require(function in known, f"function {function} of {element} does not exist")
    elif is_float(element):
        require(function not in ONLY_INTEGER, f"function {function} of {element} does not exist")


@irdl_op_definition
class FunctionOp(UnaryOp):
    """A function of each element, of `UNARY_FUNCTIONS`. ``nn.function %x {function = "elu", parameters = ...}``"""

    name = "nn.function"
    function = prop_def(StringAttr)
    parameters = opt_prop_def(DenseArrayBase)

    @staticmethod
    def of(value: SSAValue, function: str, *parameters: float, result_type: Tensor | None = None) -> FunctionOp:
        """`function` of `value`."""
        held = DenseArrayBase.from_list(f64, [float(number) for number in parameters]) if parameters else None
        return FunctionOp(value, result_type, function=StringAttr(function), parameters=held)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters."""
        if self.parameters is None:
            return ()
        return tuple(cast("DenseArrayBase[Float64Type]", self.parameters).get_values())

    def verify_(self) -> None:
        name = self.function.data
        require(name in UNARY_FUNCTIONS, f"{name} is no function of one number")
        count = UNARY_FUNCTIONS[name]
        require(len(self.numbers) == count, f"{name} takes {count} parameters, {len(self.numbers)} are given")
        check_element(name, tensor(self.input).element_type)
        super().verify_()


@irdl_op_definition
class BinaryFunctionOp(BinaryOp):
    """A function of two elements, of `BINARY_FUNCTIONS`, with broadcasting."""

    name = "nn.binary"
    TAKES_TRUTH_VALUES: ClassVar[bool] = True
    function = prop_def(StringAttr)

    @staticmethod
    def of(function: str, lhs: SSAValue, rhs: SSAValue, result_type: Tensor | None = None) -> BinaryFunctionOp:
        """`function` of `lhs` and `rhs`."""
        op = BinaryFunctionOp(lhs, rhs, result_type)
        op.properties["function"] = StringAttr(function)
        return op

    def verify_(self) -> None:
        name = self.function.data
        require(name in BINARY_FUNCTIONS, f"{name} is no function of two numbers")
        for value in (self.lhs, self.rhs):
            check_element(name, tensor(value).element_type)
        super().verify_()


@irdl_op_definition
class CompareOp(NNOp):
    """``lhs predicate rhs`` as i1, with broadcasting: `eq`, `ne`, `lt`, `le`, `gt` or `ge`. With NaN only `ne` holds.

    On quantized tensors the real values are compared.
    """

    name = "nn.compare"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    predicate = prop_def(StringAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$predicate `,` $lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, predicate: str, lhs: SSAValue, rhs: SSAValue, result_type: Tensor | None = None):
        inferred = tensor_of(i1, broadcast_shapes(shape(lhs), shape(rhs)))
        super().__init__(
            operands=[lhs, rhs],
            result_types=[result_type or inferred],
            properties={"predicate": StringAttr(predicate)},
        )

    def infer_shape(self) -> Shape:
        return broadcast_shapes(shape(self.lhs), shape(self.rhs))

    def infer_element(self) -> Attribute:
        return i1

    def verify_(self) -> None:
        require(self.predicate.data in PREDICATES, f"the predicate must be one of {', '.join(PREDICATES)}")
        require_one_element(self.lhs, self.rhs)
        require(tensor(self.result).element_type == i1, "a comparison gives i1")
        super().verify_()


@irdl_op_definition
class SelectOp(NNOp):
    """``condition ? yes : no``, with broadcasting. Codes of one encoding are chosen as they are."""

    name = "nn.select"
    condition = operand_def(TensorType)
    yes = operand_def(TensorType)
    no = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$condition `,` $yes `,` $no attr-dict `:` functional-type(operands, results)"

    def __init__(self, condition: SSAValue, yes: SSAValue, no: SSAValue, result_type: Tensor | None = None):
        sizes = broadcast_shapes(shape(condition), broadcast_shapes(shape(yes), shape(no)))
        super().__init__(
            operands=[condition, yes, no], result_types=[result_type or tensor_of(tensor(yes).element_type, sizes)]
        )

    def infer_shape(self) -> Shape:
        return broadcast_shapes(shape(self.condition), broadcast_shapes(shape(self.yes), shape(self.no)))

    def infer_element(self) -> Attribute:
        return tensor(self.yes).element_type

    def verify_(self) -> None:
        require(tensor(self.condition).element_type == i1, "the condition must be i1")
        require_one_element(self.yes, self.no)
        super().verify_()

    @property
    def moves_codes(self) -> bool:
        """Whether operands and result share one per-tensor encoding, so that codes are chosen."""
        encodings = [encoding_of(value.type) for value in (self.yes, self.no, self.result)]
        first = encodings[0]
        return first is not None and first.per_tensor and all(other == first for other in encodings)


FUNCTIONS: Sequence[type[NNOp]] = (FunctionOp, BinaryFunctionOp, CompareOp, SelectOp)
