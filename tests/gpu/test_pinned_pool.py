"""CuPy's own pool of pinned memory in recordings: what is recorded, and hazards with copies."""

import cupy
import cupyx
import numpy as np
import pytest

import gpuviz
from tests.gpu.test_pinned import BYTES, CYCLES, SPIN

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def pool():
    """Return the installed pool."""
    pool = cupy.cuda.PinnedMemoryPool()
    cupy.cuda.set_pinned_memory_allocator(pool.malloc)
    yield pool
    cupy.cuda.set_pinned_memory_allocator()


def overwrite(stream, *, wait=False, keep=False):
    """Free pinned memory that a late copy reads, and fill what is allocated next; the result."""
    array, host = cupy.zeros(BYTES, cupy.uint8), cupyx.empty_pinned(BYTES, np.uint8)
    host[:] = 5
    cupy.cuda.Device().synchronize()
    with stream:
        SPIN((1,), (1,), (CYCLES,))
    array.set(host, stream=stream)
    if wait:
        stream.synchronize()
    kept = host if keep else None
    del host
    cupyx.empty_pinned(BYTES, np.uint8)[:] = 9
    cupy.cuda.Device().synchronize()
    del kept
    return int(array.min()) == int(array.max()) == 5


def pinned_hazards(recording):
    return [(each.kind, each.showed) for each in recording.hazards() if each.memory == "pinned"]


@pytest.mark.parametrize("allocator", ["caching", "observe"])
def test_memory_that_is_handed_out_while_it_is_copied_is_reported(allocator):
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record(hazards=True, allocator=allocator) as recorder:
        is_right = overwrite(stream)

    assert not is_right
    assert ("reuse", True) in pinned_hazards(recorder.recording)
    hazard = next(each for each in recorder.recording.hazards() if each.kind == "reuse")
    assert hazard.first.source == "array.set(host, stream=stream)"
    assert hazard.second.source == "cupyx.empty_pinned(BYTES, np.uint8)[:] = 9"


@pytest.mark.parametrize("change", ["wait", "keep"])
def test_memory_that_is_waited_for_or_kept_is_not_reported(change):
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record(hazards=True) as recorder:
        is_right = overwrite(stream, **{change: True})

    assert is_right
    assert pinned_hazards(recorder.recording) == []


def test_automatic_record_stream_makes_the_next_owner_wait(pool):
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record(hazards=True, record_stream="auto") as recorder:
        right = [overwrite(stream) for _ in range(10)]

    assert right == [True] * 10
    assert pinned_hazards(recorder.recording) == []
    assert cupy.cuda.alloc_pinned_memory(1).mem.pool() is pool


def uploads():
    values = np.arange(1 << 20, dtype=np.float32)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    total = 0.0
    for step in range(20):
        with (stream := streams[step % 2]):
            x = cupy.asarray(values)
            y = cupy.array([1.0, 2.0, float(step)])
            total += float((x.sum() + y.sum()).get(stream=stream))
    return total


def test_uploads_of_cupy_itself_and_a_reader_that_waits_have_no_hazard():
    with gpuviz.record(hazards=True) as recorder:
        uploads()
        source = cupyx.empty_pinned(1 << 20, np.float32)
        source[:] = 1
        array = cupy.asarray(source)
        out = cupyx.empty_pinned(1 << 20, np.float32)
        stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
        array.get(stream=stream, out=out, blocking=False)
        stream.synchronize()
        del source, out

    assert recorder.recording.host_memory.peak().bytes >= 8 << 20
    assert recorder.recording.hazards() == ()
