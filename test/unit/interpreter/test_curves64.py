# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Curves of float64: within 4 units in the last place of torch's, over their whole domains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from qcomp.interpreter.reference import transcendental
from qcomp.interpreter.reference.angle import quadrant, remaining_angle
from qcomp.interpreter.reference.functions import BINARY, FUNCTIONS, evaluate

RNG = np.random.default_rng(5)
Array = np.ndarray


def between(low: float, high: float, small: float = 1e-12) -> Array:
    """Numbers between bounds of opposite signs, evenly and by size."""
    even = RNG.uniform(low, high, 4000)
    sizes = np.exp(RNG.uniform(math.log(small), math.log(max(-low, high)), 4000)) * RNG.choice([-1, 1], 4000)
    return np.concatenate([even, sizes[(sizes > low) & (sizes < high)], [0.0, -0.0]])


def positive(low: float, high: float) -> Array:
    return np.concatenate([np.exp(RNG.uniform(math.log(low), math.log(high), 4000)), RNG.uniform(0.5, 2, 4000)])


ANGLES = np.concatenate([between(-1e3, 1e3), np.exp(RNG.uniform(1, 700, 3000)), np.arange(1.0, 999.0) * (math.pi / 2)])
UNARY: dict[str, Array] = {
    "acos": RNG.uniform(-1, 1, 8000), "acosh": 1 + positive(1e-12, 1e200), "asin": between(-1, 1),
    "asinh": between(-1e200, 1e200), "atan": between(-1e200, 1e200), "atanh": between(-0.99999, 0.99999),
    "cos": ANGLES, "cosh": between(-709, 709), "exp2": between(-1070, 1023), "expm1": between(-80, 709),
    "log": positive(1e-308, 1e308), "log10": positive(1e-308, 1e308), "log1p": positive(1e-30, 1e300) - 0.5,
    "log2": positive(1e-308, 1e308), "sin": ANGLES, "sinh": between(-709, 709), "tan": ANGLES,
    "erfc": between(-6, 26), "exp": between(-708, 709), "tanh": between(-30, 30), "erf": between(-7, 7),
    "sigmoid": between(-700, 60),
}  # fmt: skip


def units(found: Array, expected: Array) -> float:
    """The largest distance in units in the last place of what was expected."""
    size = np.spacing(np.maximum(np.abs(expected), np.finfo(np.float64).tiny))
    return float((np.abs(found - expected) / size).max())


def quiet(function: Callable[..., Array], *arguments: Any) -> Array:
    with np.errstate(all="ignore"):
        return function(*arguments)


def function(name: str) -> Callable[[Array], Array]:
    if name in FUNCTIONS:
        return lambda x: quiet(evaluate, FUNCTIONS[name], [x], ())
    return getattr(transcendental, name)


@pytest.mark.parametrize("name", UNARY)
def test_near_torch(name: str) -> None:
    x = UNARY[name]
    assert units(function(name)(x), getattr(torch, name)(torch.from_numpy(x)).numpy()) <= 4


@pytest.mark.parametrize("name", ["atan2", "hypot", "pow"])
def test_of_two_near_torch(name: str) -> None:
    x, y = between(-1e5, 1e5), RNG.permutation(between(-1e5, 1e5))
    if name == "pow":
        # A power of 2^n keeps about log2 |n| - 5 bits less than the others.
        x, y = positive(1e-4, 1e4), RNG.uniform(-9, 9, 8000)
    expected = getattr(torch, name)(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    assert units(quiet(evaluate, BINARY[name], [x, y], ()), expected) <= 4


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    """torch's own cancels below 0: what is left differs by units of the factor, not of the result."""
    x = between(-40, 40)
    expected = torch.nn.functional.gelu(torch.from_numpy(x), approximate=approximate).numpy()
    assert (
        np.abs(transcendental.gelu(x, approximate) - expected) <= 2e-16 * np.abs(x) + 4 * np.spacing(np.abs(expected))
    ).all()


def test_ends() -> None:
    x = np.array([0.0, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        for name in UNARY:
            expected = getattr(torch, name)(torch.from_numpy(x)).numpy()
            assert np.array_equal(function(name)(x), expected, equal_nan=True), name
    tiny = np.array([5e-324, -5e-324, 1e-310])
    for name in ("exp", "expm1", "log1p", "sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "tanh", "erf"):
        expected = getattr(torch, name)(torch.from_numpy(tiny)).numpy()
        assert units(function(name)(tiny), expected) <= 4, name
    top = np.array([709.9, -710.4])
    for name in ("cosh", "sinh"):
        assert units(function(name)(top), getattr(np, name)(top)) <= 4, name
    far = transcendental.exp(np.array([-745.0, -746.0, 709.78, 709.79]))
    assert units(far[:3], np.exp(np.array([-745.0, -746.0, 709.78]))) <= 4 and np.isinf(far[3])


def test_an_angle_close_to_a_right_one() -> None:
    """Of all float64 this one lies nearest to a multiple of pi/2: 61 bits cancel."""
    x = np.array([6381956970095103.0 * 2.0**797])
    assert abs(float(remaining_angle(x)[0])) == pytest.approx(4.6871659242546277e-19, rel=1e-15)
    assert units(np.abs(evaluate(FUNCTIONS["cos"], [x], ())), np.array([4.6871659242546277e-19])) <= 2
    assert quadrant(np.array([1.0, 2.0, 4.0, 5.0, -1.0, -2.0, 1e22])).tolist() == [1, 1, 3, 3, 3, 3, 3]
