# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays kept as blocks of equal values are cut and moved as whole arrays are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from qcomp.transforms.coded_weights import CodedWeight
from qcomp.transforms.lower_to_loop.stored import store
from qcomp.transforms.repeated import Repeated

SMALL = Repeated(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4), (1, 5, 2))
CASES = {
    "a new axis": lambda x: x[:, None],
    "a row": lambda x: x[1],
    "one of a block": lambda x: x[:, 7],
    "part of a block": lambda x: x[:, 3:11],
    "everything": lambda x: x[:],
    "an order within blocks": lambda x: x[:, :, [1, 0, 3, 2, 5, 4, 7, 6]],
    "an order of blocks": lambda x: x[:, :, [2, 3, 0, 1, 6, 7, 4, 5]],
    "an order across blocks": lambda x: x[:, :, [0, 2, 4, 6, 1, 3, 5, 7]],
    "open mesh": lambda x: x[(slice(None), *np.ix_([4, 5], [0, 7]))],
    "more axes": lambda x: x.reshape((2, 1, 15, 8, 1)),
    "joined axes": lambda x: x.reshape((2, 120)),
    "another order": lambda x: x.transpose((2, 0, 1)),
    "several": lambda x: x.transpose((2, 0, 1))[:, :, None].reshape((8, 2, 15))[3:],
}


@pytest.mark.parametrize("name", CASES)
def test_cut_and_moved_as_the_whole(name: str) -> None:
    found, want = CASES[name](SMALL), CASES[name](SMALL.whole())
    assert found.shape == want.shape and np.array_equal(found.whole(), want)
    assert ("order within" not in name and "order of" not in name) or found.values.size == SMALL.values.size


def test_runs_and_steps() -> None:
    whole = SMALL.whole()
    assert whole.shape == SMALL.shape == (2, 15, 8)
    assert SMALL.run() == 2 and Repeated.of(whole).run() == 2 and SMALL.varies(1)
    equal = Repeated(np.array([[1.0, 1, 1, 1, 2, 2]], np.float32), (3, 4))
    assert equal.run() == 8 == Repeated.of(equal.whole()).run() and not equal.varies(0)
    for axis, step in ((1, 5), (1, 10), (1, 3), (2, 2), (2, 4), (2, 1)):
        places = (slice(None),) * axis
        assert np.array_equal(SMALL.every(axis, step).whole(), whole[(*places, slice(None, None, step))])


def test_groups_of_nibbles_are_stored_without_spreading_their_scales() -> None:
    """Beside the codes themselves, half a byte is kept for each and at most one is needed on the way."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-8, 8, (256, 1, 2048)).astype(np.int8)
    scales = Repeated(rng.random((256, 1, 64)).astype(np.float32), (1, 1, 32))
    zeros = Repeated(np.broadcast_to(np.zeros((), "i2"), (256, 1, 64)), (1, 1, 32))
    tracemalloc.start()
    stored = store(CodedWeight(codes, scales, zeros), 16)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored is not None and stored.storage.nibbles and stored.storage.group == 32
    assert kept < 0.66 * codes.size and peak < 2 * codes.size
