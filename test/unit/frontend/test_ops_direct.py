# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that the exporter writes rarely, called in graphs made by hand."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
from eager import ints, r
from torch import nn
from torch.utils._pytree import tree_leaves

from qcomp.frontend import from_torch
from qcomp.interpreter.run import interpret

SCALES, ZEROS = torch.tensor([0.02, 0.5, 0.007]), torch.tensor([3, -5, 0])
X, Y, ROW = r(2, 6), r(2, 6, seed=1), r(1, 6)
DIRECT: list[tuple[str, tuple[Any, ...]]] = [
    (
        "aten._convolution.default",
        (r(1, 2, 5, 6), r(3, 2, 2, 3), None, [1, 2], [0, 1], [1, 1], False, [0, 0], 1, False, False, True, True),
    ),
    ("aten._int_mm.default", (ints(19, 8).to(torch.int8), ints(8, 16).to(torch.int8))),
    ("aten._reshape_copy.default", (X, [3, 4])),
    ("aten._unsafe_view.default", (X, [4, -1])),
    ("aten.view_copy.default", (X, [3, 4])),
    ("aten.reshape_as.default", (X, r(3, 4))),
    ("aten.absolute.default", (X,)),
    ("aten.negative.default", (X,)),
    ("aten.positive.default", (X,)),
    ("aten.add.Scalar", (X, 3, 0.5)),
    ("aten.sub.Scalar", (X, 3, 2)),
    ("aten.rsub.Scalar", (X, 3, 2)),
    ("aten.mul.Scalar", (X, 3)),
    ("aten.div.Scalar", (X, 4)),
    ("aten.subtract.Tensor", (X, Y)),
    ("aten.multiply.Tensor", (X, Y)),
    ("aten.divide.Tensor", (X, Y)),
    ("aten.true_divide.Tensor", (ints(2, 6), Y)),
    ("aten.min.other", (X, Y)),
    ("aten.alias_copy.default", (X,)),
    ("aten.detach_copy.default", (X,)),
    ("aten.lift_fresh.default", (X,)),
    ("aten.contiguous.default", (X,)),
    ("aten.resolve_conj.default", (X,)),
    ("aten.resolve_neg.default", (X,)),
    ("aten.copy.default", (X, ints(6))),
    ("aten.alpha_dropout.default", (X, 0.5, False)),
    ("aten.feature_dropout.default", (X, 0.5, False)),
    ("aten.feature_alpha_dropout.default", (X, 0.5, False)),
    ("aten.arange.start", (2, 9)),
    ("aten.clamp_min.default", (X, 0.25)),
    ("aten.clip.default", (X, None, 0.25)),
    ("aten.broadcast_to.default", (ROW, [3, 6])),
    ("aten.expand_copy.default", (ROW, [3, -1])),
    ("aten.concat.default", ([X, Y], 1)),
    ("aten.concatenate.default", ([X, Y],)),
    ("aten.conv3d.padding", (r(1, 2, 3, 4, 5), r(3, 2, 1, 2, 3), None, [1, 1, 1], "same")),
    ("aten.movedim.intlist", (r(2, 3, 4), [0, 1], [2, 0])),
    ("aten.permute_copy.default", (r(2, 3, 4), [2, 0, 1])),
    ("aten.swapdims.default", (r(2, 3, 4), 0, -1)),
    ("aten.t_copy.default", (X,)),
    ("aten.transpose_copy.int", (r(2, 3, 4), 1, 2)),
    ("aten.new_full.default", (X, [2, 3], 1.5)),
    ("aten.new_ones.default", (ints(2), [2, 3])),
    ("aten.new_zeros.default", (X, [3])),
    ("aten.ones_like.default", (ints(2),)),
    ("aten.zeros.default", ([2, 3],)),
    ("aten.select_copy.int", (X, 1, -2)),
    ("aten.slice_copy.Tensor", (X, 1, 1, 5, 2)),
    ("aten.special_erf.default", (X,)),
    ("aten.special_softmax.default", (X, 1)),
    ("aten.split.default", (X, [2, 4], 1)),
    ("aten.split.sizes", (X, [2, 4], 1)),
    ("aten.split_copy.Tensor", (X, 4, 1)),
    ("aten.split_with_sizes_copy.default", (X, [1, 5], 1)),
    ("aten.unbind_copy.int", (X, 1)),
    ("aten.squeeze_copy.dim", (ROW, 0)),
    ("aten.squeeze_copy.dims", (ROW, [0, 1])),
    ("aten.unsqueeze_copy.default", (X, -1)),
    ("aten.to.device", (X, torch.device("cpu"), torch.float64)),
    ("aten.to.dtype_layout", (X, torch.int32)),
    ("aten.to.other", (X, ints(1))),
    ("prims.convert_element_type.default", (X, torch.float64)),
    ("quantized_decomposed.convert_element_type.no_fuse", (X, torch.float64)),
    ("quantized_decomposed.fake_quant_per_channel.default", (r(50, 3), SCALES, ZEROS, 1, -128, 127)),
    (
        "quantized_decomposed.dequantize_per_tensor.tensor",
        (ints(6, dtype=torch.int8), torch.tensor(0.1), torch.tensor(3), -9, 9, torch.int8),
    ),
]
PARAMETERS = ("scale", "scales", "zero_point", "zero_points")


@pytest.mark.parametrize(("target", "arguments"), DIRECT, ids=[target for target, _ in DIRECT])
def test_direct(target: str, arguments: tuple[Any, ...]) -> None:
    namespace, operation, overload = target.split(".")
    op = getattr(getattr(getattr(torch.ops, namespace), operation), overload)
    graph, root, inputs = torch.fx.Graph(), nn.Module(), list[torch.Tensor]()

    def place(value: Any, name: str) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
            return [place(part, name) for part in value]
        if not isinstance(value, torch.Tensor):
            return value
        if name in PARAMETERS:
            root.register_buffer(name, value)
            return graph.get_attr(name)
        inputs.append(value)
        return graph.placeholder(f"x{len(inputs)}")

    names = [argument.name for argument in op._schema.arguments]
    keywords = {a.name for a in op._schema.arguments if a.kwarg_only}
    given = [(name, place(value, name), value) for name, value in zip(names, arguments, strict=False)]
    node = graph.call_function(
        op,
        tuple(value for name, value, _ in given if name not in keywords),
        {name: value for name, value, _ in given if name in keywords},
    )
    expected = op(*(v for n, _, v in given if n not in keywords), **{n: v for n, _, v in given if n in keywords})
    many = isinstance(expected, list | tuple)
    graph.output(
        tuple(graph.call_function(operator.getitem, (node, i)) for i in range(len(expected))) if many else node
    )
    module = from_torch(torch.fx.GraphModule(root, graph), inputs)
    found = interpret(module, *(value.numpy() for value in inputs))
    for left, right in zip(found, tree_leaves(expected), strict=True):
        assert (left.dtype, left.shape) == (right.numpy().dtype, tuple(right.shape))
        assert np.allclose(left, right.numpy(), 1e-6, 1e-6)
