# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, pools, resizing and padding against eager torch, before and after decomposition."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from eager import Case, compare, ints, r
from torch.nn import functional as F

UNDECOMPOSED = (
    "sampling",
    "nearest",
    "nearest exact",
    "mirrored",
    "circular",
    "circular cut",
    "unfold",
    "fold",
    "linear",
    "cubic",
)
"""Decomposed, they take indices that are tested elsewhere."""
resize: Any = F.interpolate
CLOSE: dict[str, Case] = {
    "transposed 2d": (
        lambda x, w, c: (
            F.conv_transpose2d(x, w, c, 2, 1, 1), F.conv_transpose2d(x[0], w, None, (3, 2), 0, (2, 0), 1, (1, 2)),
        ),
        (r(2, 3, 5, 4), r(3, 5, 3, 2), r(5)),
    ),
    "transposed groups": (
        lambda x, w, v: (F.conv_transpose2d(x, w, None, 2, 1, 0, 2), F.conv_transpose2d(x, v, None, 1, 0, 0, 4)),
        (r(2, 4, 3, 4), r(4, 3, 3, 2), r(4, 2, 2, 3)),
    ),
    "transposed 1d": (
        lambda x, w: (F.conv_transpose1d(x, w, None, 4, 2), F.conv_transpose1d(x[0], w, dilation=3)),
        (r(2, 3, 7), r(3, 5, 8)),
    ),
    "transposed 3d": (
        lambda x, w: F.conv_transpose3d(x, w, None, (2, 1, 2), 1, (1, 0, 0)), (r(2, 3, 3, 4, 2), r(3, 4, 3, 2, 3)),
    ),
    "same": (
        lambda x, w: (F.conv2d(x, w, padding="same", dilation=(1, 3)), F.conv2d(x, w, padding="valid", stride=2)),
        (r(2, 3, 9, 8), r(4, 3, 4, 2)),
    ),
    "conv 3d": (
        lambda x, w: (F.conv3d(x, w, padding="same"), F.conv3d(x[0], w, stride=(1, 2, 1), padding=(1, 0, 1))),
        (r(2, 3, 5, 4, 6), r(4, 3, 2, 3, 3)),
    ),
    "conv 1d": (lambda x, w: (F.conv1d(x, w, padding="same"), F.conv1d(x[0], w, dilation=2)), (r(2, 3, 9), r(4, 3, 4))),
    "averages": (
        lambda x: (
            F.avg_pool3d(x, (2, 3, 2), (1, 2, 3), (1, 1, 0), True), F.avg_pool3d(x, 2, None, 1, False, False),
            F.avg_pool3d(x[0], 3, 1, 0, False, True, 5), F.adaptive_avg_pool3d(x, (2, 4, 1)),
        ),
        (r(2, 3, 5, 6, 7),),
    ),
    "adaptive averages": (
        lambda x: (
            F.adaptive_avg_pool2d(x, (3, 5)), F.adaptive_avg_pool2d(x, (None, 2)), F.adaptive_avg_pool1d(x[0], 4),
        ),
        (r(2, 3, 5, 7),),
    ),
    "linear": (
        lambda x: (
            resize(x, (9, 5), mode="bilinear"), resize(x, (3, 11), mode="bilinear", align_corners=True),
            resize(x, None, (1.7, 0.6), mode="bilinear"), resize(x, None, 2, "bilinear", recompute_scale_factor=True),
            resize(x[0], 9, mode="linear"), resize(x[:, :, None], (3, 9, 4), mode="trilinear"),
        ),
        (r(2, 3, 5, 7),),
    ),
    "cubic": (
        lambda x: (
            resize(x, (9, 5), mode="bicubic"), resize(x, (3, 11), mode="bicubic", align_corners=True),
            resize(x, None, (1.7, 0.6), mode="bicubic"),
        ),
        (r(2, 3, 5, 7),),
    ),
    "antialias": (
        lambda x: (
            resize(x, (4, 9), mode="bilinear", antialias=True), resize(x, (3, 4), mode="bicubic", antialias=True),
            resize(x, None, (0.4, 1.3), mode="bilinear", antialias=True),
            resize(x, (4, 9), mode="bilinear", antialias=True, align_corners=True),
        ),
        (r(2, 3, 11, 7),),
    ),
    "area": (lambda x: (resize(x, (3, 4), mode="area"), resize(x[0], 5, mode="area")), (r(2, 3, 11, 7),)),
    "sampling": (
        lambda x, g, t: (
            F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, "nearest", "reflection", True),
            F.affine_grid(t, [2, 3, 4, 5], False), F.affine_grid(t, [2, 3, 1, 5], True),
        ),
        (r(2, 3, 5, 7), r(2, 4, 6, 2), r(2, 2, 3)),
    ),
    "bags": (
        lambda w, i, s: (
            F.embedding_bag(i, w), F.embedding_bag(i, w, mode="sum", per_sample_weights=s),
            F.embedding_bag(i, w, mode="max"), F.embedding_bag(i[0], w, torch.tensor([0, 1, 3])),
            F.embedding_bag(i[0], w, torch.tensor([0, 2, 4]), include_last_offset=True),
        ),
        (r(9, 5), ints(3, 4).abs() % 9, r(3, 4)),
    ),
    "native norms": (
        lambda x, w: (
            torch.native_layer_norm(x, [4], w, w, 0.1), torch.native_group_norm(x, None, None, 2, 6, 4, 3, 0.1),
        ),
        (r(2, 6, 4), r(4)),
    ),
    "fold": (
        lambda x, y: (F.fold(x, (5, 6), (2, 3), 1, (1, 0), (2, 1)), F.fold(y, (4, 4), 2, padding=1, stride=2)),
        (r(2, 12, 12), r(8, 9)),
    ),
}  # fmt: skip
EXACT: dict[str, Case] = {
    "max pool 3d": (
        lambda x: (F.max_pool3d(x, 3, padding=1, ceil_mode=True), F.max_pool3d(x[0], 2, (1, 2, 3), dilation=(1, 2, 1))),
        (-r(2, 3, 3, 6, 5).abs() - 1,),
    ),
    "max pool 1d": (lambda x: (F.max_pool1d(x, 3, 2, 1, 2), F.max_pool1d(x[0], 2, ceil_mode=True)), (r(2, 3, 9),)),
    "adaptive max": (
        lambda x: (
            F.adaptive_max_pool2d(x, (3, 5)), F.adaptive_max_pool1d(x[0], 4), F.adaptive_max_pool3d(x, (1, 4, 3)),
        ),
        (r(2, 3, 5, 7),),
    ),
    "max pool indices": (
        lambda x: (
            F.max_pool2d(x, 3, 2, 1, 1, True, return_indices=True), F.max_pool1d(x[0], 2, 1, 0, 2, return_indices=True),
            F.max_pool3d(x[:, :, None], (1, 2, 3), 1, (0, 1, 1), return_indices=True),
        ),
        (r(2, 3, 5, 7).round(),),
    ),
    "max pool ints": (lambda x: F.max_pool2d(x, 2, 1), (ints(2, 3, 5, 6, dtype=torch.int32),)),
    "nearest": (
        lambda x: (
            resize(x, (9, 5)), resize(x, None, (1.7, 0.6)), resize(x, (10, 14)), resize(x[0], 4),
            resize(x[:, :, None], (3, 9, 4)), resize(x, None, 2.5, recompute_scale_factor=True),
        ),
        (r(2, 3, 5, 7),),
    ),
    "nearest exact": (
        lambda x: (
            resize(x, (9, 5), mode="nearest-exact"), resize(x, None, (1.7, 0.6), mode="nearest-exact"),
            resize(x[0], 4, mode="nearest-exact"), resize(x[:, :, None], (3, 9, 4), mode="nearest-exact"),
        ),
        (r(2, 3, 5, 7),),
    ),
    "mirrored": (
        lambda x: (
            F.pad(x, (1, 2, 3, 0), "reflect"), F.pad(x[0], (2, 1), "reflect"),
            F.pad(x[:, :, None], (1, 0, 2, 2, 0, 0), "reflect"), F.pad(x, (5, 0, 0, 7), "replicate"),
            F.pad(x[0], (9, 1), "replicate"), F.pad(x[:, :, None], (1, 0, 2, 2, 3, 1), "replicate"),
        ),
        (r(2, 3, 5, 7),),
    ),
    "circular": (
        lambda x: (F.pad(x, (1, 2, 3, 0), "circular"), F.pad(x[0], (7, 3), "circular"), F.pad(x, (-1, 2, 0, -3))),
        (r(2, 3, 5, 7),),
    ),
    "unfold": (
        lambda x: (F.unfold(x, (2, 3), 1, (1, 0), (2, 1)), F.unfold(x[0], 2, (2, 1)), F.unfold(x, 1)), (r(2, 3, 5, 7),),
    ),
    "circular cut": (
        lambda x: (F.pad(x, (-1, 2, 0, -2), "circular"), F.pad(x, (2, -3, 1, 0), "circular")), (r(2, 3, 5, 7),),
    ),
    "bool pad": (lambda x: (F.pad(x.bool(), (1, 2)), F.pad(x.bool(), (0, 1), value=True)), (r(2, 3),)),
    "windows": (lambda x: (x.unfold(1, 3, 2), x.unfold(-1, 2, 1), x.unfold(0, 2, 5)), (r(2, 7, 4),)),
    "grids": (
        lambda x, y: (torch.meshgrid(x, y, indexing="ij"), torch.meshgrid(x, y, x, indexing="xy")), (r(3), r(4)),
    ),
    "single softmax": (lambda x: (F.softmax(x, 0), F.softmax(x.reshape(1), 0)), (r(1)[0],)),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact(name: str) -> None:
    function, inputs = EXACT[name]
    compare(function, *inputs, tolerance=0, decomposed=name not in UNDECOMPOSED)


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    function, inputs = CLOSE[name]
    compare(function, *inputs, tolerance=1e-5, decomposed=name not in UNDECOMPOSED)
