"""How copies are classified: between devices, and how long they waited."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.analysis.classified import EXAMPLES, plain_stream_waits
from tests.unit.recording.any_timeline import CORRELATIONS, SYNC_IDS, TIMES
from tests.unit.recording.from_activities import Timeline


@st.composite
def any_copies(draw):
    """Copies between three devices, each with two streams, and waits between the streams."""
    timeline = Timeline()
    streams = st.integers(1, 6)
    for _ in range(draw(st.integers(0, 12))):
        stream = draw(streams)
        columns = {"stream": stream, "device": stream % 3, "correlation": draw(CORRELATIONS)}
        time = draw(TIMES)
        if draw(st.booleans()):
            ends = {f"{end}_device": draw(st.integers(-1, 2)) for end in ("source", "destination")}
            timeline.copy(time, time + draw(st.integers(0, 9)), **columns, **ends)
            continue
        columns |= {"event": draw(st.integers(1, 2)), "event_sync_id": draw(SYNC_IDS)}
        kind = draw(st.sampled_from(["event_record", "stream_wait_event"]))
        timeline.synchronization(kind, time * draw(st.integers(0, 1)), time, **columns)
    return timeline.recording()


def plain_peer_copies(recording):
    waits = plain_stream_waits(recording)
    called = [row["correlation"] for row in recording.table("synchronizations").to_pylist()]
    found = []
    for number, row in enumerate(recording.table("activities").to_pylist()):
        source, destination = row["source_device"], row["destination_device"]
        if source < 0 or destination < 0 or source == destination:
            continue
        own = row["stream"]
        before = [
            (called[wait["wait"]], place, wait["recorded_stream"])
            for place, wait in enumerate(waits)
            if wait["waiting_stream"] == own
            and wait["recorded_stream"] % 3 == source
            and 0 < called[wait["wait"]] < row["correlation"]
        ]
        after = [
            (called[wait["record"]], place, wait["waiting_stream"])
            for place, wait in enumerate(waits)
            if wait["recorded_stream"] == own
            and wait["waiting_stream"] % 3 == destination
            and 0 < called[wait["record"]] >= row["correlation"]
        ]
        found.append(
            {
                "time": row["time"],
                "end": row["end"],
                "activity": number,
                "arrival": -1,
                "stream": own,
                "source_device": source,
                "source_stream": own if row["device"] == source else max(before, default=[0])[-1],
                "destination_device": destination,
                "destination_stream": (
                    own if row["device"] == destination else min(after, default=[0])[-1]
                ),
            }
        )
    return found


@EXAMPLES
@given(recording=any_copies())
def test_copies_between_devices_are_those_of_a_plain_account(recording):
    assert recording.derived["peer_copies"].to_pylist() == plain_peer_copies(recording)


def only_wait(timeline):
    (row,) = timeline.recording().derived["host_waits"].to_pylist()
    return row


def test_a_copy_that_waits_for_a_kernel_is_split_where_it_begins_on_the_gpu():
    timeline = Timeline()
    timeline.kernel(0, 80)
    timeline.call(10, 130, "cuMemcpyDtoH_v2", correlation=7, line=3, thread=5)
    timeline.copy(
        100, 120, copy_kind="device_to_host", destination="pageable", correlation=7, stream=2
    )

    assert only_wait(timeline) == {
        "time": 10,
        "end": 130,
        "kind": "memcpy",
        "name": 2,
        "call": 0,
        "synchronization": -1,
        "thread": 5,
        "stack": 1,
        "device": 0,
        "stream": 2,
        "waiting_ns": 90,
        "transfer_ns": 30,
    }


@pytest.mark.parametrize(
    ("begins", "waiting"), [((5, 60), 0), ((60, 40), 30), ((200, 300), 120), ((10,), 0)]
)
def test_the_first_copy_of_a_call_ends_its_waiting_within_the_call(begins, waiting):
    timeline = Timeline()
    timeline.call(10, 130, "cuMemcpyDtoHAsync_v2", correlation=7)
    for begin in begins:
        columns = {"copy_kind": "device_to_host", "destination": "pageable", "correlation": 7}
        timeline.copy(begin, begin + 5, **columns)
    row = only_wait(timeline)

    assert row["kind"] == "pageable_memcpy"
    assert (row["waiting_ns"], row["transfer_ns"]) == (waiting, 120 - waiting)


def test_how_a_copy_without_an_activity_waited_is_not_known():
    timeline = Timeline()
    timeline.call(10, 130, "cuMemcpyDtoH_v2", correlation=7)
    row = only_wait(timeline)

    assert (row["waiting_ns"], row["transfer_ns"], row["device"]) == (None, None, -1)


def test_a_synchronization_is_all_waiting():
    timeline = Timeline()
    timeline.call(10, 30, "cuStreamSynchronize", correlation=7)
    timeline.synchronization("stream_synchronize", 12, 28, correlation=7, stream=4, device=1)
    row = only_wait(timeline)

    assert (row["time"], row["end"], row["waiting_ns"], row["transfer_ns"]) == (12, 28, 16, 0)
    assert (row["call"], row["synchronization"], row["device"], row["stream"]) == (0, 0, 1, 4)
