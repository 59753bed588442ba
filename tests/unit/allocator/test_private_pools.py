import threading

import pytest

from gpuviz import _core

MIB = 1 << 20
EVERYTHING = _core.CachingAllocator.PoolFilter.everything


def pool_of(allocator, address):
    return allocator.block_at(address)["pool"]


def test_a_block_goes_back_to_the_pool_it_came_from(make):
    allocator, _ = make()
    pool = allocator.create_pool()

    allocator.begin_pool(pool)
    inside = allocator.allocate(1234)
    allocator.end_pool(pool)
    allocator.free(inside)
    outside = allocator.allocate(1234)
    allocator.begin_pool(pool)
    again = allocator.allocate(1234)
    allocator.end_pool(pool)

    assert again == inside
    assert (pool_of(allocator, outside), pool_of(allocator, again)) == ((0, 0), (0, 1))


def test_the_innermost_pool_serves(make):
    allocator, _ = make()
    outer, inner = allocator.create_pool(), allocator.create_pool()
    found = []

    allocator.begin_pool(outer)
    found.append(allocator.allocate(1234))
    allocator.begin_pool(inner)
    found.append(allocator.allocate(1234))
    allocator.end_pool(inner)
    found.append(allocator.allocate(1234))
    allocator.end_pool(outer)

    assert [pool_of(allocator, address)[1] for address in found] == [outer, inner, outer]
    assert len(allocator.memory_snapshot()) == 2


def test_other_threads_keep_the_default_pool(make):
    allocator, _ = make()
    pool = allocator.create_pool()
    found = []

    allocator.begin_pool(pool)
    thread = threading.Thread(target=lambda: found.append(allocator.allocate(1234)))
    thread.start()
    thread.join()
    allocator.end_pool(pool)

    assert pool_of(allocator, found[0]) == (0, 0)


def test_emptying_the_cache_leaves_a_living_pool_alone_and_release_returns_it(make):
    allocator, device = make()
    pool = allocator.create_pool()
    allocator.begin_pool(pool)
    blocks = [allocator.allocate(30 * MIB) for _ in range(2)]
    allocator.end_pool(pool)
    allocator.free(blocks[0])

    allocator.empty_cache()
    alive = device.used
    allocator.release_pool(pool)
    released = device.used
    allocator.free(blocks[1])
    allocator.empty_cache()

    assert (alive, released, device.used) == (60 * MIB, 30 * MIB, 0)


def test_a_no_split_pool_hands_blocks_out_whole(make):
    allocator, _ = make()
    pool = allocator.create_pool(no_split=True)

    allocator.begin_pool(pool)
    address = allocator.allocate(1234)
    allocator.end_pool(pool)

    assert allocator.block_at(address)["size"] == 2 * MIB


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_a_pool_for_emergencies_serves_when_the_device_is_full(make, settings):
    allocator, _ = make(settings, capacity=100 * MIB)
    pool = allocator.create_pool(use_on_oom=True)
    allocator.begin_pool(pool)
    spare = allocator.allocate(60 * MIB)
    allocator.end_pool(pool)
    allocator.free(spare)

    assert allocator.allocate(50 * MIB) == spare


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_a_destroyed_pool_releases_its_own_segments_only(make, settings):
    allocator, device = make(settings)
    pools = [allocator.create_pool() for _ in range(2)]
    blocks = []
    for pool in pools:
        allocator.begin_pool(pool)
        blocks.append(allocator.allocate(40 * MIB))
        allocator.end_pool(pool)

    # The first pool is destroyed while its array lives, the second after its array was freed.
    allocator.release_pool(pools[0])
    for block in blocks:
        allocator.free(block)
    allocator.release_pool(pools[1])

    assert device.used == 40 * MIB
    assert [each["segment_pool_id"] for each in allocator.memory_snapshot()] == [(0, pools[0])]
    allocator.empty_cache()
    assert device.used == 0


def test_while_everything_goes_to_a_pool_nothing_waits_for_streams(make):
    allocator, device = make()
    pool = allocator.create_pool()
    address = allocator.allocate(1234)
    allocator.record_stream(address, 5)
    allocator.begin_pool(pool, EVERYTHING)

    allocator.free(address)
    allocator.allocate(1234)
    allocator.empty_cache()
    inside = allocator.memory_stats()
    allocator.end_pool(pool)
    allocator.allocate(1234)

    assert inside["active.all.current"] == 2
    assert inside["num_sync_all_streams"] == 0
    assert allocator.memory_stats()["active.all.current"] == 2
    assert device.used == 4 * MIB


def test_misuse_of_a_pool_is_an_error_that_names_it(make):
    allocator, _ = make()
    pool = allocator.create_pool()

    with pytest.raises(ValueError, match=r"no private pool \(0, 9\)"):
        allocator.begin_pool(9)
    with pytest.raises(ValueError, match=r"do not go to the private pool \(0, 1\)"):
        allocator.end_pool(pool)
    allocator.begin_pool(pool)
    with pytest.raises(ValueError, match=r"already go to the private pool \(0, 1\)"):
        allocator.begin_pool(pool)
    allocator.end_pool(pool)
    allocator.release_pool(pool)
    with pytest.raises(ValueError, match="it has been released"):
        allocator.release_pool(pool)
