# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that use what is known of sizes: stated ranges, guards that are equations, sizes rounded up.

Interpreter, loops and C against eager torch, at the least, the largest and odd sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export

import qcomp

F = nn.functional
TABLE = torch.randn(64, 4, generator=torch.Generator().manual_seed(3))


class Rows(nn.Module):
    """What a stated range of 4 to 64 rows decides."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[1]
        return (
            x[:, n - 1],
            F.pad(x, (0, 0, 0, 64 - n), value=2.5),
            F.pad(x, (1, 0, 64 - n, 3)),
            F.pad(x > 0, (0, 0, 64 - n, 0), value=True),
            F.pad((x * 4).to(torch.int32), (0, 0, 0, 64 - n), value=-3),
            torch.zeros(64, 4).narrow(0, 64 - n, n) + x,
            TABLE[None].expand(x.shape[0], -1, -1).narrow(1, 64 - n, n) * x,
            (x @ x.transpose(1, 2)).diagonal(dim1=1, dim2=2),
            x[:, 1 : n - 1],
        )


class Windows(nn.Module):
    """Sizes rounded up to a multiple: four spellings, windows, convolutions padded as TensorFlow pads them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h, w = x.shape[2:]
        padded = F.pad(x, (0, (4 - w % 4) % 4, 0, -h % 4))
        b, c, high, wide = padded.shape
        windows = padded.view(b, c, high // 4, 4, wide // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
        down, across = (max((-(-size // 2) - 1) * 2 + 3 - size, 0) for size in (h, w))
        same = F.pad(x, [across // 2, across - across // 2, down // 2, down - down // 2])
        ceil = F.pad(x, (0, (w + 7) // 8 * 8 - w, (h + 4) // 5 * 5 - h, 0), value=1.5)
        return windows, F.conv2d(same, self.weight, stride=2), ceil


class UNet(nn.Module):
    """Sizes that come back to where they were: both must be multiples of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.conv, self.up = (
            nn.Conv2d(3, 4, 3, padding=1),
            nn.Conv2d(4, 4, 1),
            nn.ConvTranspose2d(4, 4, 2, 2),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = self.first(x)
        half = self.conv(F.max_pool2d(whole, 2))
        quarter = F.max_pool2d(half, 2)
        joined = torch.cat([whole, self.up(self.up(quarter) + half)], 1)
        b, c, h, w = x.shape
        return joined, x.view(b, c, h // 4, 4, w).mean(3)


def exported(model: nn.Module, shape: tuple[int, ...], sizes: dict[int, Any]) -> Any:
    return export(model.eval(), (torch.randn(shape),), dynamic_shapes=(sizes,))


D = Dim.DYNAMIC
PROGRAMS: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]]]] = {
    "rows": (
        lambda: exported(Rows(), (2, 12, 4), {0: D, 1: Dim("n", min=4, max=64)}),
        [(2, 12, 4), (3, 4, 4), (1, 64, 4), (2, 63, 4), (0, 5, 4)],
    ),
    "windows": (
        lambda: exported(Windows(), (2, 3, 13, 18), {0: D, 2: D, 3: D}),
        [(2, 3, 13, 18), (1, 3, 8, 24), (3, 3, 21, 11), (2, 3, 9, 15), (2, 3, 10, 33)],
    ),
    "unet": (
        lambda: exported(UNet(), (2, 3, 12, 16), {0: D, 2: D, 3: D}),
        [(2, 3, 12, 16), (1, 3, 8, 20), (3, 3, 24, 8)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_to_eager_at_all_levels(name: str):
    torch.manual_seed(4)
    make, shapes = PROGRAMS[name]
    program = make()
    module = qcomp.from_torch(program)
    artifact = qcomp.compile(program, "generic", opt_level=1)
    assert artifact.module is not None
    loops = artifact.module.clone()
    qcomp.run_passes(loops, "lower-to-loop{target=generic},plan-memory")
    for shape in shapes:
        x = torch.randn(shape)
        with torch.no_grad():
            expected = program.module()(x)
        found = qcomp.interpret(module, x.numpy())
        for value, wanted in zip(found, expected, strict=True):
            assert value.dtype == wanted.numpy().dtype
            np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-4, atol=1e-5)
        for value, same in zip(artifact(x), qcomp.interpret(loops, x.numpy()), strict=True):
            assert np.array_equal(value.numpy().view(same.dtype), same)
        for value, wanted in zip(artifact(x), expected, strict=True):
            torch.testing.assert_close(value, wanted, rtol=1e-4, atol=1e-5)


def test_multiples_are_sizes_of_their_own():
    program = PROGRAMS["unet"][0]()
    fixed = qcomp.compile(program, "generic", opt_level=0, dims={"x.2": 8, "x.3": 12})
    assert [port.shape[2:] for port in fixed.interface.inputs] == [(8, 12)]
    with pytest.raises(qcomp.QcompError, match=r"x.2 is 13, which 4 \* \w+ cannot be"):
        qcomp.compile(program, "generic", dims={"x.2": 13})
    with pytest.raises(qcomp.QcompError, match=r"dimension 2 of input x is 13, which 4 \* \w+ cannot be"):
        qcomp.interpret(qcomp.from_torch(program), np.ones((2, 3, 13, 16), np.float32))


def test_symbolic_padding_in_text():
    sizes = "#nn.dims<[s]>"
    padded = "#nn.dims<[-s + 9]>"
    text = f"""
func.func @main(%x: tensor<?xf32, {sizes}>) -> tensor<?xf32, {padded}> attributes {{nn.symbols = [#nn.symbol<s, 0>]}} {{
  %y = nn.pad %x {{low = #nn.dims<[-2 * s + 8]>, high = array<i64: 1>, value = 1.5 : f32}} : (tensor<?xf32, {sizes}>) -> tensor<?xf32, {padded}>
  func.return %y : tensor<?xf32, {padded}>
}}
""".replace(f": (tensor<?xf32, {sizes}>) ->", f": tensor<?xf32, {sizes}> ->")  # noqa: E501
    module = qcomp.parse(text)
    assert str(qcomp.parse(str(module))) == str(module)
    for s in (0, 1, 4):
        (found,) = qcomp.interpret(module, np.arange(s, dtype=np.float32))
        assert found.tolist() == [1.5] * (8 - 2 * s) + list(range(s)) + [1.5]
    with pytest.raises(qcomp.QcompError, match=r"-2 \* s \+ 8 must not be negative, from nn.pad"):
        qcomp.interpret(module, np.zeros(5, np.float32))
