import numpy as np
import pytest

from gpuviz import _core

MIB = 1 << 20


def segments(allocator):
    return {s["total_size"] // MIB: s["address"] for s in allocator.memory_snapshot()}


def test_segments_fill_the_lowest_hole_before_a_new_region_below():
    allocator = _core.CachingAllocator(_core.SimulatedDevice(4 << 30))
    for size in (400, 36, 30, 16, 12):
        allocator.allocate(size * MIB)

    found = segments(allocator)

    assert found[36] == found[400] - 64 * MIB
    assert found[16] == found[36] + 36 * MIB
    assert found[30] == found[400] - 96 * MIB
    assert found[12] == found[36] + 52 * MIB


def test_a_free_region_vanishes_and_its_addresses_serve_again():
    device = _core.SimulatedDevice(4 << 30)
    allocator = _core.CachingAllocator(device)
    allocator.allocate(420 * MIB)
    for size in (64, 96):
        allocator.free(allocator.allocate(size * MIB))
    top = segments(allocator)[420]
    allocator.empty_cache()

    allocator.allocate(32 * MIB)

    assert segments(allocator)[32] == top - 32 * MIB
    assert device.used == 452 * MIB
    assert device.memory_info() == ((4 << 30) - 452 * MIB, 4 << 30)


def test_the_capacity_is_exact():
    device = _core.SimulatedDevice(100 * MIB)
    allocator = _core.CachingAllocator(device)

    allocator.allocate(100 * MIB)

    assert device.used == 100 * MIB
    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(1)


def test_a_recording_without_more_addresses_is_out_of_memory():
    addresses = np.array([0x1000000], np.uint64)
    device = _core.RecordedDevice(1 << 30, addresses, np.array([], np.uint64))
    allocator = _core.CachingAllocator(device)

    assert allocator.allocate(2 * MIB) == 0x1000000
    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(30 * MIB)
