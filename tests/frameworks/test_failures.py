"""What CuPy programs see of a failed request: CuPy's exceptions, with more in their text."""

from types import SimpleNamespace

import pytest
from cupy.cuda import memory
from cupy_backends.cuda.api.runtime import CUDARuntimeError

import gpuviz
from gpuviz import _core
from gpuviz.frameworks import cupy as framework
from gpuviz.recorder import Recorder
from tests.recorder.simulated_source import SimulatedSource

MIB, GIB = 1 << 20, 1 << 30


def state(current_device=lambda: 0):
    return {
        "memory_module": memory,
        "runtime_module": SimpleNamespace(),
        "stream_module": SimpleNamespace(),
        "current_device": current_device,
        "current_stream": lambda: 0,
    }


class ClientSource(SimulatedSource):
    """A simulated device under CuPy's own objects."""

    def __init__(self):
        super().__init__()
        self.client = _core.CupyAllocator(
            **state(),
            open_device=lambda _: self.allocators[0],
            out_of_memory=framework._out_of_memory,
        )
        self.malloc = _core.cupy_malloc(lambda: self.client)

    def begin(self, session):
        super().begin(session)
        self.client.set_session(session)

    def end(self):
        self.client.set_session(None)
        return super().end()


class ObservedSource(SimulatedSource):
    """A program's pool that raises what it is told."""

    allocator = "observe"

    def __init__(self):
        super().__init__()
        self.error = None
        self.total = 0
        self.observer = _core.CupyObserver(
            **state(),
            allocator=self._allocate,
            total_bytes=lambda: self.total,
            out_of_memory=framework._observed_out_of_memory,
        )
        self.malloc = _core.observed_malloc(lambda: self.observer)

    def _allocate(self, size):
        if self.error is not None:
            self.total = 0
            raise self.error
        self.total += size
        address = self.allocators[0].allocate(size)
        return memory.MemoryPointer(memory.UnownedMemory(address, size, self, 0), 0)

    def describe(self, session):
        pass

    def begin(self, session):
        self.observer.set_session(session)

    def end(self):
        self.observer.set_session(None)
        return ()


@pytest.fixture
def recorder_of(tmp_path):
    """Record a source to a file; those still active at the end are stopped."""
    made = []

    def record(source):
        made.append(Recorder(source, tmp_path / "run.gpuviz", stacks=True, max_events=1000))
        made[-1].start()
        return made[-1]

    yield record
    for recorder in made:
        if recorder.is_recording:
            recorder.stop()


def test_cupys_own_exception_has_the_verdict_and_the_path(recorder_of, tmp_path):
    source = ClientSource()
    recorder_of(source)
    held = source.malloc(9 * GIB)

    with pytest.raises(memory.OutOfMemoryError) as caught:
        source.malloc(8 * GIB)

    first, added = str(caught.value).splitlines()
    assert first.startswith("CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total")
    assert added.startswith("Full: 9.00 GiB are in use in 1 live block;")
    assert added.endswith(f"The state at that moment: {tmp_path / 'run.oom-1.html'}")
    (failed,) = gpuviz.load(tmp_path / "run.oom-1.html").out_of_memory()
    assert (failed.requested, failed.allocated, held.mem.size) == (8 * GIB, 9 * GIB, 9 * GIB)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (memory.OutOfMemoryError(8 * GIB, 9 * GIB), None),
        (memory.OutOfMemoryError(8 * GIB, 9 * GIB, 12 * GIB), 12 * GIB),
        (MemoryError("std::bad_alloc: out_of_memory"), None),
        (CUDARuntimeError(2), None),
    ],
    ids=["cupy", "limited", "other", "runtime"],
)
def test_an_observed_exception_stays_itself_and_says_more(recorder_of, tmp_path, error, limit):
    source = ObservedSource()
    recorder = recorder_of(source)
    held = source.malloc(9 * GIB)
    before = str(error)
    source.error = error

    with pytest.raises(type(error)) as caught:
        source.malloc(8 * GIB)

    (failed,) = recorder.recording.out_of_memory()
    assert caught.value is error
    assert str(error) == f"{before}\n{failed.summary} The state at that moment: " + str(
        tmp_path / "run.oom-1.html",
    )
    assert (failed.requested, failed.allocated, failed.limit) == (8 * GIB, 9 * GIB, limit)
    assert failed.free[0].name == "the program's allocator, default stream"
    assert held.mem.size == 9 * GIB


def test_what_a_pool_gives_back_before_it_fails_is_not_counted_as_cached(recorder_of):
    source = ObservedSource()
    recorder = recorder_of(source)
    source.malloc(9 * GIB)
    source.error = memory.OutOfMemoryError(8 * GIB, 9 * GIB)

    with pytest.raises(memory.OutOfMemoryError):
        source.malloc(8 * GIB)

    (failed,) = recorder.recording.out_of_memory()
    assert (failed.allocated, failed.reserved, failed.met.cached) == (0, 0, 0)


def test_any_other_error_passes_as_it_is(recorder_of):
    source = ObservedSource()
    recorder = recorder_of(source)
    for error in (CUDARuntimeError(1), ValueError("1234")):
        source.error = error
        before = str(error)

        with pytest.raises(type(error)) as caught:
            source.malloc(MIB)

        assert (caught.value, str(error)) == (error, before)
    assert recorder.recording.out_of_memory() == ()


def test_an_error_without_a_text_gets_a_note(recorder_of):
    source = ObservedSource()
    recorder_of(source)
    source.error = MemoryError()

    with pytest.raises(MemoryError) as caught:
        source.malloc(8 * GIB)

    assert caught.value.args == ()
    assert "The state at that moment: " in caught.value.__notes__[0]
