import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz import _core, _testing
from gpuviz.data import tables
from tests.examples import examples, share_of

COLUMN_TYPES = {
    field.name: np.dtype(
        np.int8 if field.name in {"action", "framework"} else field.type.to_pandas_dtype()
    )
    for field in tables.schemas()["memory_events"]
}


def collectors():
    """Return the ids of collector threads."""
    threads = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            threads[task.name] = (task / "comm").read_text().strip()
    return {thread for thread, name in threads.items() if name == "gpuviz-collect"}


def joined(chunks):
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in COLUMN_TYPES}


def test_columns_hold_what_was_pushed_in_the_types_of_the_table():
    session = _core.Session()
    session.start()
    event = {"action": 8, "address": 2**63 + 5, "size": 1234, "requested_size": 1000}
    event |= {"device": 3, "pool": 7, "stack": 11, "thread": 4321, "range": 9}

    _testing.push_event(session.sink(3), time_ns=session.start_ns + 77, stream=0xABC, **event)
    [chunk] = session.take(flush=True)

    assert {name: column.dtype for name, column in chunk.items()} == COLUMN_TYPES
    row = {name: column.tolist() for name, column in chunk.items()}
    expected = event | {"time": 77, "stream": 1, "framework": 0}
    assert row == {name: [value] for name, value in expected.items()}
    session.stop()


def test_what_events_cost_is_measured_now_and_then():
    session = _core.Session()
    session.start()
    assert session.memory_events_ns == 0

    for number in range(17):
        _testing.push_event(session.sink(0), time_ns=session.start_ns + number)

    # One of 17 was timed, and stands for all of them.
    assert session.memory_events_ns > 0
    assert session.memory_events_ns % 17 == 0
    session.stop()


@examples(10)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=60))
def test_stream_ids_count_each_pair_of_device_and_handle_once(pushes):
    session = _core.Session(ring_capacity=64)
    session.start()

    for device, handle in pushes:
        _testing.push_event(session.sink(device), time_ns=0, device=device, stream=handle)
        session.take()
    session.stop()
    chunks = session.take(flush=True)

    expected = {device: [h for d, h in pushes if d == device] for device, _ in pushes}
    handles = {stream: (device, handle) for stream, device, handle, *_ in session.streams()}
    assert sorted(handles) == list(range(1, len(set(pushes)) + 1))
    assert set(handles.values()) == set(pushes)
    events = joined(chunks) if chunks else {"device": [], "stream": []}
    found = [handles[int(stream)] for stream in events["stream"]]
    assert [device for device, _ in found] == list(events["device"])
    assert {d: [h for e, h in found if e == d] for d in expected} == expected


