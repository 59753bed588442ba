import pytest

from gpuviz import _core

KIB, MIB = 1 << 10, 1 << 20
COPY, OTHER = 0x1000, 0x2000


@pytest.fixture
def device():
    return _core.SimulatedDevice(1 << 30)


@pytest.fixture
def make(device):
    """Return a function that creates an allocator with some settings."""

    def made(settings=""):
        return _core.HostAllocator(device, _core.AllocatorSettings.parse(settings))

    return made


def current(allocator):
    stats = allocator.memory_stats()
    names = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
    return tuple(stats[f"{name}.current"] for name in names)


@pytest.mark.parametrize(
    ("settings", "requested", "size"),
    [
        ("", 1, 1),
        ("", 3, 4),
        ("", 40 * KIB, 64 * KIB),
        ("", 64 * KIB, 64 * KIB),
        ("", 64 * KIB + 1, 128 * KIB),
        ("pinned_max_round_threshold_mb:0", 40 * KIB, 40 * KIB),
        ("pinned_max_round_threshold_mb:1", MIB, MIB),
        ("pinned_max_round_threshold_mb:1", MIB + 1, MIB + 1),
        ("pinned_max_cached_size_mb:2", 3 * MIB, 3 * MIB),
    ],
)
def test_sizes_are_powers_of_two_or_exact_by_the_settings(make, device, settings, requested, size):
    allocator = make(settings)

    allocator.allocate(requested)

    assert device.host_used == size
    assert current(allocator) == (1, size, 1, size)


def test_a_freed_block_serves_the_next_request_of_its_class(make):
    allocator = make()
    first = allocator.allocate(40 * KIB)
    allocator.free(first)

    second = allocator.allocate(50 * KIB)

    assert second == first
    assert allocator.memory_stats()["num_host_alloc"] == 1


def test_a_cached_block_that_is_smaller_than_the_request_is_not_used(make):
    allocator = make("pinned_max_round_threshold_mb:0")
    small, large = allocator.allocate(40 * KIB), allocator.allocate(60 * KIB)
    allocator.free(large)
    allocator.free(small)

    assert allocator.allocate(50 * KIB) == large


def test_the_block_freed_last_is_used_first(make):
    allocator = make()
    blocks = [allocator.allocate(MIB) for _ in range(3)]
    for block in blocks:
        allocator.free(block)

    assert [allocator.allocate(MIB) for _ in range(3)] == blocks[::-1]


def test_a_block_is_not_reused_while_a_stream_uses_it(make, device):
    allocator = make()
    block = allocator.allocate(MIB)
    device.occupy(COPY)
    assert allocator.record_event(block, device, COPY)
    allocator.free(block)

    other = allocator.allocate(MIB)
    device.finish(COPY)
    again = allocator.allocate(MIB)

    assert other != block
    assert again == block


def test_a_block_waits_for_every_stream_that_uses_it(make, device):
    allocator = make()
    block = allocator.allocate(MIB)
    for stream in (COPY, OTHER):
        device.occupy(stream)
        allocator.record_event(block + 1234, device, stream)
    allocator.free(block)

    device.finish(OTHER)
    assert allocator.allocate(MIB) != block
    device.finish(COPY)
    assert allocator.allocate(MIB) == block


def test_a_use_of_one_stream_does_not_delay_blocks_of_another(make, device):
    allocator = make()
    blocks = [allocator.allocate(MIB), allocator.allocate(MIB)]
    for block, stream in zip(blocks, (COPY, OTHER), strict=True):
        device.occupy(stream)
        allocator.record_event(block, device, stream)
        allocator.free(block)

    device.finish(OTHER)

    assert allocator.allocate(MIB) == blocks[1]


def test_uses_by_other_devices_are_waited_for(make):
    allocator = make()
    second = _core.SimulatedDevice(1 << 30, 1)
    block = allocator.allocate(MIB)
    second.occupy(COPY)
    allocator.record_event(block, second, COPY)
    allocator.free(block)

    assert allocator.allocate(MIB) != block
    second.finish(COPY)
    assert allocator.allocate(MIB) == block


def test_a_block_waits_for_what_a_destroyed_stream_had_been_given(make, device):
    allocator = make()
    block = allocator.allocate(MIB)
    device.occupy(COPY)
    allocator.record_event(block, device, COPY)
    allocator.end_stream(device, COPY)
    device.finish(COPY)
    device.occupy(COPY)  # a new stream with the same handle

    allocator.free(block)

    assert allocator.allocate(MIB) == block


