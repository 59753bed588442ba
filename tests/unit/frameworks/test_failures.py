"""Failed requests in CuPy programs: CuPy's exceptions with longer messages."""

import pytest
from cupy.cuda import memory
from cupy_backends.cuda.api.runtime import CUDARuntimeError

import gpuviz
from gpuviz.recorder.recorder import Recorder
from gpuviz.report.page import build_page
from tests.unit.frameworks.simulated_cupy import ClientSource, ObservedSource

MIB, GIB = 1 << 20, 1 << 30


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
    assert added.endswith(f"Details: {tmp_path / 'run.oom-1.html'}")
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
    assert str(error) == f"{before}\n{failed.summary} Details: " + str(
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
    assert (failed.allocated, failed.reserved, failed.request.cached) == (0, 0, 0)


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
    assert "Details: " in caught.value.__notes__[0]


def test_frees_that_fail_are_counted_and_shown(recorder_of):
    source = ClientSource()
    recorder = recorder_of(source)
    arrays = [source.malloc(MIB) for _ in range(3)]
    for array in arrays[:2]:
        source.allocators[0].free(array.ptr)
    del arrays, array

    recording = recorder.stop()

    assert recording.notes[-1] == "2 frees of arrays failed; that memory stays allocated."
    assert "2 frees of arrays failed" in build_page(recording)
