# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Points, graphs, tables, experts."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, head, tokens, unit


class PointNet(nn.Module):
    """A learned rotation, shared MLPs, the maximum over points."""

    def __init__(self):
        super().__init__()
        self.turn = nn.Sequential(nn.Conv1d(3, 10, 1), nn.BatchNorm1d(10), nn.ReLU())
        self.matrix = nn.Linear(10, 9)
        self.points = nn.Sequential(nn.Conv1d(3, 12, 1), nn.BatchNorm1d(12), nn.ReLU(), nn.Conv1d(12, 20, 1))
        self.last = nn.Linear(20, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.max(self.turn(x), 2, keepdim=True)[0].view(-1, 10)
        matrix = self.matrix(found) + torch.eye(3).flatten().view(1, 9).repeat(x.size(0), 1)
        x = torch.bmm(x.transpose(2, 1), matrix.view(-1, 3, 3)).transpose(2, 1)
        return functional.log_softmax(self.last(torch.max(self.points(x), 2)[0]), dim=1)


@architecture("pointnet", (2, 3, 23))
def pointnet() -> nn.Module:
    """Classification of points."""
    return PointNet()


class Nerf(nn.Module):
    """Sines and cosines of places and directions, an MLP with a skip, volume rendering along rays."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(15, 22), nn.Linear(22 + 15, 22)
        self.density, self.color = nn.Linear(22, 1), nn.Sequential(nn.Linear(22 + 9, 12), nn.ReLU(), nn.Linear(12, 3))

    @staticmethod
    def waves(x: torch.Tensor, count: int) -> torch.Tensor:
        """x, sin(2^k x), cos(2^k x)."""
        parts = [x]
        for power in range(count):
            parts += [torch.sin(2.0**power * x), torch.cos(2.0**power * x)]
        return torch.cat(parts, -1)

    def forward(self, places: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
        x = self.waves(places, 2)
        y = torch.relu(self.second(torch.cat([torch.relu(self.first(x)), x], -1)))
        density = functional.softplus(self.density(y).squeeze(-1))
        ways = self.waves(functional.normalize(directions, dim=-1), 1)[:, None].expand(-1, places.shape[1], -1)
        color = torch.sigmoid(self.color(torch.cat([y, ways], -1)))
        alpha = 1.0 - torch.exp(-density * 0.3)
        left = torch.cumprod(torch.cat([torch.ones(alpha.shape[0], 1), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
        return torch.sum((alpha * left)[..., None] * color, -2)


@architecture("nerf", (4, 7, 3), (4, 3))
def nerf() -> nn.Module:
    """Radiance field with rendering."""
    return Nerf()


class Dlrm(nn.Module):
    """Dense features through an MLP, bags of categories, the products of all pairs."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU())
        self.bags = nn.ModuleList([nn.EmbeddingBag(size, 8, mode=mode) for size, mode in ((13, "sum"), (17, "mean"))])
        self.top = nn.Sequential(nn.Linear(8 + 3, 10), nn.ReLU(), nn.Linear(10, 1), nn.Sigmoid())
        rows, columns = zip(*((row, column) for row in range(3) for column in range(row)), strict=True)
        self.rows, self.columns = list(rows), list(columns)

    def forward(self, dense: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        x = self.dense(dense)
        found = torch.stack([x, self.bags[0](first), self.bags[1](second)], 1)
        products = torch.bmm(found, found.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([x, products], 1))


@architecture("dlrm", (3, 5), tokens(13, 3, 4), tokens(17, 3, 6))
def dlrm() -> nn.Module:
    """Recommendation."""
    return Dlrm()


class Siamese(nn.Module):
    """One network on two images, their cosine and distance."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(unit(1, 8, 3, 2), unit(8, 12, 3, 2), head(12, 9))

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = self.body(left), self.body(right)
        return functional.cosine_similarity(a, b), torch.norm(a - b, dim=1)


@architecture("siamese", (2, 1, 17, 14), (2, 1, 17, 14))
def siamese() -> nn.Module:
    """Shared weights on two inputs."""
    return Siamese()


class Capsules(nn.Module):
    """Primary capsules, and two rounds of routing by agreement."""

    def __init__(self):
        super().__init__()
        self.first, self.primary = nn.Conv2d(1, 8, 5), nn.Conv2d(8, 12, 5, 2)
        self.weight = nn.Parameter(torch.randn(5, 3 * 3 * 2, 6, 4) * 0.3)

    @staticmethod
    def squash(x: torch.Tensor) -> torch.Tensor:
        """Length below one, direction kept."""
        square = (x**2).sum(-1, keepdim=True)
        return square / (1 + square) * x / (square.sqrt() + 1e-8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.primary(torch.relu(self.first(x)))
        capsules = self.squash(x.view(x.size(0), 3, 4, -1).permute(0, 1, 3, 2).reshape(x.size(0), -1, 4))
        votes = torch.einsum("jiod,nid->njio", self.weight, capsules)
        logits = torch.zeros(votes.shape[:3])
        found = votes.sum(2)
        for _ in range(2):
            found = self.squash((torch.softmax(logits, 1)[..., None] * votes).sum(2))
            logits = logits + (votes * found[:, :, None]).sum(-1)
        return found.norm(dim=-1)


@architecture("capsules", (2, 1, 13, 12))
def capsules() -> nn.Module:
    """Capsule network."""
    return Capsules()


class Gcn(nn.Module):
    """Two graph convolutions over an adjacency that is an input, normalized by degree."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 9, bias=False), nn.Linear(9, 4, bias=False)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        whole = edges.float() + torch.eye(edges.shape[0])
        degree = whole.sum(1).pow(-0.5)
        whole = degree[:, None] * whole * degree[None, :]
        return functional.log_softmax(whole @ self.second(torch.relu(whole @ self.first(x))), dim=1)


def _edges() -> torch.Tensor:
    edges = torch.rand(8, 8) < 0.3
    return edges | edges.T


@architecture("gcn", (8, 6), _edges)
def gcn() -> nn.Module:
    """Graph convolution with a dense adjacency."""
    return Gcn()


class Experts(nn.Module):
    """The two best of four experts for each token, weighted; all are computed and the others masked."""

    def __init__(self, width: int = 10):
        super().__init__()
        self.gate = nn.Linear(width, 4, bias=False)
        self.wide, self.narrow = nn.Parameter(torch.randn(4, width, 14)), nn.Parameter(torch.randn(4, 14, width))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = functional.one_hot(chosen, 4).to(x.dtype)
        each = (weights[..., None] * mask).sum(1)
        hidden = functional.gelu(torch.einsum("td,edh->eth", x, self.wide) / math.sqrt(10))
        found = torch.einsum("eth,ehd->etd", hidden, self.narrow) / math.sqrt(14)
        return torch.einsum("te,etd->td", each, found), chosen


@architecture("moe", (6, 10))
def moe() -> nn.Module:
    """Mixture of experts with a top-2 gate."""
    return Experts()


class NeuralFilter(nn.Module):
    """Matrix factorization and an MLP on the same users and items."""

    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(9, 8), nn.Embedding(14, 8)
        self.deep = nn.Sequential(nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4), nn.ReLU())
        self.last = nn.Linear(12, 1)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        a, b = self.users(user), self.items(item)
        return torch.sigmoid(self.last(torch.cat([a * b, self.deep(torch.cat([a, b], -1))], -1))).squeeze(-1)


@architecture("neural_filter", tokens(9, 5), tokens(14, 5))
def neural_filter() -> nn.Module:
    """Neural collaborative filtering."""
    return NeuralFilter()
