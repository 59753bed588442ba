from tests.conformance.golden import Golden
from tests.conformance.test_recorded_programs import DATA

MIB = 1 << 20


def current(allocator, *keys):
    stats = allocator.memory_stats()
    return [stats[f"{key}.all.current"] for key in keys]


def test_the_keys_are_those_of_torch_in_order(make):
    golden = Golden.read(DATA / "gc_1.json.xz")
    keys = next(sorted(op[1]) for op in golden.ops if op[0] == "stats")

    assert list(make()[0].memory_stats()) == keys


def test_a_block_of_5_mib_leaves_15_mib_that_cannot_be_returned(make):
    allocator, _ = make()
    keys = ("allocated_bytes", "reserved_bytes", "inactive_split", "inactive_split_bytes")

    address = allocator.allocate(5 * MIB)
    assert current(allocator, *keys) == [5 * MIB, 20 * MIB, 1, 15 * MIB]

    allocator.free(address)
    assert current(allocator, *keys) == [0, 20 * MIB, 0, 0]


def test_peaks_start_again_from_what_is_current(make):
    allocator, _ = make()
    address = allocator.allocate(30 * MIB)
    allocator.allocate(20 * MIB)
    allocator.free(address)

    before = allocator.memory_stats()["allocated_bytes.all.peak"]
    allocator.reset_peak_stats()
    after = allocator.memory_stats()["allocated_bytes.all.peak"]

    assert (before, after) == (50 * MIB, 20 * MIB)


def test_accumulated_counts_start_again_from_zero(make):
    allocator, _ = make("max_split_size_mb:40")
    allocator.free(allocator.allocate(1234))
    allocator.empty_cache()

    allocator.reset_accumulated_stats()
    stats = allocator.memory_stats()

    assert {value for key, value in stats.items() if key.endswith((".allocated", ".freed"))} == {0}
    assert [stats[key] for key in stats if key.startswith("num_")] == [0] * 5
    assert stats["max_split_size"] == 40 * MIB


def test_emptying_the_cache_counts_a_synchronization_and_returns_whole_segments(make):
    allocator, device = make()
    kept = allocator.allocate(MIB)
    allocator.free(allocator.allocate(30 * MIB))

    allocator.empty_cache()

    assert allocator.memory_stats()["num_sync_all_streams"] == 1
    assert device.used == 2 * MIB
    assert allocator.owns(kept)
