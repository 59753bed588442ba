"""A window of a recording, against the whole recording."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.test_analysis import recording_of
from tests.unit.recording.test_memory_state import any_events

EXAMPLES = examples(20)


@EXAMPLES
@given(rows=any_events(), bounds=st.lists(st.integers(0, 60), min_size=3, max_size=3))
def test_memory_in_a_window_is_what_it_is_in_the_whole(rows, bounds):
    start, at, end = sorted(bounds)
    whole = recording_of(rows)

    part = whole.window(start, end)

    assert part.memory_snapshot(at) == whole.memory_snapshot(at)
    assert part.memory_snapshot() == whole.memory_snapshot(end)
    inside = [row for row in rows if start < row["time"] <= end]
    assert part.table("memory_events").num_rows - part.manifest.initial_events == len(inside)
    for device in part.devices:
        counted = [row for row in inside if row["device"] == device and row["action"] == "alloc"]
        stats = part.memory_stats(device)
        assert stats["allocation.all.allocated"] <= len(counted)


@EXAMPLES
@given(
    times=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), max_size=12),
    bounds=st.lists(st.integers(0, 40), min_size=2, max_size=2),
)
def test_what_lasts_into_a_window_is_in_it(times, bounds):
    start, end = sorted(bounds)
    timeline = Timeline()
    for begin, length in times:
        timeline.kernel(begin, begin + length)
        timeline.call(begin, begin + length)
        timeline.synchronization("stream_synchronize", begin, begin + length)
    expected = [begin for begin, length in times if begin <= end and begin + length > start]

    part = timeline.recording().window(start, end)

    for table in ("activities", "api_calls", "synchronizations"):
        assert part.table(table)["time"].to_pylist() == expected


def test_what_launched_a_kernel_of_a_window_is_in_it_whenever_it_was_called():
    timeline = Timeline()
    timeline.call(1, 2, line=7, correlation=5)
    timeline.call(3, 4, correlation=6)
    timeline.kernel(30, 40, correlation=5)

    part = timeline.recording().window(20, 50)

    assert part.table("api_calls")["time"].to_pylist() == [1]
    assert part.kernels().select(["launch_delay_ns", "source"]).to_pylist() == [
        {"launch_delay_ns": 28, "source": "line 7"}
    ]


def test_the_busy_time_of_windows_side_by_side_adds_up():
    timeline = Timeline()
    timeline.kernel(10, 50)
    timeline.copy(40, 90, bytes=1)
    whole = timeline.recording()

    parts = [whole.window(start, start + 25).overlap(0, start, start + 25) for start in (0, 25, 50)]

    busy = [part.devices[0].busy_ns for part in parts]
    assert busy == [15, 25, 25]


def test_ranges_and_waits_of_unknown_time_stay():
    timeline = Timeline()
    for number, (begin, end) in enumerate([(1, 5), (8, 20), (15, -1)], 1):
        row = {"id": number, "time": begin, "end": end, "name": timeline.text("r"), "kind": "cell"}
        timeline.add("ranges", row)
    timeline.synchronization("event_record")

    part = timeline.recording().window(10, 30)

    assert part.table("ranges")["id"].to_pylist() == [2, 3]
    assert part.table("synchronizations").num_rows == 1


def test_a_window_is_whole_when_it_lies_within_what_is_recorded():
    recording = Timeline().recording(complete=False, duration_ns=100)

    assert recording.window(10, 90).is_complete
    assert recording.window(10, 90).duration_ns == 90
    assert not recording.window(10, 110).is_complete


def test_a_window_that_ends_before_it_begins_is_refused():
    with pytest.raises(ValueError, match="must not end before it starts, got 20 to 10 ns"):
        Timeline().recording().window(20, 10)


def test_bounds_taken_from_a_table_give_the_window_that_plain_numbers_give(tmp_path):
    timeline = Timeline()
    timeline.kernel(10, 70)
    whole = timeline.recording(duration_ns=100)
    bounds = whole.table("activities")["time"].to_numpy()[0], np.int64(60)

    part = whole.window(*bounds)

    loaded = gpuviz.load(part.save(tmp_path / "part.gpuviz"))
    assert loaded.manifest.duration_ns == 60
    assert whole.overlap(0, *bounds) == whole.overlap(0, 10, 60)
    assert whole.report(tmp_path / "part.html", window=bounds).exists()


@pytest.mark.parametrize(
    ("bounds", "length"),
    [((0, 10**30), 100), ((200, 300), 100), ((-9, -5), 0), ((-(10**30), 5), 5)],
)
def test_a_window_lasts_no_longer_than_the_whole(bounds, length):
    recording = Timeline().recording(duration_ns=100)

    assert recording.window(*bounds).duration_ns == length


@pytest.mark.parametrize("bounds", [(0.5, 10), (0, 1e9), (0, "1s"), (False, 10)])
def test_bounds_that_are_no_whole_numbers_are_refused_by_name(bounds, tmp_path):
    recording = Timeline().recording(duration_ns=100)
    wrong = repr(next(bound for bound in bounds if type(bound) is not int))

    for ask in (recording.window, lambda *bounds: recording.overlap(None, *bounds)):
        with pytest.raises(ValueError, match=f"must be a time in ns, a whole number, got {wrong}"):
            ask(*bounds)
    with pytest.raises(ValueError, match=f"must be a time in ns, a whole number, got {wrong}"):
        recording.report(tmp_path / "part.html", window=bounds)


@pytest.mark.parametrize(
    ("manifest_ns", "expected"),
    [(0, 70), (69, 70), (70, 70), (90, 90)],
)
def test_a_recording_lasts_until_its_end_is_stated_or_the_last_that_it_has(manifest_ns, expected):
    timeline = Timeline()
    timeline.kernel(10, 70)
    timeline.call(5, 8)

    recording = timeline.recording(complete=False, duration_ns=manifest_ns)

    assert recording.duration_ns == expected
