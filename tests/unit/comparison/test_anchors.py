"""Moments of two recordings that correspond to each other."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.comparison.anchors import anchors
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.examples import examples


def recorded(program):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def with_ranges(*ranges, kind="range"):
    """Return a recording with ranges: names, begins and ends."""
    names = list(dict.fromkeys(name for name, *_ in ranges))
    rows = [
        {
            "id": number,
            "time": begin,
            "end": end,
            "name": names.index(name) + 1,
            "kind": kind,
            "thread": 1,
            "parent": 0,
        }
        for number, (name, begin, end) in enumerate(ranges, 1)
    ]
    strings = [{"id": number, "text": name} for number, name in enumerate(names, 1)]
    tables = {
        "ranges": pa.Table.from_pylist(rows, schemas()["ranges"]),
        "strings": pa.Table.from_pylist(strings, schemas()["strings"]),
    }
    return Recording(tables, Manifest())


def test_ranges_of_one_name_correspond_in_their_order():
    before = with_ranges(("load", 0, 10), ("step", 10, 20), ("step", 20, 30))
    after = with_ranges(("load", 5, 25), ("new", 30, 35), ("step", 40, 60), ("step", 60, 80))

    found = anchors(before, after)

    assert found.by == "ranges"
    assert found.times == ((0, 5), (10, 25), (20, 60), (30, 80))


def test_what_would_lead_back_in_time_is_left_out():
    before = with_ranges(("a", 0, 10), ("b", 20, 30), ("c", 40, 50))
    after = with_ranges(("c", 0, 5), ("a", 10, 15), ("b", 20, 25))

    assert anchors(before, after).times == ((0, 10), (10, 15), (20, 20), (30, 25))


def test_cells_correspond_in_their_order_whatever_their_numbers():
    before = with_ranges(("In [3]", 0, 10), ("In [4]", 20, 30), kind="cell")
    after = with_ranges(("In [8]", 0, 20), ("In [9]", 40, 60), kind="cell")

    found = anchors(before, after)

    assert found.by == "cells"
    assert found.times == ((0, 0), (10, 20), (20, 40), (30, 60))


def test_open_ranges_have_no_end_that_could_correspond():
    assert anchors(with_ranges(("a", 0, -1)), with_ranges(("a", 0, 5))).by == "beginning"


def test_without_ranges_iterations_correspond():
    def steps(duration):
        def program(gpu):
            x = gpu.empty(1 << 20)
            for _ in range(10):
                gpu.launch("first", duration=duration, writes=[x])
                gpu.launch("second", duration=duration, writes=[x])
                gpu.synchronize()

        return program

    before, after = recorded(steps(1e-3)), recorded(steps(2e-3))

    found = anchors(before, after)

    assert found.by == "iterations"
    starts = [each.iterations()["start"].to_pylist() for each in (before, after)]
    assert set(zip(*starts, strict=True)) <= set(found.times)


def test_of_very_many_moments_the_first_and_the_last_are_kept():
    many = with_ranges(*(("step", 10 * step, 10 * step + 5) for step in range(1501)))

    found = anchors(many, many).times

    assert len(found) <= 1002
    assert (found[0], found[-1]) == ((0, 0), (15_005, 15_005))


def test_nothing_in_common_leaves_the_beginning():
    found = anchors(with_ranges(("a", 0, 10)), with_ranges(("b", 0, 10)))

    assert found.by == "beginning"
    assert found.times == ((0, 0),)


times = st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 20))


@examples(200)
@given(one=st.lists(times, max_size=12), other=st.lists(times, max_size=12))
def test_any_anchors_increase_on_both_sides(one, other):
    before, after = (
        with_ranges(*((name, begin, begin + length) for name, begin, length in ranges))
        for ranges in (one, other)
    )

    found = anchors(before, after).times

    for earlier, later in pairwise(found):
        assert earlier[0] < later[0]
        assert earlier[1] < later[1]
