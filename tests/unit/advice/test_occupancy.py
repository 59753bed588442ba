"""The share of a GPU that launches of a kernel leave idle, against a count of each ns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.advice.kernels.occupancy import Occupancy
from gpuviz.analysis.intervals import Intervals

MULTIPROCESSORS = 8
spans = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 10)), max_size=8)


@given(launches=spans, others=spans)
def test_idle_multiprocessors_are_those_that_no_running_kernel_fills(launches, others):
    begin, length, blocks = (np.array([row[at] for row in launches], int) for at in range(3))
    other_begin, other_length = (np.array([row[at] for row in others], int) for at in range(2))
    fill, running = np.zeros(100), np.zeros(100, int)
    for start, lasts, count in launches:
        fill[start : start + lasts] += count / MULTIPROCESSORS
        running[start : start + lasts] += 1
    for start, lasts, _ in others:
        fill[start : start + lasts] += 1
    fill = np.minimum(fill, 1)

    found = Occupancy(
        begin,
        begin + length,
        blocks,
        MULTIPROCESSORS,
        Intervals(other_begin, other_begin + other_length),
    )

    expected = [int((1 - fill[start : start + lasts]).sum()) for start, lasts, _ in launches]
    assert found.idle_ns.tolist() == expected
    assert found.union_ns == (running > 0).sum()
    assert found.most_at_once == running.max(initial=0)
    assert found.filled_at_most_ns(0.5) == ((running > 0) & (fill <= 0.5)).sum()
