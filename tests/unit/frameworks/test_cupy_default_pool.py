"""`cupy.get_default_memory_pool` while arrays come from gpuviz's allocator."""

import cupy
import pytest

from gpuviz.allocator import memory as allocator
from gpuviz.frameworks import cupy_default_pool
from gpuviz.frameworks.cupy_default_pool import DefaultPool, own_default_pool
from tests.unit.recorder.simulated_source import SimulatedSource

MIB = 1 << 20


class OwnPool(cupy.cuda.MemoryPool):
    """CuPy's pool without a GPU: it uses 3 MiB of 5."""

    def __init__(self):
        self.limit, self.released = 0, []

    def free_all_blocks(self, stream=None):
        self.released.append(stream)

    def used_bytes(self):
        return 3 * MIB

    def total_bytes(self):
        return 5 * MIB

    def set_limit(self, size=None, fraction=None):
        self.limit = size if fraction is None else int(fraction * MIB)

    def get_limit(self):
        return self.limit


@pytest.fixture
def ours(monkeypatch):
    """The allocator of device 0, the current one."""
    monkeypatch.setattr(cupy_default_pool, "current_device", lambda: 0)
    ours = SimulatedSource().allocators[0]
    monkeypatch.setitem(allocator._process.allocators, 0, ours)
    return ours


@pytest.fixture
def own(monkeypatch):
    """CuPy's default pool, which is replaced."""
    pool = OwnPool()
    monkeypatch.setattr(cupy, "_default_memory_pool", pool)
    # No subclass of CuPy's pool is replaced, which may mean something else.
    monkeypatch.setattr(cupy.cuda, "MemoryPool", OwnPool)
    cupy_default_pool._kind.cache_clear()
    yield pool
    cupy_default_pool._kind.cache_clear()


def test_the_pool_speaks_for_both_allocators(own, ours):
    stand_in = DefaultPool()
    stand_in.begin()
    pool = cupy.get_default_memory_pool()
    address = ours.allocate(30 * MIB)

    assert (pool.used_bytes(), pool.total_bytes()) == (33 * MIB, 35 * MIB)
    ours.free(address)
    assert (pool.used_bytes(), pool.free_bytes()) == (3 * MIB, 32 * MIB)
    pool.free_all_blocks()
    assert (pool.total_bytes(), own.released) == (5 * MIB, [None])
    assert own_default_pool() is own

    stand_in.end()
    assert cupy.get_default_memory_pool() is own


def test_what_one_stream_has_is_the_pools_own(own, ours):
    DefaultPool().begin()
    ours.free(ours.allocate(30 * MIB))

    cupy.get_default_memory_pool().free_all_blocks("a stream")

    assert own.released == ["a stream"]
    assert ours.memory_stats()["reserved_bytes.all.current"] == 30 * MIB


def test_a_limit_holds_until_the_recording_ends(own, ours):
    stand_in = DefaultPool()
    stand_in.begin()
    _, most = ours.device.memory_info()

    cupy.get_default_memory_pool().set_limit(size=most // 4)

    assert (own.limit, ours.memory_fraction) == (most // 4, 0.25)
    cupy.get_default_memory_pool().set_limit(size=0)
    assert ours.memory_fraction == 1.0
    cupy.get_default_memory_pool().set_limit(size=most // 4)
    stand_in.end()
    assert (own.limit, ours.memory_fraction) == (most // 4, 1.0)


def test_a_limit_from_before_the_recording_holds_too(own, ours):
    _, most = ours.device.memory_info()
    cupy.get_default_memory_pool().set_limit(size=most // 8)
    stand_in = DefaultPool()

    stand_in.begin()
    assert ours.memory_fraction == 0.125
    with pytest.raises(MemoryError):
        ours.allocate(most // 4)
    stand_in.end()
    assert (own.limit, ours.memory_fraction) == (most // 8, 1.0)


def test_a_limit_from_before_holds_for_a_device_that_is_used_later(own, ours, monkeypatch):
    _, most = ours.device.memory_info()
    own.set_limit(size=most // 8)
    monkeypatch.delitem(allocator._process.allocators, 0)
    stand_in = DefaultPool()
    stand_in.begin()
    monkeypatch.setitem(allocator._process.allocators, 0, ours)

    stand_in.limit(0)
    assert ours.memory_fraction == 0.125
    stand_in.end()
    stand_in.limit(0)
    assert ours.memory_fraction == 1.0


@pytest.mark.usefixtures("own")
def test_without_a_limit_from_before_nothing_is_limited(ours):
    ours.set_memory_fraction(0.5)

    DefaultPool().begin()

    assert ours.memory_fraction == 0.5


@pytest.mark.usefixtures("own")
def test_a_pool_that_was_kept_is_cupys_afterwards(ours):
    stand_in = DefaultPool()
    stand_in.begin()
    kept = cupy.get_default_memory_pool()
    stand_in.end()
    ours.free(ours.allocate(30 * MIB))

    kept.free_all_blocks()
    kept.set_limit(size=MIB)

    assert (kept.used_bytes(), kept.total_bytes()) == (3 * MIB, 5 * MIB)
    assert ours.memory_stats()["reserved_bytes.all.current"] == 30 * MIB
    assert ours.memory_fraction == 1.0


def test_a_pool_of_the_programs_own_kind_stays(monkeypatch):
    pool = OwnPool()
    monkeypatch.setattr(cupy, "_default_memory_pool", pool)

    DefaultPool().begin()

    assert cupy.get_default_memory_pool() is pool
