# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The small network, compiled once."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import INPUT, network

import qcomp
from qcomp.backend.artifact import Artifact
from qcomp.dialects.constant import Array


@pytest.fixture(scope="session")
def artifact() -> Artifact:
    """The network, compiled for this machine."""
    return qcomp.compile(network(), opt_level=2)


@pytest.fixture(scope="session")
def sample() -> Array:
    """An input of the network."""
    return np.random.default_rng(8).standard_normal(INPUT).astype(np.float32)
