# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent layers, step by step: what the hidden state contributes is summed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qcomp.interpreter.reference.array import Array
from qcomp.interpreter.reference.elementwise import relu
from qcomp.interpreter.reference.transcendental import sigmoid, tanh

Step = Callable[[Array, Array, tuple[Array, ...]], tuple[Array, ...]]
"""(contribution of the input, of the hidden state, state) -> state; the hidden state is the first part of it."""


def run(x: Array, state: tuple[Array, ...], weight: Array, bias: Array | None, reverse: bool, step: Step) -> Array:
    """[T, N, ...]: all parts of the state after each step, side by side."""
    size = sum(part.shape[1] for part in state)
    result = np.empty((*x.shape[:2], size), x.dtype)
    for time in range(x.shape[0])[:: -1 if reverse else 1]:
        state = step(x[time], product(state[0], weight, bias), state)
        result[time] = np.concatenate(state, axis=1)
    return result


def product(hidden: Array, weight: Array, bias: Array | None) -> Array:
    """hidden times weight transposed, plus bias."""
    total = np.matmul(hidden.astype(np.float64), weight.astype(np.float64).T)
    return (total if bias is None else total + bias.astype(np.float64)).astype(hidden.dtype)


def lstm_step(projection: Array | None) -> Step:
    """The step of a long short-term memory."""

    def step(value: Array, inner: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        first, forget, candidate, output = np.split(value + inner, 4, axis=1)
        cell = sigmoid(forget) * state[1] + sigmoid(first) * tanh(candidate)
        hidden = sigmoid(output) * tanh(cell)
        return (hidden if projection is None else product(hidden, projection, None), cell)

    return step


def gru_step(value: Array, inner: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
    """The step of a gated recurrent unit."""
    (x_reset, x_update, x_new), (reset, update, new) = (np.split(side, 3, axis=1) for side in (value, inner))
    candidate = tanh(x_new + sigmoid(x_reset + reset) * new)
    return (candidate + sigmoid(x_update + update) * (state[0] - candidate),)


def rnn_step(nonlinearity: str) -> Step:
    """The step of a plain recurrent layer."""
    function = tanh if nonlinearity == "tanh" else relu
    return lambda value, inner, state: (function(value + inner),)
