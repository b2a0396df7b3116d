# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop dialect: loops over buffers and register tiles.

A register tile is one SSA value of an n-dimensional vector type. The interpreter works on whole tiles, the C emitter
unrolls them into registers: meaning and speed are the same text.
"""

from xdsl.ir import Dialect

from qcomp.dialects.loop.compute import (
    BroadcastOp,
    ClampOp,
    ContractOp,
    ExtendOp,
    LookupOp,
    MultiplyAddOp,
    NarrowOp,
    RoundOp,
    ToFloatOp,
    tile_element,
    tile_like,
    tile_shape,
)
from qcomp.dialects.loop.control import ForOp, IfOp, WhileOp, YieldOp, constant_map
from qcomp.dialects.loop.halves import NarrowHalfOp, WidenHalfOp
from qcomp.dialects.loop.memory import (
    ConstantOp,
    LoadOp,
    PartOp,
    StoreOp,
    ViewOp,
    access_properties,
    element_bytes,
    memref_bytes,
)
from qcomp.dialects.loop.real import (
    AngleOp,
    CompareOp,
    FillOp,
    MaximumOp,
    MinimumOp,
    ReduceOp,
    RemainderOp,
    ScaleOp,
    SelectOp,
    TruncateOp,
)
from qcomp.dialects.loop.size import SizeOp

Loop = Dialect(
    "loop",
    [
        IfOp, WhileOp, PartOp,
        ForOp, YieldOp, LoadOp, StoreOp, ConstantOp, ViewOp, ContractOp, MultiplyAddOp, BroadcastOp, ExtendOp,
        ToFloatOp, RoundOp, NarrowOp, ClampOp, LookupOp, CompareOp, SelectOp, MaximumOp, MinimumOp, ScaleOp, TruncateOp,
        FillOp, ReduceOp, AngleOp, RemainderOp, SizeOp, WidenHalfOp, NarrowHalfOp,
    ],
)  # fmt: skip

__all__ = [
    "AngleOp", "BroadcastOp", "ClampOp", "CompareOp", "ConstantOp", "ContractOp", "ExtendOp", "FillOp", "ForOp", "IfOp",
    "LoadOp", "LookupOp", "Loop", "MaximumOp", "MinimumOp", "MultiplyAddOp", "NarrowHalfOp", "NarrowOp", "PartOp",
    "ReduceOp", "RemainderOp", "RoundOp", "ScaleOp", "SelectOp", "SizeOp", "StoreOp", "ToFloatOp", "TruncateOp",
    "ViewOp", "WhileOp", "WidenHalfOp", "YieldOp", "access_properties", "constant_map",
    "element_bytes", "memref_bytes", "tile_element", "tile_like", "tile_shape",
]  # fmt: skip
