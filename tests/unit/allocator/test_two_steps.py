from gpuviz import _core
from tests.conformance.golden import Golden
from tests.conformance.test_recorded_programs import DATA


def test_a_search_of_the_cache_before_the_ladder_changes_nothing():
    """Calls from Python first search the cache without waiting; the replay does not."""
    golden = Golden.read(DATA / "gc_1.json.xz")
    device = golden.device()
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(golden.conf))
    allocator.set_memory_fraction(golden.fraction)
    blocks, found, stats = {}, [], []

    for kind, *arguments in golden.ops:
        if kind == "malloc":
            number, size, stream = arguments[:3]
            try:
                blocks[number] = allocator.allocate(size, golden.stream_handles[stream])
            except _core.OutOfMemoryError:
                blocks[number] = None
            found.append(blocks[number])
        elif kind == "free":
            allocator.free(blocks.pop(arguments[0]))
        elif kind == "empty_cache":
            allocator.empty_cache()
        elif kind == "stats":
            stats.append(allocator.memory_stats())

    assert found == [op[4] for op in golden.ops if op[0] == "malloc"]
    assert stats == [op[1] for op in golden.ops if op[0] == "stats"]
