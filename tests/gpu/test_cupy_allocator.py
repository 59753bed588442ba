"""gpuviz's allocator in CuPy: allocations, validity of arrays, and recorded events."""

import ctypes
import threading

import pytest

import gpuviz

pytestmark = pytest.mark.gpu


def events(recorder, action):
    table = recorder.recording.table("memory_events")
    first = recorder.recording.manifest.initial_events
    return [row for row in table.slice(first).to_pylist() if row["action"] == action]


def test_cupy_objects_are_built_directly():
    from gpuviz.frameworks.cupy import cupy_allocator

    assert cupy_allocator().is_direct


def test_an_allocation_is_recorded_with_its_line():
    import cupy as cp

    with gpuviz.record() as recorder:
        kept = cp.empty(1234, dtype=cp.int8)

    site = recorder.recording.sites(by="line", at="end").to_pylist()[0]
    assert site["live_bytes"] == 1536
    assert "kept = cp.empty(1234, dtype=cp.int8)" in site["source"]
    assert kept.size == 1234


def test_arrays_of_before_and_after_the_recording_stay_valid():
    import cupy as cp

    before = cp.arange(1000)
    with gpuviz.record() as recorder:
        during = before + 1
        del before
    after = during * 2

    assert int(after.sum()) == 1_001_000
    assert [event["requested_size"] for event in events(recorder, "alloc")] == [8000]
    assert events(recorder, "free_requested") == []
    del during
    assert gpuviz.memory_allocated() == 0


def test_the_recorded_statistics_are_the_allocators():
    import cupy as cp

    gpuviz.empty_cache()
    gpuviz.reset_accumulated_memory_stats()
    gpuviz.reset_peak_memory_stats()
    with gpuviz.record() as recorder:
        arrays = [cp.empty(size, dtype=cp.int8) for size in (100, 1 << 20, 5 << 20, 30 << 20)]
        del arrays[1:3]
        live = gpuviz.memory_stats()

    recorded = recorder.recording.memory_stats(device=0)
    compared = [
        key
        for key in live
        if key.split(".")[0]
        in {
            "allocation",
            "allocated_bytes",
            "active",
            "active_bytes",
            "requested_bytes",
            "segment",
            "reserved_bytes",
            "inactive_split",
            "inactive_split_bytes",
        }
    ]
    assert {key: recorded[key] for key in compared} == {key: live[key] for key in compared}


def test_out_of_memory_is_cupys_with_the_allocators_text():
    import cupy as cp

    with gpuviz.record() as recorder:
        gpuviz.set_per_process_memory_fraction(0.01)
        try:
            with pytest.raises(cp.cuda.memory.OutOfMemoryError) as caught:
                cp.empty(60 << 30, dtype=cp.int8)
            usable = int(cp.arange(10).sum())
        finally:
            gpuviz.set_per_process_memory_fraction(1.0)

    assert str(caught.value).startswith("CUDA out of memory. Tried to allocate 60.00 GiB.")
    assert "allowed" in str(caught.value)
    assert usable == 45
    assert [event["requested_size"] for event in events(recorder, "oom")] == [60 << 30]


def test_a_full_device_gives_cached_memory_back_before_it_fails():
    import cupy as cp

    free, _ = gpuviz.mem_get_info()
    gpuviz.reset_accumulated_memory_stats()
    with gpuviz.record() as recorder:
        large = cp.empty(int(free * 0.7), dtype=cp.int8)
        del large
        other = cp.empty(int(free * 0.8), dtype=cp.int8)
        assert other.size == int(free * 0.8)
        del other

    assert recorder.recording.manifest.memory_stats[0]["num_alloc_retries"] == 1


def test_arrays_in_reference_cycles_are_collected_before_an_allocation_fails():
    import cupy as cp

    free, _ = gpuviz.mem_get_info()
    with gpuviz.record() as recorder:
        cycle = [cp.empty(int(free * 0.6), dtype=cp.int8)]
        cycle.append(cycle)
        del cycle
        other = cp.empty(int(free * 0.6), dtype=cp.int8)
        assert other.size == int(free * 0.6)
        del other

    assert events(recorder, "oom") == []


def test_threads_allocate_side_by_side():
    import cupy as cp

    sums = []

    def work(value):
        with cp.cuda.Stream(non_blocking=True) as stream:
            for _ in range(300):
                array = cp.full(1000, value, dtype=cp.int64)
                total = array.sum()
            stream.synchronize()
            sums.append(int(total))

    with gpuviz.record() as recorder:
        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(sums) == [0, 1000, 2000, 3000]
    assert len({event["thread"] for event in events(recorder, "alloc")}) == 4
    assert len({event["stream"] for event in events(recorder, "alloc")}) == 4


