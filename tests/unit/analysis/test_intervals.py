"""Unions of intervals against sets of their nanoseconds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.analysis.intervals import Intervals

PARTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=8)


def union(parts):
    begin = np.array([begin for begin, _ in parts], np.int64)
    return Intervals(begin, begin + np.array([length for _, length in parts], np.int64))


def covered(parts):
    return {time for begin, length in parts for time in range(begin, begin + length)}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Intervals.common, set.intersection),
        (Intervals.without, set.difference),
        (Intervals.joined, set.union),
    ],
)
@given(one=PARTS, other=PARTS)
def test_operations_are_those_of_the_sets_of_times(operation, expected, one, other):
    found = operation(union(one), union(other))
    times = np.arange(30)

    inside = found.within(times, times + 1).tolist()

    assert inside == [time in expected(covered(one), covered(other)) for time in times.tolist()]
    assert found.length == sum(inside)
    assert (found.begin[1:] > found.end[:-1]).all()
