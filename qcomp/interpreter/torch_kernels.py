# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which aten overload each nn op stands for: the ones that torch.export writes, with the same arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Operation

from qcomp.dialects import nn
from qcomp.dialects.dims import attribute_size
from qcomp.dialects.element import numpy_dtype
from qcomp.dialects.nn.base import ints, shape, tensor, torch_sizes
from qcomp.interpreter.torch_functions import functions
from qcomp.interpreter.torch_recurrent import recurrent

Values = Sequence[Any]
Kernel = Callable[[Any, Values], Any]


def kernels(torch: Any) -> dict[type[Operation], Kernel]:
    """The kernel of each nn op: a function of the op and its operands as torch tensors."""
    aten = torch.ops.aten
    return {
        **_elementwise(torch),
        **functions(torch),
        **{op: _convolution(aten, f"conv{op.SPATIAL}d") for op in nn.CONVOLUTIONS},
        **{op: _transposed(aten) for op in nn.TRANSPOSED},
        nn.LinearOp: lambda op, v: _finish(aten, op, aten.linear(v[0], v[1], v[2] if op.bias is not None else None), v),
        nn.MatmulOp: lambda op, v: aten.matmul(v[0], v[1]),
        **_norms(aten),
        **_pools(aten),
        **_movement(torch),
        nn.DimValueOp: lambda op, v: torch.tensor(op.size, dtype=torch.int64),
        nn.ArangeOp: lambda op, v: _arange(torch, op),
        nn.GridSampleOp: lambda op, v: _grid_sample(aten, op, v),
        **dict.fromkeys(nn.RECURRENT, lambda op, v: recurrent(torch, op, v)),
    }


def _arange(torch: Any, op: nn.ArangeOp) -> Any:
    count, step = shape(op.result)[0], op.step.value.data
    kind = getattr(torch, numpy_dtype(tensor(op.result).element_type).name)
    return (op.first + step * torch.arange(count, dtype=torch.int64)).to(kind)


def _elementwise(torch: Any) -> dict[type[Operation], Kernel]:
    aten = torch.ops.aten
    unary: dict[type[Operation], Any] = {
        nn.ReluOp: aten.relu, nn.SigmoidOp: aten.sigmoid, nn.TanhOp: aten.tanh, nn.SiluOp: aten.silu,
        nn.HardswishOp: aten.hardswish, nn.HardsigmoidOp: aten.hardsigmoid, nn.ExpOp: aten.exp, nn.SqrtOp: aten.sqrt,
        nn.RsqrtOp: aten.rsqrt, nn.NegOp: aten.neg, nn.AbsOp: aten.abs, nn.ErfOp: aten.erf,
    }  # fmt: skip
    binary: dict[type[Operation], Any] = {
        nn.AddOp: aten.add, nn.SubOp: aten.sub, nn.MulOp: aten.mul, nn.DivOp: aten.div,
        nn.MaximumOp: aten.maximum, nn.MinimumOp: aten.minimum,
    }  # fmt: skip
    return {
        **{op: (lambda op, v, f=f: f(v[0])) for op, f in unary.items()},
        **{op: (lambda op, v, f=f: _activate(aten, op, f(v[0], v[1]))) for op, f in binary.items()},
        nn.ClampOp: lambda op, v: _clamp(aten, v[0], *op.bounds),
        nn.LeakyReluOp: lambda op, v: aten.leaky_relu(v[0], op.negative_slope.value.data),
        nn.GeluOp: lambda op, v: aten.gelu(v[0], approximate=op.approximate.data),
        nn.CastOp: lambda op, v: v[0].to(_dtype(torch, op)),
        nn.BitcastOp: lambda op, v: v[0].contiguous().view(_dtype(torch, op)),
    }


