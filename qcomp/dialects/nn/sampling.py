# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading an image at places that another tensor gives."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import ParsePropInAttrDict, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from qcomp.dialects.dims import tensor_of
from qcomp.dialects.nn.base import NNOp, Shape, Tensor, require, require_one_element, same_shape, shape, tensor


@irdl_op_definition
class GridSampleOp(NNOp):
    """[N, C, H, W] read at grid [N, H_out, W_out, 2]: (x, y) from -1 to 1 over the image.

    mode: "bilinear" or "nearest"; padding_mode: what lies outside, "zeros", "border" or "reflection"; -1 and 1 are the
    centres of the first and last element with align_corners, their outer edges without. torch's formulas.
    """

    name = "nn.grid_sample"
    input = operand_def(TensorType)
    grid = operand_def(TensorType)
    result = result_def(TensorType)
    mode = prop_def(StringAttr)
    padding_mode = prop_def(StringAttr)
    align_corners = prop_def(BoolAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input `,` $grid attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, value: SSAValue, grid: SSAValue, mode: str, padding_mode: str, align_corners: bool,
        result_type: Tensor | None = None,
    ):  # fmt: skip
        sizes = (*shape(value)[:2], *shape(grid)[1:3])
        super().__init__(
            operands=[value, grid],
            result_types=[result_type or tensor_of(tensor(value).element_type, sizes)],
            properties={
                "mode": StringAttr(mode), "padding_mode": StringAttr(padding_mode),
                "align_corners": BoolAttr.from_bool(align_corners),
            },
        )  # fmt: skip

    def infer_shape(self) -> Shape:
        value, grid = shape(self.input), shape(self.grid)
        require(len(value) == 4 and 0 not in value[2:], "input must be [N, C, H, W], H and W not 0")
        require(len(grid) == 4 and grid[3] == 2, "grid must be [N, H, W, 2]")
        require(same_shape(value[:1], grid[:1]), "input and grid must have one batch")
        require(self.mode.data in ("bilinear", "nearest"), 'mode must be "bilinear" or "nearest"')
        paddings = ("zeros", "border", "reflection")
        require(self.padding_mode.data in paddings, 'padding_mode must be "zeros", "border" or "reflection"')
        require_one_element(self.input, self.grid)
        return (*value[:2], *grid[1:3])
