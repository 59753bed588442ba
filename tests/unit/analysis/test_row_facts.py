"""Facts about single rows, which the browser shows as they are stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz._core import pool_name
from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.pools import RMM_OWNER, TORCH_OWNER
from tests.unit.formats.any_recording import any_recording
from tests.unit.recording.from_activities import Timeline

_RELEASES = ("segment_free", "segment_unmap")


@pytest.mark.parametrize(
    ("owner", "framework", "name"),
    [
        (0, "", "default (small)"),
        (0, "cupy", "CuPy default (small)"),
        (3, "", "MemPool 3 (small)"),
        (3, "numba", "Numba MemPool 3 (small)"),
        (TORCH_OWNER, "torch", "PyTorch default (small)"),
        (TORCH_OWNER, "", "PyTorch default (small)"),
        (TORCH_OWNER + 2, "torch", "PyTorch private pool 2 (small)"),
        (RMM_OWNER, "rmm", "RMM memory resource (small)"),
    ],
)
def test_a_pool_is_called_by_its_library(owner, framework, name):
    assert pool_name(owner, "small", framework) == name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("f<(a > b)>(int)", "f"),
        ("void ns::scale<float, 4>(float*, (anonymous namespace)::Shape)", "scale"),
        ("cudapy::__main__::scale[abi:v1][abi:cw51cXT_3d](Array<float, 2, C, mutable>)", "scale"),
        ("cupy_add", "cupy_add"),
        ("", ""),
    ],
)
def test_a_kernel_is_called_by_its_last_name(name, short):
    assert short_name(name) == short


def test_kernels_streams_and_pools_have_names():
    made = Timeline()
    made.kernel(0, 10, name="void ns::scale<float>(float*)")

    rows = made.recording().derived["names"].to_pylist()

    assert [row["name"] for row in rows if row["of"] == "kernel"] == ["scale"]


def test_of_calls_with_one_correlation_id_the_first_launched_the_work():
    made = Timeline()
    made.kernel(40, 60, correlation=7)
    made.call(10, 20, "cuLaunchKernel", correlation=7)
    made.call(5, 30, "cudaLaunchKernel", correlation=7)
    made.call(31, 32, "cuLaunchKernel", correlation=3)
    made.call(33, 34, "cuCtxGetCurrent", correlation=0)
    made.call(35, 36, "cuCtxGetCurrent", correlation=0)
    recording = made.recording()

    assert recording.derived["repeated_calls"]["call"].to_pylist() == [1]
    assert recording.kernels()["launch_delay_ns"].to_pylist() == [20]


def expected_marks(events):
    """Walk back from each event to the segments that were released just before it."""
    marks = []
    for device in sorted({event["device"] for event in events}):
        own = [event for event in events if event["device"] == device]
        first, released = 0, 0
        for row, event in enumerate([*own, {"action": "end", "size": 0}]):
            action = event["action"]
            if action in _RELEASES:
                first = row if released == 0 else first
                released += event["size"]
                continue
            left = released - (event["size"] if action == "empty_cache" else 0)
            if left > 0:
                marks.append((device, first, "memory_returned", left))
            released = 0
            if action == "oom":
                requested = event["requested_size"] or event["size"]
                marks.append((device, row, "out_of_memory", requested))
            elif action in {"snapshot", "empty_cache"}:
                size = event["size"] if action == "empty_cache" else 0
                marks.append((device, row, action, size))
    return sorted(marks)


@given(recording=any_recording())
def test_marks_are_those_of_a_walk_through_the_events(recording):
    marks = recording.derived["memory_marks"].to_pylist()

    found = sorted((row["device"], row["event"], row["kind"], row["bytes"]) for row in marks)
    assert found == expected_marks(recording.tables["memory_events"].to_pylist())


def expected_block(events, address, time):
    """Return device and event of the last allocation at an address that still holds at a time."""
    counts: dict[int, int] = {}
    found = (-1, -1)
    for event in events:
        place = counts.get(event["device"], 0)
        counts[event["device"]] = place + 1
        if event["address"] != address:
            continue
        if event["action"] == "alloc" and event["time"] <= time:
            found = (event["device"], place)
        elif event["action"] in {"free_requested", "free_completed"} and event["time"] < time:
            found = (-1, -1)
    return found


@given(
    steps=st.lists(
        st.tuples(st.sampled_from([512, 1024]), st.booleans(), st.integers(0, 1)), max_size=30
    ),
    calls=st.lists(st.tuples(st.sampled_from([512, 1024, 2048]), st.integers(0, 70)), max_size=10),
)
def test_an_accessed_block_is_the_one_alive_when_the_call_began(steps, calls):
    made = Timeline()
    live: set[int] = set()
    events = []
    for at, (address, is_requested, device) in enumerate(steps):
        freeing = "free_requested" if is_requested else "free_completed"
        action = freeing if address in live else "alloc"
        live ^= {address}
        events.append(
            {
                "time": 2 * at + 1,
                "action": action,
                "address": address,
                "device": device,
                "size": 512,
            }
        )
    for event in events:
        made.add("memory_events", event)
    for correlation, (address, time) in enumerate(calls, start=1):
        made.call(time, time + 1, correlation=correlation)
        made.add("launch_blocks", {"correlation": correlation, "block": address, "mode": "read"})

    blocks = made.recording().derived["accessed_blocks"]

    found = list(zip(blocks["device"].to_pylist(), blocks["event"].to_pylist(), strict=True))
    assert found == [expected_block(events, *call) for call in calls]
    assert blocks["event"].to_numpy().dtype == np.int32
