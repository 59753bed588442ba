"""Ranges on a real GPU: measured on streams by CUDA events, and joined with CuPy's allocations."""

import gc
import threading
import time
from contextlib import contextmanager

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.recorder.ranges import record_into
from gpuviz.recorder.stream_ranges import StreamRanges

pytestmark = pytest.mark.gpu

SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    const long long began = clock64();
    while (clock64() - began < cycles) {
    }
}
"""


@pytest.fixture(scope="module")
def spin():
    """Queue a kernel that takes about this many million cycles."""
    import cupy as cp

    kernel = cp.RawKernel(SPIN, "spin")
    kernel((1,), (1,), (1,))
    cp.cuda.Device().synchronize()
    return lambda millions: kernel((1,), (1,), (int(millions * 1e6),))


@contextmanager
def measuring():
    """Measure ranges on streams into a session, always by CUDA events."""
    from gpuviz.frameworks.cupy_events import CupyEvents

    session = _core.Session(stack_depth=0)
    session.start()
    on_streams = StreamRanges(session, CupyEvents)
    record_into(session, on_streams.begin)
    try:
        yield session, on_streams
    finally:
        record_into(None, None)
        on_streams.finish()
        session.stop()
    assert on_streams.notes == []


def measured(session):
    """Return name, begin and end of each range on a stream, in ns of the host's clock."""
    names = session.strings(1)
    return sorted(
        (names[name - 1], begin + session.start_ns, end + session.start_ns)
        for chunk in session.take_tables(flush=True)["activities"]
        for name, begin, end in zip(
            *(chunk[column].tolist() for column in ("name", "time", "end")),
            strict=True,
        )
    )


def test_a_range_takes_as_long_as_cuda_says(spin):
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    first, last = cp.cuda.Event(), cp.cuda.Event()
    with measuring() as (session, _):
        before = time.monotonic_ns()
        with stream:
            spin(20)  # the following is queued in the meantime
            first.record()
            with gpuviz.range("spin", stream=stream):
                spin(20)
            last.record()
        stream.synchronize()
        after = time.monotonic_ns()
    [(name, begin, end)] = measured(session)

    expected = cp.cuda.get_elapsed_time(first, last) * 1e6
    assert name == "spin"
    assert expected > 5e6
    assert abs((end - begin) - expected) < 0.01 * expected
    assert before - 100_000 < begin < end < after + 100_000


def test_the_clocks_of_the_host_and_the_gpu_are_apart_by_less_than_50_us(spin):
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    lags = []
    with measuring() as (session, on_streams):
        for _ in range(20):
            with gpuviz.range("spin", stream=stream), stream:
                spin(2)
            stream.synchronize()
            lags.append(time.monotonic_ns())
            time.sleep(0.01)
    lags = [seen - end for seen, (_, _, end) in zip(lags, measured(session), strict=True)]

    assert 0 < on_streams.error_ns < 50_000
    assert -on_streams.error_ns < min(lags) < 200_000


def test_ranges_on_two_streams_overlap_and_on_one_stream_follow_each_other(spin):
    import cupy as cp

    one, other = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    with measuring() as (session, _):
        for name, stream in (("a", one), ("b", other), ("c", one)):
            with gpuviz.range(name, stream=stream), stream:
                spin(20)
    a, b, c = measured(session)

    assert max(a[1], b[1]) < min(a[2], b[2])
    assert c[1] >= a[2] - 10_000


def test_a_capture_of_another_thread_is_not_disturbed_by_polling(spin):
    import cupy as cp

    stream, captured = (cp.cuda.Stream(non_blocking=True) for _ in range(2))
    with measuring() as (session, on_streams):
        with gpuviz.range("spin", stream=stream), stream:
            spin(200)
        with captured:
            captured.begin_capture(cp.cuda.runtime.streamCaptureModeGlobal)
            with gpuviz.range("captured", stream=captured):
                spin(1)
            with gpuviz.range("beside", stream=stream):
                spin(1)
            polling = threading.Thread(target=on_streams.poll)
            polling.start()
            polling.join()
            graph = captured.end_capture()
        graph.launch(captured)
        captured.synchronize()

    assert [name for name, *_ in measured(session)] == ["beside", "spin"]


def test_what_is_allocated_in_a_range_refers_to_it():
    import cupy as cp

    with gpuviz.record() as recorder, gpuviz.range("outer"):
        kept = cp.empty(1234, cp.uint8)
        with gpuviz.range("inner"):
            cp.empty(4321, cp.uint8)
        del kept
    recording = recorder.recording
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    names = {row["id"]: texts[row["name"]] for row in recording.table("ranges").to_pylist()}
    # Arrays of other tests may be collected meanwhile.
    found = [
        (event["action"], event["requested_size"], names[event["range"]])
        for event in recording.table("memory_events").to_pylist()
        if event["action"] in {"alloc", "free_requested"}
        and event["requested_size"] in {1234, 4321}
    ]

    assert found == [
        ("alloc", 1234, "outer"),
        ("alloc", 4321, "inner"),
        ("free_requested", 4321, "inner"),
        ("free_requested", 1234, "outer"),
    ]


def test_what_is_launched_in_a_range_refers_to_it(spin):
    with gpuviz.record() as recorder:
        spin(1)
        with gpuviz.range("within"):
            spin(1)
    recording = recorder.recording
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    [within] = [
        row["id"] for row in recording.table("ranges").to_pylist() if texts[row["name"]] == "within"
    ]
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    found = [
        calls[row["correlation"]]["range"]
        for row in recording.table("activities").to_pylist()
        if texts[row["name"]] == "spin"
    ]

    assert recorder.status().streams
    assert found == [0, within]


def test_a_stream_of_cupy_keeps_its_name_as_long_as_it_lives():
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    gpuviz.name_stream(stream, "copies")
    with gpuviz.record() as first, stream:
        cp.empty(1234, cp.uint8)
    del stream
    gc.collect()
    with gpuviz.record() as second:
        cp.empty(1234, cp.uint8)

    assert "copies" in first.recording.table("streams")["name"].to_pylist()
    assert "copies" not in second.recording.table("streams")["name"].to_pylist()
