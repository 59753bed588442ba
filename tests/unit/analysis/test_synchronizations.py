"""The table of host waits, against plain Python and by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_summary import call_place, floor_median, groups, typical

EXAMPLES = examples(20)
KEYS = {"kind": "kind", "line": "site", "stack": "stack"}
HOST_WAITS = ("event_synchronize", "stream_synchronize", "context_synchronize")
KIND_OF_CALL = {
    "cudaEventSynchronize": "event_synchronize",
    "cuStreamSynchronize_ptsz": "stream_synchronize",
    "cuCtxSynchronize": "context_synchronize",
    "cuMemcpyDtoH_v2": "memcpy",
}


@st.composite
def any_waits(draw):
    timeline = Timeline()
    names = [*KIND_OF_CALL, "cuStreamQuery", "cuLaunchKernel", "cuMemcpyDtoHAsync_v2"]
    for correlation in range(1, draw(st.integers(1, 12))):
        time, length = draw(st.integers(0, 30)), draw(st.integers(0, 9))
        if draw(st.booleans()):
            kind = draw(st.sampled_from([*HOST_WAITS, "event_record", "stream_wait_event"]))
            timeline.synchronization(kind, time, time + length - 1, correlation=correlation)
        if draw(st.integers(0, 3)):
            line = draw(st.none() | st.integers(1, 3))
            name = draw(st.sampled_from(names))
            timeline.call(time, time + length, name, correlation=correlation, line=line)
        if draw(st.booleans()):
            source, destination = draw(st.sampled_from([("device", "pageable"), ("device", "")]))
            kind = draw(st.sampled_from(["device_to_host", "device_to_device"]))
            memories = {"source": source, "destination": destination, "copy_kind": kind}
            begin = time + draw(st.integers(-2, 12))
            timeline.copy(begin, begin + 1, correlation=correlation, **memories)
    return timeline.recording()


def waits(recording):
    """Return a row for each time that the host waited."""
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    copies = {row["correlation"]: row for row in recording.table("activities").to_pylist()}
    found = {}
    for row in recording.table("synchronizations").to_pylist():
        place = call_place(recording, calls.get(row["correlation"]))
        was_query = calls and row["correlation"] not in calls
        if row["kind"] in HOST_WAITS and not (was_query or place["call_name"].endswith("Query")):
            length = max(0, row["end"] - row["time"])
            parts = {"waiting": length, "transfer": 0}
            found[row["correlation"]] = place | {"kind": row["kind"], "length": length} | parts
    for correlation, call in calls.items():
        place = call_place(recording, call)
        kind = KIND_OF_CALL.get(place["call_name"], "")
        copy = copies.get(correlation, {"copy_kind": "", "destination": ""})
        if kind == "memcpy" and copy["copy_kind"] == "device_to_device":
            kind = ""
        if not kind and copy["destination"] == "pageable" and "Query" not in place["call_name"]:
            kind = "pageable_memcpy"
        if kind:
            length = call["end"] - call["time"]
            waiting = length
            if kind.endswith("memcpy"):
                waiting = (
                    min(max(copy["time"] - call["time"], 0), length) if "time" in copy else None
                )
            transfer = None if waiting is None else length - waiting
            parts = {"waiting": waiting, "transfer": transfer}
            found.setdefault(correlation, place | {"kind": kind, "length": length} | parts)
    return list(found.values())


def known_sum(values):
    """Return the sum of known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


@EXAMPLES
@given(recording=any_waits(), by=st.sampled_from(list(KEYS)))
def test_the_numbers_are_those_of_a_plain_account(recording, by):
    found = {
        (row[KEYS[by]], row["kind"], row["name"]): row
        for row in recording.synchronizations(by).to_pylist()
    }

    rows = waits(recording)
    expected = groups(rows, lambda row: (row[KEYS[by]], row["kind"], row["call_name"]))
    assert found.keys() == expected.keys()
    for key, group in expected.items():
        lengths = [row["length"] for row in group]
        most = typical(group, lambda row: row["stack"])
        assert found[key] == {
            "kind": key[1],
            "name": key[2],
            **{name: most[name] for name in ("site", "source", "stack")},
            "count": len(group),
            "total_ns": sum(lengths),
            "median_ns": floor_median(lengths),
            "max_ns": max(lengths),
            "waiting_ns": known_sum(row["waiting"] for row in group),
            "transfer_ns": known_sum(row["transfer"] for row in group),
        }


def test_the_line_that_reads_a_result_back_is_found():
    timeline = Timeline()
    timeline.copy(100, 120, copy_kind="device_to_host", destination="pageable", correlation=7)
    timeline.call(10, 130, "cuMemcpyDtoHAsync_v2", correlation=7, line=42)
    timeline.call(130, 150, "cuStreamSynchronize", correlation=8, line=42)
    timeline.synchronization("stream_synchronize", 131, 149, correlation=8)
    found = timeline.recording().synchronizations("line").to_pylist()

    assert [(row["kind"], row["site"], row["source"], row["total_ns"]) for row in found] == [
        ("pageable_memcpy", "step (run.py:42)", "line 42", 120),
        ("stream_synchronize", "step (run.py:42)", "line 42", 18),
    ]


def test_a_pinned_asynchronous_copy_blocks_nobody():
    timeline = Timeline()
    timeline.copy(100, 120, correlation=7)
    timeline.call(10, 13, "cuMemcpyHtoDAsync_v2", correlation=7)

    assert timeline.recording().synchronizations().num_rows == 0


def test_a_synchronous_copy_on_the_device_blocks_nobody():
    timeline = Timeline()
    on_device = {"copy_kind": "device_to_device", "source": "device"}
    timeline.copy(100, 120, correlation=7, **on_device)
    timeline.call(10, 13, "cuMemcpy", correlation=7)

    assert timeline.recording().synchronizations().num_rows == 0


@pytest.mark.parametrize("name", ["cuStreamQuery", "cuEventQuery", "cudaEventQuery_v3020"])
def test_a_query_blocks_nobody(name):
    timeline = Timeline()
    timeline.call(10, 13, name, correlation=7)
    timeline.synchronization("event_synchronize", 10, 13, correlation=7)

    assert timeline.recording().synchronizations().num_rows == 0


def test_a_wait_without_a_call_was_a_query_where_calls_are_recorded():
    timeline = Timeline()
    timeline.synchronization("event_synchronize", 10, 13, correlation=7)
    assert timeline.recording().synchronizations()["count"].to_pylist() == [1]

    timeline.call(20, 23, "cuLaunchKernel", correlation=8)
    assert timeline.recording().synchronizations().num_rows == 0


def test_a_runtime_call_around_a_driver_call_of_the_same_id_counts_once():
    timeline = Timeline()
    timeline.call(10, 30, "cudaStreamSynchronize", correlation=7)
    timeline.call(12, 28, "cuStreamSynchronize", correlation=7)
    (row,) = timeline.recording().synchronizations().to_pylist()

    assert (row["name"], row["count"], row["total_ns"]) == ("cudaStreamSynchronize", 1, 20)


@pytest.mark.parametrize("by", KEYS)
def test_without_waiting_the_table_has_its_columns_and_no_rows(by):
    timeline = Timeline()
    timeline.synchronization("event_synchronize", 10, 13)
    empty = Timeline().recording().synchronizations(by)

    assert empty.num_rows == 0
    assert empty.schema == timeline.recording().synchronizations(by).schema
