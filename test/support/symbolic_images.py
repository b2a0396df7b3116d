# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks over images of any size, batches of any size, and sound of any length."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dynamic_models import Sample
from torch import nn
from torch.export import Dim
from torch.nn import functional as F


def seeded(*sizes: int) -> torch.Generator:
    return torch.Generator().manual_seed(sum(31**place * size for place, size in enumerate(sizes)) % 2**31)


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(*shape))


def tokens(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=seeded(*shape))


class AnyImage(nn.Module):
    """Stride, padding, pools, upsampling by a scale, pixel shuffle: an image of any size, and a batch of any."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
        self.second, self.down = nn.Conv2d(8, 12, 3, padding=1), nn.Conv2d(12, 16, 3, stride=2, padding=1)
        self.wide = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.last = nn.Conv2d(16, 12, 1)
        with torch.no_grad():
            self.norm.running_mean.normal_()  # pyright: ignore[reportOptionalMemberAccess]
            self.norm.running_var.uniform_(0.5, 2)  # pyright: ignore[reportOptionalMemberAccess]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.norm(self.first(x)))
        y = F.max_pool2d(y, 3, stride=2, padding=1)
        y = torch.relu(self.down(self.second(y)))
        y = torch.relu(self.wide(y)) + y
        big = F.interpolate(y, scale_factor=2, mode="nearest")
        smooth = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return F.pixel_shuffle(self.last(y), 2), big + smooth, F.pad(y, (1, 2, 0, 1))

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(16)
        dims = {0: Dim("n", min=0, max=40), 2: Dim("h", min=9, max=128), 3: Dim("w", min=9, max=128)}
        sizes = ((2, 33, 47), (1, 9, 9), (0, 17, 12), (7, 33, 10), (1, 64, 64), (33, 9, 10))
        return Sample(AnyImage().eval(), {"x": dims}, sizes, lambda n, h, w: (noise(n, 3, h, w),))


class Up(nn.Module):
    """A U-net's way down and up with a transposed convolution, for sizes that are multiples of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 10, 3, stride=2, padding=1)
        self.c, self.up = nn.Conv2d(10, 12, 2, stride=2), nn.ConvTranspose2d(12, 10, 2, stride=2)
        self.up2, self.last = nn.ConvTranspose2d(20, 8, 4, stride=2, padding=1), nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.relu(self.a(x))
        b = torch.relu(self.b(a))
        c = torch.relu(self.c(b))
        d = torch.cat([torch.relu(self.up(c)), b], 1)
        return torch.sigmoid(self.last(torch.cat([torch.relu(self.up2(d)), a], 1)))

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(17)
        h, w = Dim("h", min=1, max=16), Dim("w", min=1, max=16)
        return Sample(
            # Not at 1: a guard of torch's own excludes it, whatever the range says.
            Up().eval(), {"x": {2: 4 * h, 3: 4 * w}}, ((2, 3), (3, 2), (7, 2), (9, 4)),
            lambda h, w: (noise(1, 3, 4 * h, 4 * w),),
        )  # fmt: skip


class ResNet(nn.Module):
    """A residual network with a global average pool."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.a, self.norm2 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.b, self.norm3 = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.down, self.skip = nn.Conv2d(16, 24, 3, stride=2, padding=1), nn.Conv2d(16, 24, 1, stride=2)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(24, 5)
        for norm in (self.norm1, self.norm2, self.norm3):
            nn.init.uniform_(norm.running_var, 0.5, 2)  # pyright: ignore[reportArgumentType]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm1(self.first(x)))
        y = torch.relu(self.norm2(self.a(x)))
        x = torch.relu(self.norm3(self.b(y)) + x)
        x = torch.relu(self.down(x) + self.skip(x))
        return self.head(self.pool(x).flatten(1))

    @staticmethod
    def sample(image: bool) -> Sample:
        torch.manual_seed(18)
        model = ResNet().eval()
        if image:
            dims = {0: Dim("n", min=0, max=40), 2: Dim("h", min=3, max=96), 3: Dim("w", min=3, max=96)}
            sizes = ((2, 12, 14), (1, 3, 3), (0, 7, 3), (2, 4, 7), (7, 33, 3), (33, 9, 10))
            return Sample(model, {"x": dims}, sizes, lambda n, h, w: (noise(n, 3, h, w),))
        sizes = ((2,), (0,), (1,), (7,), (33,))
        return Sample(model, {"x": {0: Dim("n", min=0, max=64)}}, sizes, lambda n: (noise(n, 3, 9, 10),))


class Detector(nn.Module):
    """Scores and boxes of places; the best five by topk, their boxes by gather, their classes by argmax."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.scores, self.boxes = nn.Conv2d(8, 3, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.stem(x))
        scores = torch.sigmoid(self.scores(y)).flatten(2).transpose(1, 2)
        boxes = self.boxes(y).flatten(2).transpose(1, 2)
        best, kinds = scores.max(-1)
        values, places = best.topk(5, 1)
        picked = boxes.gather(1, places[..., None].expand(-1, -1, 4))
        order = values.sum(1).argsort(descending=True, stable=True)
        kinds, ordered = kinds.gather(1, places), boxes[:, 0, 0].sort(stable=True)[0]
        return values, kinds, picked, picked.index_select(0, order), ordered

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(19)
        sizes = ((2,), (0,), (1,), (7,), (33,))
        return Sample(
            Detector().eval(), {"x": {0: Dim("n", min=0, max=64)}}, sizes, lambda n: (noise(n, 3, 8, 10),)
        )  # fmt: skip


class Audio(nn.Module):
    """Convolutions over time of any length, running totals, a running mean, the strongest moments."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(2, 8, 5, stride=2, padding=2), nn.Conv1d(8, 6, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(self.b(torch.relu(self.a(x))))
        total = torch.cumsum(y, -1)
        count = torch.arange(1, y.shape[-1] + 1, dtype=torch.float32)
        strongest, when = y.max(-1)
        return total / count, strongest, when, self.up(y), y.flip(-1), y.amin(-1), F.avg_pool1d(y, 3, 2, 1)

    @staticmethod
    def sample() -> Sample:
        torch.manual_seed(20)
        dims = {0: Dim("n", min=0, max=64), 2: Dim("t", min=5, max=4096)}
        sizes = ((2, 33), (1, 5), (0, 7), (7, 6), (2, 7), (33, 100))
        return Sample(Audio().eval(), {"x": dims}, sizes, lambda n, t: (noise(n, 2, t),))


IMAGES: dict[str, Callable[[], Sample]] = {
    "any-image": AnyImage.sample,
    "u-net": Up.sample,
    "resnet-batch": lambda: ResNet.sample(False),
    "resnet-image": lambda: ResNet.sample(True),
    "detector": Detector.sample,
    "audio": Audio.sample,
}
