"""Recording what torch's allocator does, on a library with its C++ interface."""

import os
import re
import signal
import sys
from types import SimpleNamespace

import pytest

from gpuviz import _core
from gpuviz.frameworks import torch_trace as observed
from gpuviz.frameworks.other_allocators import WithOtherAllocators
from gpuviz.frameworks.torch_tracker import TrackerUnavailableError, tracker
from gpuviz.recorder import samples
from tests.faults import Fault
from tests.unit.frameworks import fake_torch
from tests.unit.frameworks.torch_trace import Entry, rows_of
from tests.unit.frameworks.traced_torch import BLOCK, EVENTS, MIB, SEGMENT, STATE, Recorded, names


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the package, its library, and a cache for the tracker."""
    root = tmp_path_factory.mktemp("site")
    package, library = fake_torch.build(root)
    return SimpleNamespace(package=package, library=library, cache=root / "cache")


@pytest.fixture
def torch(built, monkeypatch):
    """A torch that has not used the GPU yet, and no recording before."""
    made = fake_torch.Torch(built.package, built.library)
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setenv("XDG_CACHE_HOME", str(built.cache))
    monkeypatch.setattr(observed, "_process", observed._Process())
    return made


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "gpuviz"


@pytest.fixture
def untraced(torch, cache, monkeypatch):
    """A torch for which no tracker can be built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("CXX", "/bin/false")
    return torch


def test_a_torch_that_uses_the_gpu_is_recorded_from_its_state_on(torch):
    torch.is_initialized, torch.state = True, [STATE]
    recorded = Recorded()
    torch.trace([*EVENTS, Entry(1, 0, SEGMENT + 1024, 300, 0), Entry(2, 0, SEGMENT + 1024, 300, 0)])

    events, notes = recorded.end()

    assert notes == ()
    assert events == [
        ("segment_alloc", SEGMENT, 2 * MIB, 0, 0),
        ("alloc", SEGMENT + 1024, 512, 300, 0),
        ("segment_alloc", BLOCK, 20 * MIB, 0, 1),
        ("alloc", BLOCK, 3 * MIB, 3 * MIB, 1),
        ("free_requested", SEGMENT + 1024, 512, 300, 0),
        ("free_completed", SEGMENT + 1024, 512, 300, 0),
    ]


