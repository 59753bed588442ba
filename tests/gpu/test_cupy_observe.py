"""`allocator="observe"` records the program's own allocator and changes nothing."""

import pytest

import gpuviz

pytestmark = pytest.mark.gpu


def rows(recorder):
    """Return what happened during a recording."""
    recording = recorder.recording
    events = recording.table("memory_events").slice(recording.manifest.initial_events)
    return [(row["action"], row["size"], row["requested_size"]) for row in events.to_pylist()]


@pytest.fixture(params=["MemoryPool", "MemoryAsyncPool", "malloc", "python"])
def allocator(request):
    """Allocators of four kinds, installed for the test."""
    import cupy as cp

    def from_python(size):
        return cp.cuda.memory.malloc_managed(size)

    made = {
        "MemoryPool": lambda: cp.cuda.MemoryPool().malloc,
        "MemoryAsyncPool": lambda: cp.cuda.MemoryAsyncPool().malloc,
        "malloc": lambda: cp.cuda.memory._malloc,
        "python": lambda: from_python,
    }[request.param]()
    previous = cp.cuda.get_allocator()
    cp.cuda.set_allocator(made)
    yield request.param
    cp.cuda.set_allocator(previous)


def test_any_allocator_is_observed_and_restored(allocator):
    import cupy as cp

    before = cp.cuda.get_allocator()
    with gpuviz.record(allocator="observe") as recorder:
        kept = cp.full(1000, 3, dtype=cp.int32)
        dropped = kept + 1
        total = int(dropped.sum())
        del dropped
    assert cp.cuda.get_allocator() == before

    assert total == 4000
    seen = [row for row in rows(recorder) if row[0] in {"alloc", "free_requested"}]
    assert seen[:2] == [("alloc", seen[0][1], 4000), ("alloc", seen[0][1], 4000)]
    assert seen[0][1] >= 4000
    freed = [row for row in seen if row[0] == "free_requested"]
    assert ("free_requested", seen[0][1], 4000) in freed
    assert recorder.recording.manifest.allocator == "observe"
    assert int(kept.sum()) == 3000
    assert allocator.split(".")[-1] in recorder.recording.manifest.allocator_name or (
        allocator in {"malloc", "python"}
    )


def test_the_segments_of_a_memory_pool_are_known():
    import cupy as cp

    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc), gpuviz.record(allocator="observe") as recorder:
        first = cp.empty(4096, dtype=cp.int8)
        del first
        second = cp.empty(1024, dtype=cp.int8)
        third = cp.empty(1 << 20, dtype=cp.int8)
        del second, third
        pool.free_all_blocks()
        cp.empty(512, dtype=cp.int8)

    segments = [row[:2] for row in rows(recorder) if row[0].startswith("segment")]
    assert segments[:2] == [("segment_alloc", 4096), ("segment_alloc", 1 << 20)]
    assert sorted(segments[2:]) == [
        ("segment_alloc", 512),
        ("segment_free", 4096),
        ("segment_free", 1 << 20),
    ]


def test_out_of_memory_passes_through_and_is_recorded():
    import cupy as cp

    with (
        gpuviz.record(allocator="observe") as recorder,
        pytest.raises(cp.cuda.memory.OutOfMemoryError),
    ):
        cp.empty(1 << 40, dtype=cp.int8)

    assert [row for row in rows(recorder) if row[0] == "oom"] == [("oom", 1 << 40, 1 << 40)]
