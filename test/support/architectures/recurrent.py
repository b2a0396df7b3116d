# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks with LSTM, GRU and RNN layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from architectures.base import architecture, tokens, unit


class Crnn(nn.Module):
    """Convolutions over a line of text, a bidirectional LSTM over its columns."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(unit(1, 6), nn.MaxPool2d(2), unit(6, 10), nn.MaxPool2d((2, 1), (2, 1)), unit(10, 12))
        self.lstm, self.last = nn.LSTM(12 * 3, 9, bidirectional=True), nn.Linear(18, 13)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        n, c, h, w = x.shape
        steps = x.permute(3, 0, 1, 2).reshape(w, n, c * h)
        return functional.log_softmax(self.last(self.lstm(steps)[0]), 2)


@architecture("crnn", (2, 1, 12, 26))
def crnn() -> nn.Module:
    """Text recognition."""
    return Crnn()


class Tagger(nn.Module):
    """Embedding, recurrent layer, a class for each token."""

    def __init__(self, layer: nn.Module, features: int):
        super().__init__()
        self.words, self.layer, self.last = nn.Embedding(19, 10), layer, nn.Linear(features, 6)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.last(self.layer(self.words(words))[0]), dim=-1)


@architecture("lstm_tagger", tokens(19, 3, 8))
def lstm_tagger() -> nn.Module:
    """Two layers, batch first."""
    return Tagger(nn.LSTM(10, 11, 2, batch_first=True, dropout=0.2), 11)


@architecture("bilstm_tagger", tokens(19, 2, 7))
def bilstm_tagger() -> nn.Module:
    """Both directions."""
    return Tagger(nn.LSTM(10, 7, batch_first=True, bidirectional=True), 14)


class GruClassifier(nn.Module):
    """The last state of a GRU with a given first one."""

    def __init__(self):
        super().__init__()
        self.gru, self.last = nn.GRU(6, 9, 2, batch_first=True), nn.Linear(9, 4)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        _, final = self.gru(x, state)
        return self.last(final[-1]), final


@architecture("gru", (3, 8, 6), (2, 3, 9))
def gru() -> nn.Module:
    """GRU of two layers."""
    return GruClassifier()


class Elman(nn.Module):
    """A tanh RNN and a relu RNN."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RNN(5, 8, batch_first=True), nn.RNN(8, 6, nonlinearity="relu", batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)[0])[0].mean(1)


@architecture("rnn", (2, 7, 5))
def rnn() -> nn.Module:
    """Elman networks."""
    return Elman()


class CellLoop(nn.Module):
    """An LSTM cell, stepped in Python."""

    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.LSTMCell(4, 7), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.size(0), 7), torch.zeros(x.size(0), 7)
        found = []
        for step in x.unbind(1):
            state = self.cell(step, state)
            found.append(self.last(state[0]))
        return torch.stack(found, 1)


@architecture("lstm_cell", (2, 4, 4))
def lstm_cell() -> nn.Module:
    """LSTM cells unrolled by the export."""
    return CellLoop()