def test_a_torch_that_begins_later_is_recorded_from_its_beginning(torch, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    recorded = Recorded()
    recorded.trace.poll()
    monkeypatch.setitem(sys.modules, "torch", torch)
    recorded.trace.poll()
    torch.initialize()
    torch.trace(EVENTS)

    assert names(recorded.end()[0]) == ["segment_alloc", "alloc"]


def test_a_recording_that_begins_with_torchs_first_use_of_the_gpu_has_its_first_events(torch):
    recordings = []
    observed.call_at_first_use(lambda: recordings.append(Recorded()))
    assert recordings == []
    torch.initialize()
    torch.trace(EVENTS)

    (recorded,) = recordings
    assert names(recorded.end()[0]) == ["segment_alloc", "alloc"]


def test_recordings_follow_each_other_and_nothing_is_recorded_between_them(torch):
    torch.is_initialized = True
    first = Recorded()
    torch.trace(EVENTS[:1])
    assert names(first.end()[0]) == ["segment_alloc"]
    torch.trace(EVENTS[1:])
    second = Recorded()
    torch.trace([Entry(4, 0, BLOCK, 20 * MIB, 0x70)])

    assert second.end() == ([], ())


def test_a_recording_that_ended_before_torch_began_records_nothing(torch):
    recorded = Recorded()
    assert recorded.end() == ([], ())
    torch.initialize()
    torch.trace(EVENTS)


def test_the_tracker_is_compiled_once_for_a_version(torch, cache):
    tracker(torch)
    (built,) = cache.glob("*.so")
    before = built.stat().st_mtime_ns

    tracker(torch)
    assert built.stat().st_mtime_ns == before

    torch.__version__ = "0.1"
    tracker(torch)
    assert len(list(cache.glob("*.so"))) == 2


def test_the_tracker_is_compiled_before_the_time_of_a_recording_begins(torch, cache, monkeypatch):
    source = WithOtherAllocators(SimpleNamespace(tables=dict), stacks=False)
    source.tables()
    assert list(cache.glob("*.so"))

    # A compilation after that would fail.
    monkeypatch.setenv("CXX", "/bin/false")
    torch.is_initialized, torch.state = True, [STATE]
    assert names(Recorded().end()[0]) == ["segment_alloc", "alloc"]


def test_of_a_torch_without_a_gpu_nothing_is_compiled(torch, cache, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    WithOtherAllocators(SimpleNamespace(tables=dict), stacks=False).tables()
    assert not cache.exists()


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CXX": "/bin/false"}, "the C++ compiler failed"),
        ({"CXX": "/nowhere/c++"}, "No such file"),
        ({"CXX": "", "PATH": ""}, "there is no C++ compiler"),
        ({}, "CUDACachingAllocator.h"),
    ],
)
def test_without_what_the_tracker_needs_a_note_says_so_and_the_program_continues(
    environment, reason, torch, cache, monkeypatch
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if not environment:
        torch.__file__ = str(cache / "torch" / "__init__.py")
    recorded = Recorded()
    torch.initialize()

    events, (note,) = recorded.end()

    assert events == []
    assert not list(cache.glob("*.so"))
    assert note.startswith("PyTorch's memory was sampled, because its tracker cannot be built (")
    assert reason in note
    with pytest.raises(TrackerUnavailableError):
        tracker(torch)


@pytest.mark.parametrize("backend", ["cudaMallocAsync", "pluggable"])
def test_another_allocator_in_torch_is_not_recorded_and_a_note_says_so(backend, torch):
    torch.backend, torch.is_initialized = backend, True

    events, (note,) = Recorded().end()

    assert events == []
    assert f"not the backend {backend}." in note


def test_an_allocator_that_accepts_no_tracker_is_noted(torch):
    torch.is_initialized = True
    torch.library.refuse(1)
    try:
        events, notes = Recorded().end()
    finally:
        torch.library.refuse(0)

    assert events == []
    assert "PyTorch's memory was sampled, because its tracker is refused." in notes[0]


def test_without_a_tracker_what_torch_holds_is_sampled(untraced, monkeypatch):
    monkeypatch.setattr(samples, "_MOST_OF_TIME", 1e9)
    monkeypatch.setattr(samples, "_MOST_IN_ALL", 1e9)
    untraced.is_initialized, untraced.state = True, [STATE]
    recorded = Recorded()
    more = {**STATE, "address": BLOCK, "blocks": [{**STATE["blocks"][1], "size": 2 * MIB}]}
    untraced.state = [more]
    recorded.trace.poll()
    recorded.trace.poll()

    events, (note,) = recorded.end()

    assert names(events) == [
        *("segment_alloc", "alloc"),
        *("free_requested", "free_completed", "segment_free", "segment_alloc", "alloc"),
    ]
    assert "3 samples took " in note
    assert "between two of them is missing, and call stacks are unknown." in note


def test_samples_take_a_hundredth_of_the_time(untraced, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    names = ("monotonic", "perf_counter", "thread_time")
    seconds = SimpleNamespace(**dict.fromkeys(names, lambda: clock.now))
    monkeypatch.setattr(samples, "time", seconds)

    def read():
        clock.now += 0.02
        return []

    untraced.is_initialized = True
    untraced.cuda.memory_snapshot = read
    recorded = Recorded()
    for _ in range(400):
        clock.now += 0.1
        recorded.trace.poll()

    _, (note,) = recorded.end()

    assert re.search(r"\b2[01] samples took ", note)


def test_a_torch_without_a_gpu_is_left_alone(torch, cache):
    torch.cuda.is_available = lambda: False

    assert Recorded().end() == ([], ())
    assert torch.waiting == []
    assert not cache.exists()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_worker_that_is_forked_records_nothing_and_goes_on(torch):
    torch.is_initialized = True
    recorded = Recorded()
    worker = os.fork()
    if worker == 0:
        signal.alarm(60)
        torch.trace(EVENTS)
        recorded.trace.poll()
        os._exit(len(recorded.trace.devices()))
    _, status = os.waitpid(worker, 0)
    torch.trace(EVENTS)

    events, notes = recorded.end()

    assert os.waitstatus_to_exitcode(status) == 0
    assert names(events) == ["segment_alloc", "alloc"]
    assert notes == ()


def test_a_failed_request_is_explained(torch, caplog, monkeypatch):
    from gpuviz.allocator.failure_report import set_failure_listener

    torch.is_initialized = True
    monkeypatch.setattr(observed, "total_memory", {0: 80 * MIB}.get)
    recorded = Recorded()
    (explain,) = torch.observers
    set_failure_listener(lambda report: f"{report.requested}, {report.details}")
    try:
        explain(0, 5 * MIB, 70 * MIB, MIB)
        recorded.end()
        explain(0, 5 * MIB, 70 * MIB, MIB)
    finally:
        set_failure_listener(None)

    details = {
        "segment_size": 5 * MIB,
        "limit": 70 * MIB,
        "device_free": MIB,
        "device_total": 80 * MIB,
    }
    assert caplog.messages == [f"None, {details}"]


def test_a_torch_that_fails_does_not_stop_the_program(torch):
    torch.is_initialized = True
    torch.cuda.memory_snapshot = lambda: [{}]

    assert Recorded().end() == (
        [],
        ("PyTorch's memory is not recorded (KeyError: 'device').",),
    )


def test_an_end_that_is_interrupted_at_any_line_can_be_repeated(torch):
    torch.is_initialized, torch.state = True, [STATE]
    fault = Fault(folder="/gpuviz/frameworks/torch_trace.py")
    for line in fault.lines():
        recorded = Recorded()
        torch.trace(EVENTS)
        with fault.armed(line):
            recorded.trace.end()
        recorded.trace.end()
        torch.trace([Entry(4, 0, BLOCK, 20 * MIB, 0x70)])

        events, notes = recorded.end()
        assert names(events) == ["segment_alloc", "alloc", "segment_alloc", "alloc"]
        assert notes == ()


def test_want_of_memory_at_any_line_of_its_begin_is_noted(torch, monkeypatch):
    torch.is_initialized, torch.state = True, [STATE]
    fault = Fault(MemoryError, "/gpuviz/frameworks/torch_trace.py")
    noted = 0
    for line in fault.lines():
        # Only what is attached in a process stays until its end.
        monkeypatch.setattr(observed, "_process", observed._Process())
        session = _core.Session()
        session.start()
        trace = observed.TorchTrace(stacks=False)
        with fault.armed(line):
            trace.begin(session)
        trace.poll()

        notes = trace.end()
        session.stop()
        is_recorded = names(rows_of(session)) == ["segment_alloc", "alloc"]
        is_refused = fault.place is not None and fault.place[2] in {"begin", "poll", "sample"}
        assert is_recorded or notes or is_refused
        noted += bool(notes)
    assert noted > 5
