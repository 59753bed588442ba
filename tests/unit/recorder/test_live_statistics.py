"""Incremental statistics of a recorder, against those of the whole recording."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz._core import BusyTimes
from gpuviz.data.manifest import Manifest
from gpuviz.recorder.live_statistics import INTERVAL_NS, LiveStatistics, columns_of
from gpuviz.recorder.status import RecorderStatus
from gpuviz.recording import Recording
from tests.unit.analysis.test_memory_state import any_events
from tests.unit.recording.from_activities import rows_of
from tests.unit.recording.from_events import one_line_stacks, rows_table

STATUS = RecorderStatus(
    recording=True,
    streams=True,
    events=0,
    activities=0,
    dropped=0,
    dropped_activities=0,
    dropped_oldest=0,
    bytes_in_memory=0,
    bytes_on_disk=0,
    own_cost_ns=0,
    notes=(),
)
KINDS = ("kernel", "kernel", "memcpy", "memset", "graph", "range")


@st.composite
def activities(draw, most=40):
    """Activities of two devices in any order, some of which end before they begin."""
    begins = st.integers(-5, 60)
    rows = draw(
        st.lists(st.tuples(begins, st.integers(-2, 25), st.sampled_from(KINDS)), max_size=most)
    )
    return rows_of(
        "activities",
        [
            {
                "time": time,
                "end": time + length,
                "kind": kind,
                "device": draw(st.sampled_from([0, 0, 3])),
            }
            for time, length, kind in rows
        ],
    )


def take(live, name, rows):
    live.take(name, columns_of(name, rows))


def split(draw, table):
    """Return a table in parts of random sizes."""
    cuts = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=6)))
    bounds = [0, *cuts, table.num_rows]
    return [table.slice(first, last - first) for first, last in pairwise(bounds)]


def by_device(statistics):
    return {each.device: each for each in statistics.devices}


@given(st.data())
def test_batches_of_activities_add_up_to_the_overlap_of_the_whole(data):
    table = data.draw(activities())
    live = LiveStatistics()
    for part in split(data.draw, table):
        take(live, "activities", part)
    devices = by_device(live.read(100, STATUS))
    lanes = {
        lane.device: lane for lane in Recording({"activities": table}, Manifest()).overlap().devices
    }

    assert set(devices) == set(lanes)
    for device, lane in lanes.items():
        found = devices[device]
        assert (found.start_ns, found.end_ns) == (lane.start, lane.end)
        assert found.busy_ns == lane.busy_ns
        assert found.kernel_ns == lane.kernel_ns
        assert found.copy_ns == lane.copy_ns
        assert found.kernel_copy_ns == lane.kernel_copy_ns
        assert found.activities == lane.count
        assert found.busy == lane.busy
        assert found.hidden_copies == lane.kernel_copy_overlap
        assert found.uncounted_ns == 0


@given(st.data())
def test_batches_of_events_add_up_to_the_memory_of_the_whole(data):
    rows = data.draw(any_events())
    initial = data.draw(st.integers(0, len(rows)))
    table = rows_table(rows)
    live = LiveStatistics()
    for part in split(data.draw, table.slice(0, initial)):
        take(live, "memory_events", part)
    live.begin()
    for part in split(data.draw, table.slice(initial)):
        take(live, "memory_events", part)
    tables = {"memory_events": table, **one_line_stacks(list(range(1, len(rows) + 1)))}
    recording = Recording(tables, Manifest(initial_events=initial))

    for found in live.read(100, STATUS).devices:
        stats = recording.memory_stats(found.device)
        parts = recording.fragmentation(device=found.device)
        assert found.allocated == stats["allocated_bytes.all.current"]
        assert found.allocated_peak == stats["allocated_bytes.all.peak"]
        assert found.reserved == parts.reserved
        assert found.free == parts.free
        assert found.inactive_split == parts.inactive_split
        assert found.largest_free == parts.largest_free
        assert found.cached_whole == parts.cached_whole
        assert found.fragmentation == parts.external


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=60), st.integers(2, 9))
def test_a_union_with_bounded_memory_never_misses_more_than_it_says(intervals, most_parts):
    busy = BusyTimes(most_parts)
    covered = set()
    for start, length in intervals:
        busy.add(
            {
                "time": np.array([start]),
                "end": np.array([start + length]),
                "device": np.zeros(1, np.int16),
                "is_kernel": np.ones(1, np.uint8),
                "is_copy": np.zeros(1, np.uint8),
            }
        )
        covered |= set(range(start, start + length))
        assert busy.parts <= most_parts
    found = busy.of(0)

    assert len(covered) - found["uncounted_ns"] <= found["busy_ns"] <= len(covered)


def test_a_late_long_kernel_counts_as_a_whole_among_many_short_ones():
    live = LiveStatistics()
    short = [{"time": 10 * n, "end": 10 * n + 1, "kind": "kernel"} for n in range(10_000)]
    for first in range(0, len(short), 1000):
        part = rows_of("activities", short[first : first + 1000])
        take(live, "activities", part)
    late = rows_of("activities", [{"time": 5, "end": 99_999, "kind": "kernel"}])
    take(live, "activities", late)
    (device,) = live.read(100_000, STATUS).devices

    assert device.busy_ns == 1 + 99_999 - 5
    assert device.uncounted_ns == 0


def test_the_statistics_of_a_recorder_are_those_of_its_recording():
    chosen = random.Random(1)
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    live = [gpu.empty(12345)]
    with gpuviz.record(device=gpu) as recorder:
        for _ in range(8):
            for _ in range(40):
                live.append(gpu.empty(chosen.choice((1234, 3 << 20, 30 << 20))))
                if len(live) > 9:
                    live.pop(chosen.randrange(len(live)))
            gpu.launch("k", reads=[live[0]], writes=[live[-1]], duration=1e-5)
            gpu.synchronize()
            (device,) = recorder.read_statistics().devices
            recording = recorder.recording

            assert device.allocated == recording.memory_stats()["allocated_bytes.all.current"]
            assert device.allocated_peak == recording.peak().bytes
            assert device.fragmentation == recording.fragmentation().external
            assert device.busy == recording.overlap().devices[0].busy
            free = (1 << 30) - device.reserved
            assert device.unused == free
            assert device.allocatable == max(device.largest_free, free + device.cached_whole)


def test_those_who_follow_get_the_same_numbers_at_the_same_time():
    live = LiveStatistics()
    heard = []
    live.follow(lambda: heard.append(live.latest))
    end = live.follow(lambda: heard.append(live.latest))
    due = [live.is_due(time) for time in (0, 1)]
    first = live.read(1, STATUS)
    soon, later = live.is_due(INTERVAL_NS), live.is_due(1 + INTERVAL_NS)
    end()
    second = live.read(5, STATUS)

    assert due == [True, True]
    assert (soon, later) == (False, True)
    assert [each is first for each in heard] == [True, True, False]
    assert heard[2] is second


def test_nobody_who_follows_needs_no_numbers():
    live = LiveStatistics()
    live.follow(lambda: None)()

    assert not live.is_due(10 * INTERVAL_NS)


def test_how_busy_it_was_lately_is_of_the_last_second():
    live = LiveStatistics()
    second = 10**9

    def kernel(start, end):
        rows = rows_of("activities", [{"time": start, "end": end, "kind": "kernel"}])
        take(live, "activities", rows)

    kernel(0, second)
    for tenth in range(1, 31):
        live.is_due(tenth * second // 10)
    idle = live.read(3 * second, STATUS).devices[0].lately_busy
    kernel(3 * second, 3 * second + second // 4)
    busy = live.read(3 * second + second // 2, STATUS).devices[0].lately_busy

    assert idle == 0
    assert busy == pytest.approx(0.25, abs=0.03)


def test_what_can_be_allocated_is_unknown_without_a_sample():
    live = LiveStatistics()
    live.take_total({0: 100})
    unknown = live.read(0, STATUS).devices[0].allocatable
    live.take_used({0: 30})

    assert unknown is None
    assert live.read(1, STATUS).devices[0].allocatable == 70
