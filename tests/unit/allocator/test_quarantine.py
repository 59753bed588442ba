import pytest

from gpuviz import _core

MIB = 1 << 20


def test_freed_memory_is_held_back(make):
    allocator, _ = make()
    allocator.set_quarantine(10 * MIB)
    first = allocator.allocate(4 * MIB)
    allocator.free(first)

    again = allocator.allocate(4 * MIB)

    assert again != first
    assert allocator.memory_stats()["active.all.current"] == 2


def test_the_oldest_is_returned_first(make):
    allocator, _ = make()
    blocks = [allocator.allocate(4 * MIB) for _ in range(3)]
    allocator.set_quarantine(8 * MIB)
    for block in blocks:
        allocator.free(block)

    assert allocator.allocate(4 * MIB) == blocks[0]
    assert allocator.allocate(4 * MIB) not in blocks


def test_a_block_larger_than_the_quarantine_is_returned_at_once(make):
    allocator, _ = make()
    allocator.set_quarantine(MIB)
    block = allocator.allocate(4 * MIB)

    allocator.free(block)

    assert allocator.allocate(4 * MIB) == block


def test_memory_is_given_back_before_a_request_fails(make):
    allocator, _ = make(capacity=64 * MIB)
    allocator.set_quarantine(1 << 40)
    block = allocator.allocate(60 * MIB)
    allocator.free(block)

    assert allocator.allocate(60 * MIB) == block


def test_empty_cache_releases_it(make):
    allocator, device = make()
    allocator.set_quarantine(1 << 40)
    allocator.free(allocator.allocate(4 * MIB))

    allocator.empty_cache()

    assert device.used == 0


def test_the_end_of_the_quarantine_returns_all(make):
    allocator, _ = make()
    allocator.set_quarantine(1 << 40)
    blocks = [allocator.allocate(4 * MIB) for _ in range(3)]
    for block in blocks:
        allocator.free(block)

    allocator.set_quarantine(0)

    assert allocator.memory_stats()["active.all.current"] == 0


def test_a_block_waits_for_streams_before_it_is_held_back(make):
    allocator, device = make()
    allocator.set_quarantine(1 << 40)
    block = allocator.allocate(MIB)
    device.occupy(5)
    allocator.record_stream(block, 5)
    allocator.free(block)
    device.finish_all()
    allocator.allocate(512)

    assert allocator.memory_stats()["active.all.current"] == 2
    allocator.set_quarantine(0)
    assert allocator.memory_stats()["active.all.current"] == 1


@pytest.fixture
def poisoned(make):
    """Return an allocator that fills freed blocks of the default stream, and its device."""
    allocator, device = make()
    session = _core.Session(stack_depth=0)
    allocator.track_uses(session, "off", True)
    yield allocator, device
    allocator.stop_tracking_uses()


@pytest.mark.parametrize(
    ("size", "offset", "count"), [(512, 0, 1), (4096, 4095, 1), (4 * MIB, 10_000, 9_000)]
)
def test_a_write_after_the_free_is_found(poisoned, size, offset, count):
    allocator, device = poisoned
    block = allocator.allocate(size, stack=1)
    allocator.free(block, stack=2)
    device.write(block + offset, count, 7)

    again = allocator.allocate(size, stack=3)
    (found,) = allocator.writes_after_free()

    assert again == block
    assert (found["address"], found["size"]) == (block, size)
    assert (found["allocated"], found["freed"], found["reused"]) == (1, 2, 3)
    assert offset <= found["offset"] < offset + count


@pytest.mark.parametrize("size", [512, 4096, 4608, 4 * MIB, 30 * MIB])
def test_untouched_memory_is_not_reported(poisoned, size):
    allocator, _ = poisoned
    for _ in range(3):
        allocator.free(allocator.allocate(size))
    allocator.allocate(size)

    assert allocator.writes_after_free() == []
    assert allocator.unchecked_frees == 0


def test_parts_of_a_freed_block_are_checked_separately(poisoned):
    allocator, device = poisoned
    block = allocator.allocate(8 * MIB)
    allocator.free(block)
    device.write(block + 5 * MIB, MIB, 7)

    first = allocator.allocate(4 * MIB)
    of_first = allocator.writes_after_free()
    second = allocator.allocate(4 * MIB)
    (found,) = allocator.writes_after_free()

    assert (first, second) == (block, block + 4 * MIB)
    assert of_first == []
    assert found["address"] == block
    assert 5 * MIB <= found["offset"] < 6 * MIB


def test_memory_that_was_returned_to_the_device_is_not_checked(poisoned):
    allocator, device = poisoned
    block = allocator.allocate(30 * MIB)
    allocator.free(block)
    allocator.empty_cache()
    device.write(block, 30 * MIB, 0)

    assert allocator.allocate(30 * MIB) == block
    assert allocator.writes_after_free() == []


def test_memory_of_a_stream_that_may_not_exist_is_left_alone(poisoned):
    allocator, device = poisoned
    block = allocator.allocate(MIB, 0x77)
    allocator.free(block)
    device.write(block, MIB, 0)

    allocator.allocate(MIB, 0x77)

    assert allocator.writes_after_free() == []
    assert allocator.unchecked_frees == 1