def test_a_pending_block_counts_as_active(make, device):
    allocator = make()
    block = allocator.allocate(3 * MIB)
    device.occupy(COPY)
    allocator.record_event(block, device, COPY)

    allocator.free(block)
    pending = current(allocator)
    device.finish(COPY)
    allocator.empty_cache()

    assert pending == (1, 4 * MIB, 1, 4 * MIB)
    assert current(allocator) == (0, 0, 0, 0)
    assert device.host_used == 0


def test_addresses_outside_allocated_blocks_have_no_uses(make, device):
    allocator = make()
    block = allocator.allocate(MIB)

    assert not allocator.record_event(block - 1, device, COPY)
    assert not allocator.record_event(block + MIB, device, COPY)
    allocator.free(block)
    assert not allocator.record_event(block, device, COPY)


def test_a_refusal_releases_the_cache_and_tries_again(make, device):
    allocator = make()
    device.refuse_host_beyond(4 * MIB)
    for block in [allocator.allocate(MIB) for _ in range(4)]:
        allocator.free(block)

    allocator.allocate(4 * MIB)

    assert device.host_used == 4 * MIB
    assert allocator.memory_stats()["num_host_free"] == 4


def test_a_refusal_waits_for_pending_blocks(make, device):
    allocator = make()
    device.refuse_host_beyond(4 * MIB)
    block = allocator.allocate(4 * MIB)
    device.occupy(COPY)
    allocator.record_event(block, device, COPY)
    allocator.free(block)

    allocator.allocate(2 * MIB)

    assert device.host_used == 2 * MIB


def test_a_final_refusal_is_a_memory_error_with_the_size(make, device):
    allocator = make()
    device.refuse_host_beyond(MIB)

    with pytest.raises(MemoryError, match="refused 2097152 bytes of pinned host memory"):
        allocator.allocate(MIB + 1)

    assert current(allocator) == (0, 0, 0, 0)


@pytest.mark.parametrize("size", [(1 << 62) + 1, (1 << 63) + 1, (1 << 64) - 1])
def test_sizes_beyond_any_memory_are_refused(make, device, size):
    device.refuse_host_beyond(MIB)

    with pytest.raises(MemoryError, match=f"refused {size} bytes"):
        make().allocate(size)


def test_blocks_above_the_largest_cached_size_are_released_at_once(make, device):
    allocator = make("pinned_max_cached_size_mb:1")
    small, large = allocator.allocate(MIB), allocator.allocate(MIB + 1)

    allocator.free(large)
    allocator.free(small)

    assert device.host_used == MIB


def test_size_zero_has_no_block(make):
    allocator = make()

    assert allocator.allocate(0) == 0
    allocator.free(0)
    assert current(allocator) == (0, 0, 0, 0)


def test_only_allocated_blocks_can_be_freed(make):
    allocator = make()
    block = allocator.allocate(MIB)
    allocator.free(block)

    for address in (block, block + 1, 1234):
        with pytest.raises(ValueError, match=f"{address} is not an allocated block"):
            allocator.free(address)


def test_resets_keep_what_is_allocated(make):
    allocator = make()
    kept, freed = allocator.allocate(MIB), allocator.allocate(2 * MIB)
    allocator.free(freed)
    allocator.reset_peak_stats()
    allocator.reset_accumulated_stats()

    stats = allocator.memory_stats()

    counters = {
        name: tuple(stats[f"{name}.{part}"] for part in ("current", "peak", "allocated", "freed"))
        for name in ("allocations", "allocated_bytes", "active_requests", "active_bytes")
    }
    assert counters == {
        "allocations": (2, 2, 0, 0),
        "allocated_bytes": (3 * MIB, 3 * MIB, 0, 0),
        "active_requests": (1, 1, 0, 0),
        "active_bytes": (MIB, MIB, 0, 0),
    }
    assert stats["num_host_alloc"] == stats["num_host_free"] == 0
    assert {value for key, value in stats.items() if "_time." in key} == {0}
    allocator.free(kept)


def test_the_keys_are_those_of_torch(make):
    counters = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
    keys = {f"{n}.{part}" for n in counters for part in ("current", "peak", "allocated", "freed")}
    times = ("host_alloc_time", "host_free_time")
    keys |= {f"{n}.{part}" for n in times for part in ("total", "max", "min", "count", "avg")}

    assert set(make().memory_stats()) == keys | {"num_host_alloc", "num_host_free"}


def test_a_destroyed_allocator_returns_its_memory(device):
    allocator = _core.HostAllocator(device)
    block = allocator.allocate(MIB)
    allocator.allocate(MIB)
    device.occupy(COPY)
    allocator.record_event(block, device, COPY)
    allocator.free(block)

    del allocator

    assert device.host_used == 0