def _convolution(aten: Any, name: str) -> Kernel:
    def kernel(op: nn.ConvolutionOp, values: Values) -> Any:
        pairs = op.padding_pairs
        even = [min(pair) for pair in pairs]
        excess = [
            side - base for (begin, end), base in reversed(list(zip(pairs, even, strict=True))) for side in (begin, end)
        ]
        value = aten.constant_pad_nd(values[0], excess, 0.0) if any(excess) else values[0]
        bias = values[2] if op.bias is not None else None
        window = (list(ints(op.stride)), even, list(ints(op.dilation)), op.groups.value.data)
        return _finish(aten, op, getattr(aten, name)(value, values[1], bias, *window), values)

    return kernel


def _transposed(aten: Any) -> Kernel:
    def kernel(op: nn.ConvTransposeOp, values: Values) -> Any:
        groups, weight = op.groups.value.data, values[1]
        outputs, inputs = weight.shape[:2]
        grouped = weight.reshape(groups, outputs // groups, *weight.shape[1:]).transpose(1, 2)
        weight = grouped.reshape(groups * inputs, outputs // groups, *weight.shape[2:])
        names = (op.stride, op.padding, op.dilation, op.output_padding)
        stride, padding, dilation, extra = (list(ints(attr)) for attr in names)
        bias = values[2] if op.bias is not None else None
        result = aten.convolution(values[0], weight, bias, stride, padding, dilation, True, extra, groups)
        return _finish(aten, op, result, values)

    return kernel


def _finish(aten: Any, op: nn.WeightedOp, result: Any, values: Values) -> Any:
    return _activate(aten, op, result if op.residual is None else aten.add(result, values[-1]))


def _activate(aten: Any, op: nn.WeightedOp | nn.BinaryOp, value: Any) -> Any:
    match op.activation:
        case None:
            return value
        case nn.ReluAttr():
            return aten.relu(value)
        case activation:
            return _clamp(aten, value, *activation.bounds)


def _clamp(aten: Any, value: Any, low: float, high: float) -> Any:
    bounds = (None if low == -math.inf else low, None if high == math.inf else high)
    return value if bounds == (None, None) else aten.clamp(value, *bounds)


def _norms(aten: Any) -> dict[type[Operation], Kernel]:
    def batch_norm(op: nn.BatchNormOp, values: Values) -> Any:
        weight, bias = _optional(op, values[3:])
        return aten.batch_norm(values[0], weight, bias, values[1], values[2], False, 0.1, op.eps.value.data, True)

    def layer_norm(op: nn.LayerNormOp, values: Values) -> Any:
        return aten.layer_norm(
            values[0], list(ints(op.normalized_shape)), *_optional(op, values[1:]), op.eps.value.data
        )

    return {
        nn.BatchNormOp: batch_norm,
        nn.LayerNormOp: layer_norm,
        nn.SoftmaxOp: lambda op, v: aten.softmax(v[0], op.dim.value.data),
    }


def _optional(op: nn.BatchNormOp | nn.LayerNormOp, values: Values) -> tuple[Any, Any]:
    rest = list(values)
    weight = rest.pop(0) if op.weight is not None else None
    return weight, rest.pop(0) if op.bias is not None else None


def _pools(aten: Any) -> dict[type[Operation], Kernel]:
    def window(op: nn.PoolOp) -> list[list[int]]:
        return [list(ints(attr)) for attr in (op.kernel_size, op.stride, op.padding)]

    def avg_pool(op: nn.AvgPoolOp, values: Values) -> Any:
        divisor = None if op.divisor_override is None else op.divisor_override.value.data
        flags = (bool(op.ceil_mode.value.data), bool(op.count_include_pad.value.data), divisor)
        return getattr(aten, f"avg_pool{op.SPATIAL}d")(values[0], *window(op), *flags)

    def max_pool(op: nn.MaxPoolOp, values: Values) -> Any:
        flags = (list(ints(op.dilation)), bool(op.ceil_mode.value.data))
        return getattr(aten, f"max_pool{op.SPATIAL}d")(values[0], *window(op), *flags)

    def max_pool_indices(op: nn.MaxPoolIndicesOp, values: Values) -> Any:
        flags = (list(ints(op.dilation)), bool(op.ceil_mode.value.data))
        return getattr(aten, f"max_pool{op.SPATIAL}d_with_indices")(values[0], *window(op), *flags)[1]

    def adaptive(kind: str, op: nn.AdaptivePoolOp, values: Values) -> Any:
        return getattr(aten, f"adaptive_{kind}_pool{op.SPATIAL}d")(values[0], list(ints(op.output_size)))

    def reduce(function: Any) -> Kernel:
        return lambda op, v: function(v[0], list(op.axes), bool(op.keepdim.value.data))

    return {
        **dict.fromkeys(nn.MAX_POOLS, max_pool),
        **dict.fromkeys(nn.MAX_POOL_INDICES, max_pool_indices),
        **dict.fromkeys(nn.AVG_POOLS, avg_pool),
        **dict.fromkeys(nn.ADAPTIVE_AVG_POOLS, lambda op, v: adaptive("avg", op, v)),
        **dict.fromkeys(nn.ADAPTIVE_MAX_POOLS, lambda op, v: adaptive("max", op, v)[0]),
        nn.MeanOp: reduce(aten.mean),
        nn.SumOp: reduce(aten.sum),
        nn.AmaxOp: reduce(aten.amax),
    }


def _movement(torch: Any) -> dict[type[Operation], Kernel]:
    aten = torch.ops.aten

    def pad(op: nn.PadOp, values: Values) -> Any:
        pairs = reversed(list(zip(ints(op.low), ints(op.high), strict=True)))
        return aten.constant_pad_nd(values[0], [size for pair in pairs for size in pair], op.value.value.data)

    def take(op: nn.TakeOp, values: Values) -> Any:
        return aten.index_select(values[0], op.dim.value.data, torch.tensor(ints(op.indices), dtype=torch.int64))

    def cut(op: nn.SliceOp, values: Values) -> Any:
        return aten.slice(values[0], op.dim.value.data, *op.bounds, op.step.value.data)

    def insert(op: nn.InsertSliceOp, values: Values) -> Any:
        dim, start, step = op.dim.value.data, attribute_size(op.start), op.step.value.data
        base, source = values
        end = min(start + source.shape[dim] * step, base.shape[dim])
        return aten.slice_scatter(base, source, dim, start, end, step)

    return {
        nn.InsertSliceOp: insert,
        nn.IndexCopyOp: lambda op, v: aten.index_copy(v[1], op.dim.value.data, v[0].long(), v[2]),
        nn.ReshapeOp: lambda op, v: aten.reshape(v[0], torch_sizes(op.result)),
        nn.PermuteOp: lambda op, v: aten.permute(v[0], list(ints(op.dims))),
        nn.ExpandOp: lambda op, v: aten.expand(v[0], torch_sizes(op.result)),
        nn.SliceOp: cut,
        nn.CatOp: lambda op, v: aten.cat(list(v), op.dim.value.data),
        nn.PadOp: pad,
        nn.TakeOp: take,
        nn.ResampleOp: lambda op, v: _resample(aten, op.dim.value.data, *v),
        nn.EmbeddingOp: lambda op, v: aten.embedding(v[0], v[1]),
    }


def _grid_sample(aten: Any, op: nn.GridSampleOp, values: Values) -> Any:
    mode = ("bilinear", "nearest").index(op.mode.data)
    padding = ("zeros", "border", "reflection").index(op.padding_mode.data)
    return aten.grid_sampler(values[0], values[1], mode, padding, bool(op.align_corners.value.data))


def _resample(aten: Any, axis: int, value: Any, indices: Any, weights: Any) -> Any:
    parts = [
        aten.index_select(value, axis, indices[:, tap])
        * weights[:, tap].reshape([-1 if dim == axis else 1 for dim in range(value.dim())])
        for tap in range(indices.shape[1])
    ]
    return sum(parts[1:], parts[0])


def _dtype(torch: Any, op: nn.CastOp | nn.BitcastOp) -> Any:
    element = tensor(op.result).element_type
    return torch.bfloat16 if isinstance(element, BFloat16Type) else getattr(torch, numpy_dtype(element).name)
