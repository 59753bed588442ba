"""The derived tables, against plain Python by nanosecond or by wait."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpuviz.analysis.classification import classify
from gpuviz.data.derived import schemas
from tests.unit.analysis.classified import EXAMPLES, plain_stream_waits
from tests.unit.recording.any_timeline import CORRELATIONS, RECORDINGS, SYNC_IDS, TIMES
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_overlap import CAUSES, PlainOverlap


def lanes(rows):
    """Return rows of ``idle_gaps`` by device and stream."""
    found = {}
    for row in rows:
        found.setdefault((row["device"], row["stream"] or None), []).append(row)
    return found


@EXAMPLES
@given(recording=RECORDINGS)
def test_each_idle_nanosecond_is_in_one_part_that_has_its_cause(recording):
    plain = PlainOverlap(recording)
    found = lanes(recording.derived["idle_gaps"].to_pylist())

    of_devices = {(row["device"], None) for row in plain.activities}
    of_streams = {(row["device"], row["stream"]) for row in plain.activities}
    for device, stream in of_devices | of_streams:
        parts = found.pop((device, stream), [])
        moments = [
            (now, (part["cause"], part["activity"]))
            for part in parts
            for now in range(part["time"], part["end"])
        ]
        assert moments == sorted(plain.causes(device, stream).items())
    assert found == {}


@EXAMPLES
@given(recording=RECORDINGS)
def test_parts_are_as_long_as_can_be_and_in_order(recording):
    rows = recording.derived["idle_gaps"].to_pylist()

    places = [(row["device"], row["stream"], row["time"]) for row in rows]
    assert places == sorted(places)
    for before, after in pairwise(rows):
        same = all(before[name] == after[name] for name in ("device", "stream", "activity"))
        if same and before["end"] == after["time"]:
            assert before["cause"] != after["cause"]


@EXAMPLES
@given(recording=RECORDINGS)
def test_the_parts_of_a_lane_sum_to_its_overlap(recording):
    overlap = recording.overlap()
    sums = Counter()
    for row in recording.derived["idle_gaps"].to_pylist():
        sums[row["device"], row["stream"], row["cause"]] += row["end"] - row["time"]

    for lane in (*overlap.devices, *overlap.streams):
        stream = getattr(lane, "stream", 0)
        expected = {cause: getattr(lane, f"idle_{cause}_ns") for cause in CAUSES}
        assert {cause: sums[lane.device, stream, cause] for cause in CAUSES} == expected


def test_work_on_no_known_stream_is_work_of_its_device_only():
    timeline = Timeline()
    timeline.kernel(0, 10, stream=0)
    timeline.kernel(20, 30, stream=3)
    rows = timeline.recording().derived["idle_gaps"].to_pylist()

    assert [(row["stream"], row["time"], row["end"]) for row in rows] == [(0, 10, 20), (3, 0, 20)]


def test_a_gap_with_an_allocation_in_its_middle_has_three_parts():
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.kernel(50, 60, correlation=7)
    timeline.call(40, 45, correlation=7)
    timeline.call(20, 30, "cuMemAlloc_v2", correlation=6)
    rows = timeline.recording().derived["idle_gaps"].to_pylist()

    assert [
        (row["time"], row["end"], row["cause"], row["activity"])
        for row in rows
        if row["stream"] == 1
    ] == [
        (10, 20, "host", 1),
        (20, 30, "allocation", 1),
        (30, 45, "host", 1),
        (45, 50, "unknown", 1),
    ]


def test_thousands_of_streams_do_not_fill_the_memory():
    timeline = Timeline()
    for number in range(2000):
        timeline.kernel(0, 1, stream=number + 1)
        timeline.call(10 * number, 10 * number + 5, "cuMemAlloc_v2")
    timeline.kernel(20_000, 20_001)
    rows = timeline.recording().derived["idle_gaps"]

    assert rows.num_rows <= 1 << 20
    assert rows["stream"].unique().to_pylist()[:3] == [0, 1, 2]


@st.composite
def any_events(draw):
    """Event records, waits and activities on two streams, in any order of calls."""
    timeline = Timeline()
    for _ in range(draw(st.integers(0, 12))):
        columns = {"stream": draw(st.integers(1, 3)), "correlation": draw(CORRELATIONS)}
        time = draw(TIMES)
        if draw(st.booleans()):
            timeline.kernel(time, time + draw(st.integers(0, 9)), **columns)
            continue
        columns |= {"event": draw(st.integers(1, 2)), "event_sync_id": draw(SYNC_IDS)}
        kind = draw(st.sampled_from(["event_record", "stream_wait_event"]))
        timeline.synchronization(kind, time * draw(st.integers(0, 1)), time, **columns)
    return timeline.recording()


def test_an_event_without_a_time_is_reached_after_all_that_its_stream_waited_for():
    timeline = Timeline()
    timeline.kernel(10, 90, stream=1, correlation=1)
    chain = [("event_record", 1, 1), ("stream_wait_event", 2, 1), ("event_record", 2, 2)]
    for correlation, (kind, stream, sync_id) in enumerate(chain, 2):
        timeline.call(correlation, correlation + 1, "cuEvent", correlation=correlation)
        columns = {"stream": stream, "event_sync_id": sync_id, "correlation": correlation}
        timeline.synchronization(kind, **columns)
    timeline.synchronization("stream_wait_event", stream=3, event_sync_id=2, correlation=5)
    timeline.call(6, 7, "cuEventRecord", correlation=6)
    timeline.synchronization("event_record", stream=4, event_sync_id=3, correlation=6)
    timeline.synchronization("stream_wait_event", stream=3, event_sync_id=3, correlation=7)
    waits = timeline.recording().derived["stream_waits"].to_pylist()

    assert [wait["recorded_time"] for wait in waits] == [90, 90, 6]


def test_an_event_without_a_time_is_reached_after_copies_issued_on_its_stream():
    timeline = Timeline()
    timeline.call(0, 1, "cuMemcpyPeerAsync", correlation=1, stream=1)
    timeline.copy(5, 90, copy_kind="peer_to_peer", source="device", stream=7, correlation=1)
    timeline.call(2, 3, "cuEventRecord", correlation=2)
    timeline.synchronization("event_record", stream=1, event_sync_id=1, correlation=2)
    timeline.synchronization("stream_wait_event", stream=2, event_sync_id=1, correlation=3)
    (wait,) = timeline.recording().derived["stream_waits"].to_pylist()

    assert wait["recorded_time"] == 90


def test_a_large_copy_through_the_host_begins_after_an_event_without_a_time():
    timeline = Timeline()
    timeline.kernel(10, 50, stream=2, correlation=1)
    timeline.synchronization("event_record", stream=2, event_sync_id=1, correlation=2)
    timeline.synchronization("stream_wait_event", stream=1, event_sync_id=1, correlation=3)
    timeline.call(3, 4, "cuMemcpyPeerAsync", correlation=4, stream=1)
    half = {"bytes": 8 << 20, "source": "device", "correlation": 4}
    timeline.copy(90, 95, copy_kind="device_to_host", device=0, stream=1, **half)
    timeline.copy(92, 99, copy_kind="host_to_device", device=1, stream=7, **half)
    (copy,) = timeline.recording().derived["peer_copies"].to_pylist()

    assert (copy["time"], copy["end"], copy["stream"]) == (50, 99, 1)


@EXAMPLES
@given(recording=st.one_of(any_events(), RECORDINGS))
def test_waits_of_streams_are_those_of_a_plain_account(recording):
    assert recording.derived["stream_waits"].to_pylist() == plain_stream_waits(recording)


def test_nothing_is_derived_from_nothing():
    assert {name: table.schema for name, table in classify({}).items()} == schemas()
    assert all(table.num_rows == 0 for table in classify({}).values())


@EXAMPLES
@given(recording=RECORDINGS)
def test_slices_of_tables_can_be_classified(recording):
    tables = {name: table.slice(1) for name, table in recording.tables.items()}
    tables["strings"] = recording.tables["strings"]

    whole = {name: table.combine_chunks() for name, table in tables.items()}

    assert classify(tables) == classify(whole)