def test_a_scope_with_its_own_allocator_is_left_alone():
    import cupy as cp

    pool = cp.cuda.MemoryPool()
    with gpuviz.record() as recorder:
        with cp.cuda.using_allocator(pool.malloc):
            foreign = cp.zeros(1000)
        own = cp.zeros(2000)

    assert [event["requested_size"] for event in events(recorder, "alloc")] == [16000]
    assert (float(foreign.sum()), float(own.sum())) == (0.0, 0.0)


def test_recording_inside_a_scope_records_that_thread():
    import cupy as cp

    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        with gpuviz.record() as recorder:
            cp.zeros(2000)
        cp.zeros(10)

    assert [event["requested_size"] for event in events(recorder, "alloc")] == [16000]
    assert pool.total_bytes() > 0


def test_the_previous_allocator_comes_back_and_the_cache_is_given_back():
    import cupy as cp

    previous = cp.cuda.get_allocator()
    with gpuviz.record():
        cp.zeros(1 << 20)
        assert gpuviz.memory_reserved() > 0

    assert cp.cuda.get_allocator() == previous
    assert gpuviz.memory_reserved() == 0


def test_a_private_pool_has_segments_of_its_own():
    import cupy as cp

    pool = gpuviz.MemPool()
    with gpuviz.record() as recorder:
        with gpuviz.use_mem_pool(pool):
            inside = cp.zeros(1000)
        outside = cp.zeros(1000)
        pools = {segment["segment_pool_id"] for segment in gpuviz.memory_snapshot()}

    assert pools == {(0, 0), pool.id}
    assert len({event["pool"] for event in events(recorder, "alloc")}) == 2
    assert inside.size == outside.size


def test_expandable_segments_grow_in_place():
    import cupy as cp

    gpuviz.set_allocator_settings("expandable_segments:True")
    try:
        with gpuviz.record() as recorder:
            first = cp.full(8 << 20, 1, dtype=cp.int8)
            second = cp.full(30 << 20, 2, dtype=cp.int8)
            same_segment = second.data.ptr - first.data.ptr
            total = int(first.sum(dtype=cp.int64)) + int(second.sum(dtype=cp.int64))
            segments = len([s for s in gpuviz.memory_snapshot() if s["segment_type"] == "large"])
    finally:
        gpuviz.set_allocator_settings("expandable_segments:False")

    assert total == (8 << 20) + (60 << 20)
    assert same_segment == 8 << 20
    assert segments == 1
    assert len(events(recorder, "segment_map")) >= 2


@pytest.mark.parametrize("settings", ["expandable_segments:True", "expandable_segments:False"])
def test_a_stream_may_be_destroyed_before_its_memory_is_given_back(settings):
    import cupy as cp

    gpuviz.set_allocator_settings(settings)
    try:
        with gpuviz.record():
            stream = cp.cuda.Stream(non_blocking=True)
            other = cp.cuda.Stream(non_blocking=True)
            with stream:
                array = cp.full(30 << 20, 3, dtype=cp.int8)
            gpuviz.record_stream(array, other)
            # The default stream does not wait for this one.
            stream.synchronize()
            total = int(array.sum(dtype=cp.int64))
            del stream, other
            cp.cuda.Device().synchronize()
            del array
            gpuviz.empty_cache()
            reserved = gpuviz.memory_reserved()
    finally:
        gpuviz.set_allocator_settings("expandable_segments:False")

    assert total == 3 * (30 << 20)
    assert reserved < 30 << 20


def test_memory_outside_the_allocator_is_sampled():
    import cupy as cp

    outside = cp.zeros(64 << 20, dtype=cp.int8)
    with gpuviz.record() as recorder:
        cp.zeros(10)

    used = recorder.recording.table("device_memory")["used"].to_pylist()
    assert max(used) > outside.nbytes


def test_a_thread_without_a_context_allocates_on_its_current_device():
    import cupy as cp

    driver = ctypes.CDLL("libcuda.so.1")
    devices = []

    def allocate():
        devices.append(cp.empty(1000).data.device_id)
        assert driver.cuCtxSetCurrent(None) == 0
        devices.append(cp.empty(1000).data.device_id)

    with gpuviz.record():
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()

    assert devices == [0, 0]
