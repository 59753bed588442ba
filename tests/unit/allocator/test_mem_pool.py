"""Private pools on simulated devices."""

import copy

import pytest

import gpuviz
from tests.unit.allocator.conftest import CAPACITY

from .test_memory_functions import MIB, block_at


def pool_of(address, device=0):
    return block_at(address, device)["pool"]


def alloc(size=30 * MIB):
    return gpuviz.caching_allocator_alloc(size)


def test_a_pool_belongs_to_the_current_device_and_counts_from_1(process):
    process.device = 1
    first, second, other = gpuviz.MemPool(), gpuviz.MemPool(), gpuviz.MemPool(0)

    assert [(pool.device, pool.id) for pool in (first, second, other)] == [
        (1, (0, 1)),
        (1, (0, 2)),
        (0, (0, 1)),
    ]


@pytest.mark.usefixtures("process")
def test_pools_nest_and_the_innermost_serves():
    outer, inner = gpuviz.MemPool(), gpuviz.MemPool()
    with gpuviz.use_mem_pool(outer):
        found = [alloc()]
        with gpuviz.use_mem_pool(inner):
            found.append(alloc())
        found.append(alloc())
    found.append(alloc())

    assert [pool_of(a) for a in found] == [outer.id, inner.id, outer.id, (0, 0)]
    assert [s["total_size"] for s in outer.snapshot()] == [30 * MIB] * 2
    assert [s["address"] for s in inner.snapshot()] == [found[1]]


@pytest.mark.usefixtures("process")
def test_a_pool_cannot_be_copied():
    with pytest.raises(TypeError, match="a MemPool cannot be copied"):
        copy.copy(gpuviz.MemPool())


@pytest.mark.usefixtures("process")
def test_an_exception_ends_the_use_of_a_pool():
    pool = gpuviz.MemPool()
    with pytest.raises(RuntimeError, match="stop"), gpuviz.use_mem_pool(pool):
        raise RuntimeError("stop")

    assert pool_of(alloc()) == (0, 0)
    with gpuviz.use_mem_pool(pool):
        assert pool_of(alloc()) == pool.id


@pytest.mark.usefixtures("process")
def test_the_memory_of_a_pool_goes_back_when_it_and_its_last_array_are_gone():
    pool = gpuviz.MemPool()
    with gpuviz.use_mem_pool(pool):
        kept, dropped = alloc(), alloc()
    gpuviz.caching_allocator_delete(dropped)
    gpuviz.empty_cache()
    reserved = [gpuviz.memory_reserved()]
    del pool
    reserved.append(gpuviz.memory_reserved())
    gpuviz.caching_allocator_delete(kept)
    gpuviz.empty_cache()
    reserved.append(gpuviz.memory_reserved())

    assert reserved == [60 * MIB, 30 * MIB, 0]


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("use_on_oom", [False, True])
def test_others_get_the_memory_of_a_pool_only_where_it_says_so(use_on_oom):
    pool = gpuviz.MemPool(use_on_oom=use_on_oom)
    size = CAPACITY * 3 // 4
    with gpuviz.use_mem_pool(pool):
        address = alloc(size)
    gpuviz.caching_allocator_delete(address)

    if use_on_oom:
        assert alloc(size) == address
    else:
        with pytest.raises(MemoryError):
            alloc(size)


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize(("no_split", "segments"), [(False, 1), (True, 2)])
def test_requests_have_segments_of_their_own_where_the_pool_does_not_split(no_split, segments):
    pool = gpuviz.MemPool(no_split=no_split)
    with gpuviz.use_mem_pool(pool):
        alloc(1000)
        alloc(1000)

    assert len(pool.snapshot()) == segments
