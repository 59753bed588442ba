"""A window of a recording, against the whole recording."""

import copy
from dataclasses import asdict

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuviz
from tests.examples import examples
from tests.unit.analysis.test_analysis import recording_of
from tests.unit.analysis.test_memory_state import any_events
from tests.unit.recording.any_timeline import RECORDINGS
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_summary import text_of

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


@EXAMPLES
@given(recording=RECORDINGS, bounds=st.lists(st.integers(0, 50), min_size=2, max_size=2))
def test_busy_times_and_causes_in_a_window_are_those_of_the_whole_in_that_time(recording, bounds):
    start, end = sorted(bounds)
    start, end = min(start, recording.duration_ns), min(end, recording.duration_ns)
    assume(start < end)
    whole = recording.overlap(start=start, end=end)

    part = recording.window(start, end)

    for expected, found in (
        (whole.devices, part.overlap().devices),
        (whole.streams, part.overlap().streams),
    ):
        assert [same(lane) for lane in found] == [same(lane) for lane in expected]
    middle = (start + end) // 2
    narrow = part.window(middle, end).overlap()
    expected = recording.overlap(start=middle, end=end)
    assert [same(lane) for lane in narrow.devices] == [
        same(lane) for lane in expected.devices
    ] or middle == end


def same(lane):
    """Return the numbers of a lane; what takes no time at a bound is in one of two windows."""
    return asdict(lane) | {"count": 0}


@EXAMPLES
@given(recording=RECORDINGS, bounds=st.lists(st.integers(0, 50), min_size=2, max_size=2))
def test_waits_and_lengths_in_a_window_are_those_of_the_whole_cut_to_it(recording, bounds):
    start, end = sorted(bounds)
    start, end = min(start, recording.duration_ns), min(end, recording.duration_ns)
    assume(start < end)
    bounds = start, end

    part = recording.window(start, end)

    for name in ("host_waits", "idle_gaps"):
        assert all(
            start <= row["time"] <= row["end"] <= end for row in part.table(name).to_pylist()
        )
    assert blocked(part) == blocked(recording, bounds)
    assert totals(part.kernels("line")) == length(recording, "kernel", bounds)
    assert totals(part.copies("line")) == length(recording, "memcpy", bounds)


def blocked(recording, bounds=(0, 1000)):
    """Return the time in which the host was blocked, by kind, call and line."""
    found = {}
    for row in recording.table("host_waits").to_pylist():
        name = text_of(recording, row["name"])
        key = row["kind"], name, recording.call_stacks.call_site(row["stack"])[0]
        found[key] = found.get(key, 0) + inside(row, bounds)
    return {key: total for key, total in found.items() if total}


def inside(row, bounds):
    return max(0, min(row["end"], bounds[1]) - max(row["time"], bounds[0]))


def length(recording, kind, bounds):
    rows = recording.table("activities").to_pylist()
    return sum(inside(row, bounds) for row in rows if row["kind"] == kind)


def totals(table):
    return sum(table["total_ns"].to_pylist())


@EXAMPLES
@given(recording=RECORDINGS, bounds=st.lists(st.integers(0, 50), min_size=2, max_size=2))
def test_a_saved_window_and_a_copied_one_are_the_same(recording, bounds, tmp_path_factory):
    start, end = sorted(bounds)
    part = recording.window(start, end)
    path = tmp_path_factory.mktemp("window") / "part.gpuviz"

    loaded = gpuviz.load(part.save(path))

    for again in (loaded, copy.deepcopy(part)):
        assert again.bounds == part.bounds
        assert again.overlap() == part.overlap()
        assert dict(again.derived) == dict(part.derived)


def test_a_wait_of_a_second_lasts_a_millisecond_in_a_window_of_one():
    timeline = Timeline()
    timeline.call(0, 10**9, "cuStreamSynchronize", line=3, correlation=1)
    timeline.kernel(0, 10**9)
    timeline.call(0, 10**9, "cuMemcpyDtoH_v2", line=4, correlation=2)
    timeline.copy(10**9 - 1000, 10**9, bytes=5000, correlation=2)

    part = timeline.recording().window(5 * 10**8, 5 * 10**8 + 10**6)
    at_the_end = timeline.recording().window(10**9 - 10, 10**9)

    assert part.duration_ns == 5 * 10**8 + 10**6
    assert part.synchronizations()["max_ns"].to_pylist() == [10**6, 10**6]
    assert part.kernels()["max_ns"].to_pylist() == [10**6]
    assert (
        at_the_end.synchronizations()
        .filter(pc.field("kind") == "memcpy")
        .to_pylist()[0]["transfer_ns"]
        == 10
    )
    assert at_the_end.copies().select(["total_ns", "bytes", "bytes_per_second"]).to_pylist() == [
        {"total_ns": 10, "bytes": 5000, "bytes_per_second": 5e9}
    ]


def test_what_rows_of_a_window_refer_to_is_in_it():
    timeline = Timeline()
    timeline.call(1, 2, correlation=1)
    timeline.synchronization("event_record", stream=2, event_sync_id=5, correlation=2)
    timeline.call(2, 3, correlation=2)
    waits = {"stream": 1, "event_sync_id": 5, "correlation": 3}
    timeline.synchronization("stream_wait_event", 3, 4, **waits)
    timeline.call(3, 4, correlation=3, range=7)
    timeline.call(5, 6, correlation=4, line=9, range=8)
    timeline.kernel(0, 60, stream=2, correlation=1)
    timeline.kernel(62, 70, stream=1, correlation=4)
    timeline.kernel(1, 2, stream=3, correlation=9)
    for number, parent in ((7, 0), (8, 7), (9, 0)):
        row = {"id": number, "time": 1, "end": 6, "name": timeline.text("r"), "parent": parent}
        timeline.add("ranges", row | {"kind": "range"})
    timeline.add("device_memory", {"time": 5, "used": 3})
    timeline.add("device_memory", {"time": 6, "used": 4})
    timeline.add("launch_blocks", {"correlation": 4, "block": 1})
    timeline.add("launch_blocks", {"correlation": 9, "block": 1})
    whole = timeline.recording()

    part = whole.window(50, 65)

    assert part.table("api_calls")["correlation"].to_pylist() == [1, 2, 3, 4]
    assert part.table("synchronizations").num_rows == 2
    assert part.table("ranges")["id"].to_pylist() == [7, 8]
    assert part.table("device_memory")["used"].to_pylist() == [4]
    assert part.table("launch_blocks")["correlation"].to_pylist() == [4]
    assert part.kernels("line")["source"].to_pylist() == ["", "line 9"]
    (first, second, _) = part.overlap().streams
    assert (first.idle_dependency_ns, second.idle_ns) == (10, 5)


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
