# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Detectors, up to boxes and scores."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, unit


class SingleShot(nn.Module):
    """Class and box convolutions on two levels, all boxes in one list, decoded from default boxes."""

    prior: torch.Tensor

    def __init__(self, classes: int = 4, boxes: int = 3):
        super().__init__()
        self.classes = classes
        self.body = nn.ModuleList([nn.Sequential(unit(3, 8, 3, 2), unit(8, 12, 3, 2)), unit(12, 18, 3, 2)])
        self.scores = nn.ModuleList([nn.Conv2d(size, boxes * classes, 3, padding=1) for size in (12, 18)])
        self.boxes = nn.ModuleList([nn.Conv2d(size, boxes * 4, 3, padding=1) for size in (12, 18)])
        self.register_buffer("prior", torch.rand(1, 3 * (6 * 5 + 3 * 3), 4) + 0.1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores, boxes = [], []
        for body, score, box in zip(self.body, self.scores, self.boxes, strict=True):
            x = body(x)
            scores.append(score(x).permute(0, 2, 3, 1).reshape(x.size(0), -1, self.classes))
            boxes.append(box(x).permute(0, 2, 3, 1).contiguous().view(x.size(0), -1, 4))
        places = torch.cat(boxes, 1)
        middle = self.prior[..., :2] + places[..., :2] * 0.1 * self.prior[..., 2:]
        size = self.prior[..., 2:] * torch.exp(places[..., 2:] * 0.2)
        return torch.softmax(torch.cat(scores, 1), -1), torch.cat([middle - size / 2, middle + size / 2], -1)


@architecture("ssd", (1, 3, 24, 20), quantizers=("xnnpack",))
def ssd() -> nn.Module:
    """Single shot detector."""
    return SingleShot()


class Yolo(nn.Module):
    """Split and concat blocks, spatial pyramid pooling, and a head that decodes with a grid."""

    anchors: torch.Tensor

    def __init__(self, classes: int = 3):
        super().__init__()
        act = nn.SiLU()
        self.stem = nn.Sequential(unit(3, 8, 6, 2, activation=act), unit(8, 12, 3, 2, activation=act))
        self.inner = unit(6, 6, 3, activation=act)
        self.mix = unit(18, 12, 1, activation=act)
        self.deep = unit(12, 16, 3, 2, activation=act)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.join = unit(64, 12, 1, activation=act)
        self.detect = nn.ModuleList([nn.Conv2d(24, 2 * (5 + classes), 1), nn.Conv2d(12, 2 * (5 + classes), 1)])
        self.register_buffer("anchors", torch.tensor([[1.5, 2.0], [3.0, 1.2]]).view(1, 2, 1, 1, 2))
        self.outputs = 5 + classes

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        x = self.stem(x)
        left, right = x.split((6, 6), 1)
        x = self.mix(torch.cat((left, right, right + self.inner(right)), 1))
        deep = self.deep(x)
        once = self.pool(deep)
        twice = self.pool(once)
        deep = self.join(torch.cat([deep, once, twice, self.pool(twice)], 1))
        wide = functional.interpolate(deep, size=x.shape[2:], mode="nearest")
        raw = [detect(part) for detect, part in zip(self.detect, (torch.cat([x, wide], 1), deep), strict=True)]
        return torch.cat([self.decode(part, 4.0 * 2**level) for level, part in enumerate(raw)], 1), raw

    def decode(self, raw: torch.Tensor, stride: float) -> torch.Tensor:
        """Boxes in pixels, and scores."""
        n, _, h, w = raw.shape
        found = raw.view(n, 2, self.outputs, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((columns, rows), 2).expand(1, 2, h, w, 2) - 0.5
        place, size, scores = found.split((2, 2, self.outputs - 4), 4)
        place = (place * 2 + grid) * stride
        size = (size * 2) ** 2 * self.anchors * stride
        return torch.cat((place, size, scores), 4).view(n, -1, self.outputs)


@architecture("yolo", (1, 3, 29, 37))
def yolo() -> nn.Module:
    """A YOLO v5 of two levels."""
    return Yolo()


class CenterNet(nn.Module):
    """A heat map, its local maxima, the best of them, and the offsets and sizes that stand there."""

    def __init__(self, classes: int = 3, best: int = 5):
        super().__init__()
        self.body = nn.Sequential(unit(3, 8, 3, 2), unit(8, 14, 3, 2), nn.ConvTranspose2d(14, 10, 4, 2, 1), nn.ReLU())
        self.heat, self.size, self.offset = (nn.Conv2d(10, outputs, 1) for outputs in (classes, 2, 2))
        self.best = best

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(x)
        heat = self.heat(x).sigmoid()
        peaks = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat)
        width, area = heat.shape[3], heat.shape[2] * heat.shape[3]
        scores, places = torch.topk(peaks.flatten(1), self.best)
        inside = places % area
        row, column = (inside // width).float(), (inside % width).float()
        where = inside.unsqueeze(1).expand(-1, 2, -1)
        offset = self.offset(x).flatten(2).gather(2, where)
        size = self.size(x).flatten(2).gather(2, where)
        boxes = torch.stack([column + offset[:, 0], row + offset[:, 1], size[:, 0], size[:, 1]], 2)
        return torch.cat([boxes, scores.unsqueeze(2)], 2), places // area


@architecture("centernet", (2, 3, 24, 28))
def centernet() -> nn.Module:
    """CenterNet with its decoding."""
    return CenterNet()
