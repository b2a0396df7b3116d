# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merging clamps, over all bounds that matter, bit for bit."""

from __future__ import annotations

import itertools
import math

import numpy as np

from qcomp.dialects.nn import ClampAttr, ReluAttr
from qcomp.interpreter.reference.elementwise import clamp
from qcomp.transforms.activations import RELU, activation_attribute, merge

BOUNDS = (-math.inf, -1.5, -0.0, 0.0, 1.0, 2.0, 3.0, math.inf)
INPUTS = np.array([-math.inf, -2, -1.5, -1, -0.0, 0.0, 0.5, 1, 2, 2.5, 3, 7, math.inf, math.nan], np.float32)


def bits(values: np.ndarray) -> list[int]:
    return values.view(np.uint32).tolist()


def test_two_clamps_are_the_merged_one():
    pairs = list(itertools.product(BOUNDS, BOUNDS))
    refused = 0
    for first, second in itertools.product(pairs, pairs):
        merged = merge(first, second)
        if merged is None:
            refused += 1
            continue
        assert bits(clamp(clamp(INPUTS, *first), *second)) == bits(clamp(INPUTS, *merged)), (first, second)
    assert refused < 0.1 * len(pairs) ** 2


def test_disjoint_ranges_give_the_second_one():
    assert merge((0.0, 1.0), (2.0, 3.0)) == (2.0, 2.0)


def test_relu_is_the_clamp_to_zero_and_infinity():
    assert bits(clamp(INPUTS, *RELU)) == bits(np.where(INPUTS < 0, np.float32(0), INPUTS))
    assert activation_attribute((0.0, math.inf)) == ReluAttr()
    assert activation_attribute((-0.0, math.inf)) == ClampAttr.of(-0.0, math.inf)
