"""CuPy's pinned memory from gpuviz's allocator."""

import cupy
import cupyx
import numpy as np
import pytest

import gpuviz

pytestmark = pytest.mark.gpu

BYTES = 32 << 20
SPIN = cupy.RawKernel(
    r"""extern "C" __global__ void spin(long long cycles) {
        const long long start = clock64();
        while (clock64() - start < cycles) {}
    }""",
    "spin",
)
CYCLES = np.int64(100_000_000)  # 50 ms or more


@pytest.fixture(autouse=True)
def pinned_allocator():
    cupy.cuda.set_pinned_memory_allocator(gpuviz.malloc_pinned)
    yield
    cupy.cuda.set_pinned_memory_allocator()
    gpuviz.empty_host_cache()


def set_then_overwrite(stream, current):
    """Free pinned memory while it is copied on a stream, and overwrite what is allocated next."""
    array, host = cupy.zeros(BYTES, cupy.uint8), cupyx.empty_pinned(BYTES, np.uint8)
    host[:] = 5
    cupy.cuda.Device().synchronize()
    with stream:
        SPIN((1,), (1,), (CYCLES,))
    with current:
        array.set(host, stream=stream)
        del host
        cupyx.empty_pinned(BYTES, np.uint8)[:] = 9
    cupy.cuda.Device().synchronize()
    return int(array.min()) == int(array.max()) == 5


def test_memory_copied_on_the_current_stream_is_not_reused_too_early():
    stream = cupy.cuda.Stream(non_blocking=True)

    assert [set_then_overwrite(stream, stream) for _ in range(50)] == [True] * 50


def test_memory_copied_on_a_blocking_stream_is_not_reused_too_early():
    stream = cupy.cuda.Stream()

    assert [set_then_overwrite(stream, cupy.cuda.Stream.null) for _ in range(50)] == [True] * 50


def test_a_recording_sees_copies_on_every_stream():
    stream = cupy.cuda.Stream(non_blocking=True)
    with gpuviz.record():
        right = [set_then_overwrite(stream, cupy.cuda.Stream.null) for _ in range(50)]

    assert right == [True] * 50


def test_a_stream_may_be_destroyed_before_the_memory_that_it_copied():
    host = cupyx.empty_pinned(BYTES, np.uint8)
    with gpuviz.record():
        for _ in range(50):
            stream = cupy.cuda.Stream(non_blocking=True)
            array = cupy.zeros(BYTES, cupy.uint8)
            array.set(host, stream=stream)
            del stream
        del host
    cupy.cuda.Device().synchronize()
    gpuviz.empty_host_cache()

    assert gpuviz.host_memory_stats()["active_requests.current"] == 0


def test_contents_survive_many_reuses():
    random = np.random.default_rng(1234)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for size in random.integers(1, 1 << 20, 500).tolist():
            host = cupyx.empty_pinned(size, np.uint8)
            value = size % 251
            host[:] = value
            array = cupy.asarray(host)
            del host
            assert (array.get() == value).all()
    stats = gpuviz.host_memory_stats()

    assert stats["active_requests.allocated"] >= 500
    assert stats["num_host_alloc"] < 500


def test_memory_freed_while_a_stream_captures_does_not_end_the_capture():
    stream = cupy.cuda.Stream()
    host = cupyx.empty_pinned(1234, np.uint8)
    address = host.ctypes.data
    array = cupy.zeros(1000)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        array += 1
        del host
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()

    assert float(array.sum()) == 1000.0
    assert cupyx.empty_pinned(1234, np.uint8).ctypes.data != address


def test_a_refusal_is_cupys_error():
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="out of memory"):
        cupyx.empty_pinned(1 << 44, np.uint8)


def test_a_recording_has_its_events_with_their_lines():
    kept = cupyx.empty_pinned(1 << 20, np.uint8)
    array = cupy.zeros(3 << 20, cupy.uint8)
    with gpuviz.record() as recorder:
        host = cupyx.empty_pinned(3 << 20, np.uint8)
        array.set(host)
        del host
        cupy.cuda.Device().synchronize()
        stats = gpuviz.host_memory_stats()
    memory = recorder.recording.host_memory

    last = memory.memory_levels.slice(memory.memory_levels.num_rows - 1).to_pylist()[0]
    assert last["active"] == stats["active_bytes.current"]
    assert last["reserved"] == stats["allocated_bytes.current"]
    assert kept.nbytes == 1 << 20
    lines = memory.sites("line", at="end")["source"].to_pylist()
    assert "host = cupyx.empty_pinned(3 << 20, np.uint8)" in lines


def test_the_statistics_count_driver_calls():
    before = gpuviz.host_memory_stats()["num_host_alloc"] if gpuviz.host_memory_stats() else 0
    host = cupyx.empty_pinned(3 << 20, np.uint8)
    stats = gpuviz.host_memory_stats()

    assert host.nbytes == 3 << 20
    assert stats["num_host_alloc"] == before + 1
    assert stats["host_alloc_time.total"] > 0
