# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sampling an image on a grid, and grids of affine maps."""

from __future__ import annotations

import numpy as np

from qcomp.dialects import nn
from qcomp.errors import QcompError
from qcomp.frontend.builder import Builder, Result, dtype_of, shape_of
from qcomp.frontend.graph import Node
from qcomp.frontend.ops import arithmetic
from qcomp.frontend.ops.shape import reshape_to
from qcomp.frontend.ops.table import op

_MODES = ("bilinear", "nearest")
_PADDINGS = ("zeros", "border", "reflection")


@op("grid_sampler.default", "grid_sampler_2d.default")
def grid_sampler(b: Builder, node: Node) -> Result:
    """Bilinear or nearest, over images."""
    value, grid = b.tensor(node, "input"), b.tensor(node, "grid")
    mode, padding = b.integer(node, "interpolation_mode"), b.integer(node, "padding_mode")
    if len(shape_of(value)) != 4 or not 0 <= mode < len(_MODES):
        raise QcompError("grid sampling of volumes, or by cubic polynomials, is not supported", code="unsupported-op")
    if not 0 <= padding < len(_PADDINGS):
        raise QcompError(f"padding mode {padding} of grid sampling", code="malformed-graph")
    return b.add(nn.GridSampleOp(value, grid, _MODES[mode], _PADDINGS[padding], b.flag(node, "align_corners")))


@op("affine_grid_generator.default")
def affine_grid(b: Builder, node: Node) -> Result:
    """The grid of theta [N, 2, 3]: every place of an image, mapped."""
    theta, size = b.tensor(node, "theta"), b.integers(node, "size")
    if len(size) != 4:
        raise QcompError("affine grids of volumes are not supported", code="unsupported-op")
    b.room(*size[2:], 3)
    sides: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    for length in size[2:]:
        side = np.linspace(-1.0, 1.0, length) if length > 1 else np.zeros(length)
        sides.append(side if b.flag(node, "align_corners") else side * (length - 1) / max(length, 1))
    rows, columns = np.meshgrid(*sides, indexing="ij")
    base = np.stack([columns, rows, np.ones_like(rows)], axis=-1).reshape(-1, 3).astype(np.float32)
    places = b.cast(b.constant(base), dtype_of(theta))
    mapped = b.add(nn.MatmulOp(places, arithmetic.exchanged(b, theta)))
    return reshape_to(b, mapped, (shape_of(theta)[0], *size[2:], 2))