@pytest.mark.parametrize("count", [0, 1, 65535, 65536, 65537, 200_000])
def test_every_event_arrives_once_in_order_and_in_chunks_of_65536_rows(count):
    session = _core.Session(ring_capacity=1 << 18)
    session.start()

    _testing.push_many(session.sink(0), count)
    session.stop()
    full, begun = session.take(), session.take(flush=True)

    rows = [len(chunk["time"]) for chunk in full + begun]
    assert rows == [65536] * (count // 65536) + [count % 65536] * (count % 65536 > 0)
    if count:
        events = joined(full + begun)
        assert np.array_equal(events["address"], np.arange(count, dtype=np.uint64))
        assert np.all(np.diff(events["time"]) >= 0)
    assert (session.events, session.dropped) == (count, 0)


def test_a_full_ring_counts_drops_by_action_and_keeps_the_oldest_events():
    session = _core.Session(ring_capacity=4)
    sink = session.sink(0)

    for number in range(9):
        _testing.push_event(sink, time_ns=0, action=number % 3, address=number)
    session.start()
    session.stop()

    assert joined(session.take(flush=True))["address"].tolist() == [0, 1, 2, 3]
    assert session.dropped == 5
    assert session.dropped_by_action == {
        "alloc": 1,
        "free_requested": 2,
        "free_completed": 2,
    }


def test_a_free_that_completed_at_once_is_two_rows_or_two_drops():
    session = _core.Session(ring_capacity=2)
    sink = session.sink(0)

    for number in range(3):
        _testing.push_event(sink, time_ns=0, action=1, address=number, completed=True)
    session.start()
    session.stop()
    [chunk] = session.take(flush=True)

    assert chunk["action"].tolist() == [1, 2, 1, 2]
    assert chunk["address"].tolist() == [0, 0, 1, 1]
    assert (session.events, session.dropped) == (4, 2)
    assert session.dropped_by_action == {"free_requested": 1, "free_completed": 1}


def test_taking_while_threads_push_loses_and_repeats_nothing():
    session = _core.Session(interval_ms=0.5)
    session.start()
    count = share_of(20_000)
    sinks = [session.sink(device) for device in range(3)]
    pushers = [
        threading.Thread(target=_testing.push_many, args=(sink, count), kwargs={"device": device})
        for device, sink in enumerate(sinks)
    ]
    chunks = []

    for pusher in pushers:
        pusher.start()
    while any(pusher.is_alive() for pusher in pushers):
        chunks += session.take(flush=len(chunks) % 2 == 0)
    session.stop()
    events = joined(chunks + session.take(flush=True))

    assert session.events + session.dropped == 3 * count
    assert len(events["time"]) == session.events
    for device in range(3):
        addresses = events["address"][events["device"] == device].astype(np.int64)
        assert np.all(np.diff(addresses) > 0)


def test_arrays_outlive_the_session():
    session = _core.Session()
    session.start()
    _testing.push_many(session.sink(0), 1234)
    session.stop()

    [chunk] = session.take(flush=True)
    del session

    assert chunk["address"].sum() == 1234 * 1233 // 2


def test_a_session_may_die_while_it_records():
    before = collectors()
    session = _core.Session(interval_ms=0.1)
    session.start()
    sink = session.sink(0)
    _testing.push_many(sink, 1000)
    [own] = collectors() - before

    del session, sink

    # The system briefly lists a thread after it was joined.
    deadline = time.monotonic() + 10
    while own in collectors() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert own not in collectors()


def test_a_flush_shows_events_that_the_collector_has_not_reached():
    session = _core.Session(interval_ms=60_000)
    session.start()

    _testing.push_many(session.sink(0), 10)

    assert session.take() == []
    assert len(session.take(flush=True)[0]["time"]) == 10
    assert session.take(flush=True) == []
    session.stop()


def test_times_count_from_the_start_on_both_clocks():
    session = _core.Session()
    assert (session.start_ns, session.wall_start_ns) == (0, 0)
    monotonic, wall = time.monotonic_ns(), time.time_ns()

    session.start()

    assert 0 <= session.start_ns - monotonic < 10**9
    assert 0 <= session.wall_start_ns - wall < 10**9
    session.stop()


def test_the_collector_reports_its_cpu_time():
    session = _core.Session()
    session.start()

    _testing.push_many(session.sink(0), 50_000)
    session.stop()

    assert 0 < session.collector_cpu_ns < 10**9


def test_a_million_events_take_at_most_64_bytes_each_while_recording():
    session = _core.Session()
    session.start()

    _testing.push_many(session.sink(0), 1_000_000, pause_every=5000)
    session.stop()

    assert session.events + session.dropped == 1_000_000
    assert session.bytes <= 64 * session.events
    session.take(flush=True)
    assert session.bytes < 5_000_000


def test_a_session_records_once():
    session = _core.Session()
    session.start()
    with pytest.raises(RuntimeError, match="already recording"):
        session.start()

    session.stop()
    session.stop()

    assert not session.running
    with pytest.raises(RuntimeError, match="has recorded; make a new one"):
        session.start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ring_capacity": 0}, "power of two, got 0"),
        ({"ring_capacity": 12}, "power of two, got 12"),
        ({"interval_ms": 0.0}, "above 0 and at most 60000, got 0.0"),
        ({"interval_ms": float("nan")}, "got nan"),
        ({"max_stacks": 0}, r"between 1 and 2\*\*28, got 0"),
        ({"stack_depth": 257}, "between 1 and 256, got 257"),
    ],
)
def test_an_option_out_of_range_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        _core.Session(**options)


@pytest.mark.parametrize("device", [-1, 64])
def test_a_device_out_of_range_is_named(device):
    with pytest.raises(IndexError, match=f"between 0 and 63, got {device}"):
        _core.Session().sink(device)


@pytest.mark.parametrize("abandon", [True, False])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_drops_events_and_ends_by_itself(abandon):
    session = _core.Session(ring_capacity=8)
    session.start()
    sink = session.sink(0)

    child = os.fork()
    if child == 0:
        signal.alarm(10)
        if abandon:
            session.abandon_after_fork()
            _testing.push_many(sink, 20)
            os._exit(session.dropped + 100 * len(session.take(flush=True)))
        _testing.push_many(sink, 20)
        session.stop()
        del session, sink
        os._exit(12)
    status = os.waitpid(child, 0)[1]

    assert os.waitstatus_to_exitcode(status) == 12
    _testing.push_many(sink, 5)
    session.stop()
    assert (session.events, session.dropped) == (5, 0)
