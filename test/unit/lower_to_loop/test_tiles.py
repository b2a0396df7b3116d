# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How dimensions are cut into tiles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qcomp.dialects.dim import substitute, symbol, times_real
from qcomp.transforms.lower_to_loop.tiles import cuts


@given(st.integers(1, 30), st.integers(0, 130), st.integers(1, 3), st.integers(0, 4))
def test_parts_cover_a_symbolic_size_once(step: int, value: int, factor: int, more: int) -> None:
    size = symbol("s") * factor + more
    done = 0
    for start, stop, width in cuts(size, step):
        first, last = (substitute(edge, {"s": value}) for edge in (start, stop))
        assert first == done and (last - first) % width == 0 and last >= first
        done = last
    assert done == value * factor + more


@given(st.integers(1, 30), st.integers(0, 130))
def test_parts_cover_a_number_once(step: int, size: int) -> None:
    found = list(cuts(size, step))
    assert sum(stop - start for start, stop, _ in found) == size and len(found) <= 2
    assert all(start < stop and (stop - start) % width == 0 for start, stop, width in found)
    assert [start for start, _, _ in found[1:]] == [stop for _, stop, _ in found[:-1]]


@given(st.integers(0, 2**12), st.integers(0, 5000))
def test_real_multiples_of_sizes(parts: int, value: int) -> None:
    by = parts / 1024
    assert substitute(times_real(symbol("s"), by), {"s": value}) == int(value * by)
