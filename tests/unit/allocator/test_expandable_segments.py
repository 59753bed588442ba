import pytest

from gpuviz import _core

MIB = 1 << 20
CONF = "expandable_segments:True"


def shape(allocator):
    return [
        [(block["size"] // MIB, block["state"].removeprefix("active_")) for block in s["blocks"]]
        for s in allocator.memory_snapshot()
    ]


def test_a_segment_grows_by_pages_of_20_mib(make):
    allocator, device = make(CONF)

    first = allocator.allocate(2 * MIB)
    small = shape(allocator)
    allocator.free(first)
    second = allocator.allocate(32 * MIB)

    assert small == [[(2, "allocated"), (18, "inactive")]]
    assert shape(allocator) == [[(32, "allocated"), (8, "inactive")]]
    assert first == second
    assert device.used == 40 * MIB


def test_a_live_block_pins_only_its_own_pages(make):
    allocator, device = make(CONF)
    blocks = [allocator.allocate(20 * MIB) for _ in range(4)]
    for index in (0, 1, 3):
        allocator.free(blocks[index])

    allocator.empty_cache()

    assert shape(allocator) == [[(20, "allocated")]]
    assert device.used == 20 * MIB
    assert allocator.memory_stats()["num_device_free"] == 2


def test_it_counts_as_reserved_but_never_as_a_segment_or_as_split(make):
    allocator, _ = make(CONF)

    allocator.free(allocator.allocate(5 * MIB))
    allocator.allocate(3 * MIB)
    stats = allocator.memory_stats()

    assert stats["segment.all.allocated"] == 0
    assert stats["inactive_split.all.allocated"] == 0
    assert stats["reserved_bytes.all.current"] == 20 * MIB


def test_no_memory_for_a_page_changes_nothing(make):
    allocator, device = make(CONF, capacity=50 * MIB)
    allocator.allocate(15 * MIB)

    with pytest.raises(_core.OutOfMemoryError, match=r"of which 30\.00 MiB is free") as caught:
        allocator.allocate(60 * MIB)
    again = allocator.allocate(20 * MIB)

    assert device.used == 40 * MIB
    assert caught.value.alloc_size == 60 * MIB
    assert allocator.owns(again)


def test_switched_off_its_blocks_are_left_alone(make):
    allocator, _ = make(CONF)
    address = allocator.allocate(5 * MIB)
    allocator.free(address)

    allocator.apply_settings(allocator.settings.updated("expandable_segments:False"))
    other = allocator.allocate(5 * MIB)
    allocator.apply_settings(allocator.settings.updated("expandable_segments:True"))
    again = allocator.allocate(5 * MIB)

    assert other != address
    assert again in {address, other + 5 * MIB}
    assert sorted(s["is_expandable"] for s in allocator.memory_snapshot()) == [False, True]
