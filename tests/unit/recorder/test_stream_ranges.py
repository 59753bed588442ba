"""Ranges measured on streams, with events that a test completes explicitly."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.recorder.ranges import record_into
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.stream_ranges import ANCHOR_LIFE_NS, StreamRanges
from gpuviz.recorder.tracer import NoTracer
from tests.unit.recorder.simulated_source import SimulatedSource


class FakeEvents:
    """Events of a GPU whose clock is ``offset_ns`` ahead of the host's; see `StreamEvents`."""

    offset_ns = 5_000_000_000_000

    def __init__(self):
        self.gpu_ns = 0
        self.anchors = 0
        self.recorded = []
        self.waited = []
        self.fails = False

    def place(self, stream):
        return stream.device_id, stream.ptr

    def record(self, stream):
        if self.fails:
            raise RuntimeError("no luck")
        if stream.captures:
            return None
        self.recorded.append(SimpleNamespace(stream=stream, time_ns=self.gpu_ns, complete=False))
        return self.recorded[-1]

    def record_at_once(self, device):
        self.anchors += 1
        return SimpleNamespace(device=device, time_ns=self.now_ns(), complete=True)

    def now_ns(self):
        return time.monotonic_ns() + self.offset_ns

    def relaxed(self):
        return nullcontext()

    def is_complete(self, event):
        return event.complete

    def wait(self, event):
        for earlier in self.recorded:
            earlier.complete = True
        self.waited.append(event)

    def elapsed_ns(self, first, second):
        assert first.complete
        assert second.complete
        return second.time_ns - first.time_ns


@pytest.fixture
def events():
    return FakeEvents()


@pytest.fixture
def session():
    session = _core.Session(stack_depth=0)
    session.start()
    yield session
    session.stop()


@pytest.fixture
def on_streams(session, events):
    measured = StreamRanges(session, lambda: events)
    record_into(session, measured.begin)
    yield measured
    record_into(None, None)


def new_stream(handle=0x7000, *, device=0, captures=False):
    return SimpleNamespace(ptr=handle, device_id=device, captures=captures)


def measured(session):
    """Return name, device, handle, time and end of each range, in ns of the host's clock."""
    names = session.strings(1)
    handles = {row[0]: row[2] for row in session.streams()}
    found = []
    for chunk in session.take_tables(flush=True)["activities"]:
        columns = ("kind", "name", "device", "stream", "time", "end")
        for values in zip(*(chunk[column].tolist() for column in columns), strict=True):
            kind, name, device, stream, began, ended = values
            assert kind == 4
            begin_ns, end_ns = began + session.start_ns, ended + session.start_ns
            found.append((names[name - 1], device, handles[stream], begin_ns, end_ns))
    return found


def complete(events, on_streams, begin_ns, end_ns):
    """Complete the events of the only pending range."""
    [pending] = on_streams._pending
    pending.begun.time_ns, pending.ended.time_ns = (
        begin_ns + events.offset_ns,
        end_ns + events.offset_ns,
    )
    pending.begun.complete = pending.ended.complete = True


def test_a_range_gets_the_times_at_which_the_gpu_came_by(session, events, on_streams):
    with gpuviz.range("load", stream=new_stream(device=3)):
        pass
    on_streams.poll()
    early = measured(session)
    now = time.monotonic_ns()
    complete(events, on_streams, now + 1_000_000, now + 3_500_000)
    on_streams.poll()

    assert early == []
    [(name, device, handle, begin_ns, end_ns)] = measured(session)
    assert (name, device, handle) == ("load", 3, 0x7000)
    assert abs(begin_ns - (now + 1_000_000)) <= on_streams.error_ns
    assert end_ns - begin_ns == 2_500_000
    assert 0 < on_streams.error_ns < 1_000_000


def test_the_recorders_end_ends_open_ranges_and_waits_for_the_gpu(session, events, on_streams):
    entered = gpuviz.range("open", stream=new_stream())
    entered.__enter__()
    with gpuviz.range("done", stream=new_stream()):
        pass
    on_streams.finish()
    entered.__exit__(None, None, None)
    with gpuviz.range("late", stream=new_stream()):
        pass

    assert len(events.waited) == 5 + 2
    assert sorted(row[0] for row in measured(session)) == ["done", "open"]


@pytest.mark.usefixtures("on_streams")
def test_a_device_is_anchored_again_before_its_times_get_coarse(events, monkeypatch):
    with gpuviz.range("first", stream=new_stream()), gpuviz.range("second", stream=new_stream()):
        anchors_of_one_device = events.anchors
    with gpuviz.range("elsewhere", stream=new_stream(device=1)):
        anchors_of_two_devices = events.anchors
    later = time.monotonic_ns() + ANCHOR_LIFE_NS + 1
    monkeypatch.setattr(time, "monotonic_ns", lambda: later)
    with gpuviz.range("late", stream=new_stream()):
        pass

    assert (anchors_of_one_device, anchors_of_two_devices, events.anchors) == (5, 10, 15)


def test_a_range_on_a_capturing_stream_is_left_out(session, on_streams):
    with gpuviz.range("captured", stream=new_stream(captures=True)):
        pass
    on_streams.finish()

    assert measured(session) == []
    assert on_streams.notes == []


def test_an_error_of_cuda_is_noted_once_and_does_not_reach_the_program(session, events, on_streams):
    events.fails = True
    for _ in range(2):
        with gpuviz.range("fails", stream=new_stream()):
            pass
    on_streams.finish()

    assert measured(session) == []
    assert on_streams.notes == [
        "Ranges on streams could not all be measured (RuntimeError: no luck)",
    ]


def test_nothing_is_measured_on_streams_that_a_tracer_sees():
    tracer = NoTracer()
    tracer.is_active = True
    recorder = Recorder(SimulatedSource(), None, stacks=False, max_events=1000, tracer=tracer)
    with recorder, gpuviz.range("traced", stream=new_stream()):
        pass

    recording = recorder.recording
    assert (recording.table("ranges").num_rows, recording.table("activities").num_rows) == (1, 0)
    assert recording.manifest.notes == ()


def test_a_stream_must_be_one():
    with pytest.raises(TypeError, match=r"stream must be a cupy\.cuda\.Stream, got 7"):
        gpuviz.range("load", stream=7)
