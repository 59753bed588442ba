"""What the host does to pinned memory while a copy of the GPU is pending."""

import cupy
import cupyx
import numpy as np
import pytest

import gpuviz
from tests.gpu.test_pinned import BYTES, CYCLES, SPIN

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def pool():
    """Install a pool of pinned memory of its own."""
    cupy.cuda.set_pinned_memory_allocator(cupy.cuda.PinnedMemoryPool().malloc)
    yield
    cupy.cuda.set_pinned_memory_allocator()


def delayed(value):
    """Return a stream that is busy for a while, an array, and pinned memory with a value."""
    stream = cupy.cuda.Stream(non_blocking=True)
    array, host = cupy.full(BYTES, 5, cupy.uint8), cupyx.empty_pinned(BYTES, np.uint8)
    host[:] = value
    cupy.cuda.Device().synchronize()
    with stream:
        SPIN((1,), (1,), (CYCLES,))
    return stream, array, host


def wait(how, stream):
    event = stream.record()
    other = cupy.cuda.Stream(non_blocking=True)
    other.wait_event(event)
    if how == "query":
        while not event.done:
            pass
    elif how != "none":
        {"stream": stream, "event": event, "other": other}[how].synchronize()


def write(how):
    stream, array, host = delayed(5)
    array.set(host, stream=stream)
    wait(how, stream)
    host[:] = 9
    cupy.cuda.Device().synchronize()
    return int(array.max()) == 5


def read(how):
    stream, array, host = delayed(0)
    array.get(stream=stream, out=host, blocking=False)
    wait(how, stream)
    is_right = int(host.max()) == 5
    cupy.cuda.Device().synchronize()
    return is_right


def hazards(recording):
    return [(each.kind, each.tier) for each in recording.hazards() if each.memory == "pinned"]


@pytest.mark.parametrize("poison", [False, True])
def test_memory_that_is_overwritten_before_it_was_copied_is_reported(poison):
    with gpuviz.record(hazards=True, poison=poison) as recorder:
        is_right = write("none")

    assert not is_right
    assert hazards(recorder.recording) == [("WAR", "certain")]
    (hazard,) = (each for each in recorder.recording.hazards() if each.memory == "pinned")
    assert hazard.first.source == "array.set(host, stream=stream)"
    assert (hazard.second.source == "host[:] = 9") == poison


def test_memory_that_is_read_before_it_was_copied_is_reported_with_its_line():
    with gpuviz.record(hazards=True, poison=True) as recorder:
        is_right = read("none")

    assert not is_right
    assert hazards(recorder.recording) == [("RAW", "certain")]
    (hazard,) = (each for each in recorder.recording.hazards() if each.memory == "pinned")
    assert hazard.second.source == "is_right = int(host.max()) == 5"


def test_memory_that_is_read_before_it_was_copied_is_reported_without_poison():
    with gpuviz.record(hazards=True) as recorder:
        is_right = read("none")
    is_watched = not any("was not watched" in note for note in recorder.recording.notes)

    assert not is_right
    assert hazards(recorder.recording) == [("RAW", "certain")] * is_watched


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("how", ["stream", "event", "other", "query"])
@pytest.mark.parametrize("program", [write, read])
def test_a_program_that_waits_is_right(program, how, poison):
    with gpuviz.record(hazards=True, poison=poison) as recorder:
        is_right = program(how)

    assert is_right
    assert hazards(recorder.recording) == []


@pytest.mark.parametrize("poison", [False, True])
def test_memory_that_other_copies_fill_is_no_access_of_the_host(poison):
    with gpuviz.record(hazards=True, poison=poison) as recorder:
        stream, array, host = delayed(0)
        other = cupy.empty_like(array)
        array.get(stream=stream, out=host, blocking=False)
        other.set(host, stream=stream)
        stream.synchronize()

    assert int(other.max()) == 5
    assert hazards(recorder.recording) == []
