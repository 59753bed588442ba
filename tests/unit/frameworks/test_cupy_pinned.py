"""CuPy's pool of pinned memory in recordings, with CuPy's own objects and memory of no GPU."""

import gc
from types import SimpleNamespace

import pytest
from cupy.cuda import PinnedMemoryPool, pinned_memory

from gpuviz import _core
from gpuviz.data.tables import ACTIONS
from gpuviz.frameworks.cupy_pinned import RecordedPinnedPool

cuda = SimpleNamespace(
    PinnedMemoryPool=PinnedMemoryPool,
    PinnedMemoryPointer=pinned_memory.PinnedMemoryPointer,
    alloc_pinned_memory=pinned_memory.alloc_pinned_memory,
    set_pinned_memory_allocator=pinned_memory.set_pinned_memory_allocator,
)


class Memory:
    """Memory at an address that nothing uses."""

    addresses = iter(range(0x7000_0000_0000, 0x7FFF_FFFF_FFFF, 1 << 30))

    def __init__(self, size):
        self.ptr, self.size = next(self.addresses), size


@pytest.fixture
def pool():
    """Return the program's pool, which is installed."""
    made = PinnedMemoryPool(lambda size: pinned_memory.PinnedMemoryPointer(Memory(size), 0))
    pinned_memory.set_pinned_memory_allocator(made.malloc)
    yield made
    pinned_memory.set_pinned_memory_allocator()
    gc.collect()


@pytest.fixture
def session():
    session = _core.Session(stack_depth=0)
    session.start()
    yield session
    session.stop()


def rows(session):
    """Return what has been recorded since the last call."""
    chunks = session.take_tables(flush=True).get("host_memory_events", [])
    return [
        (ACTIONS[action], int(address), int(size), int(requested))
        for chunk in chunks
        for action, address, size, requested in zip(
            *(chunk[name] for name in ("action", "address", "size", "requested_size")), strict=True
        )
    ]


def test_what_the_pool_does_is_recorded_and_its_memory_is_that_of_the_pool(pool, session):
    recorded = RecordedPinnedPool(cuda)
    recorded.begin(session, stacks=False)
    pointer = pinned_memory.alloc_pinned_memory(1000)
    address, size = pointer.ptr, pointer.size()
    del pointer
    again = pinned_memory.alloc_pinned_memory(900)
    recorded.end()

    assert size == 1024
    assert again.ptr == address  # handed out again at once, as without a recording
    assert pool.n_free_blocks() == 1  # the byte that told which pool it is
    assert rows(session) == [
        ("alloc", address, 1024, 1000),
        ("free_requested", address, 1024, 1000),
        ("free_completed", address, 1024, 1000),
        ("alloc", address, 1024, 900),
    ]
    del again
    assert pool.n_free_blocks() == 2
    assert rows(session) == []


@pytest.mark.usefixtures("pool")
def test_memory_from_before_is_described_to_the_next_recording(session):
    recorded = RecordedPinnedPool(cuda)
    recorded.begin(session, stacks=False)
    kept = pinned_memory.alloc_pinned_memory(1000)
    recorded.end()
    rows(session)
    recorded.begin(session, stacks=False)

    assert rows(session) == [("alloc", kept.ptr, 1024, 1000)]
    recorded.end()


@pytest.mark.usefixtures("pool")
def test_another_allocator_is_installed_instead(session):
    calls = []

    def instead(size):
        calls.append(size)
        return pinned_memory.PinnedMemoryPointer(Memory(size), 0)

    recorded = RecordedPinnedPool(cuda, instead)
    recorded.begin(session, stacks=False)
    pinned_memory.alloc_pinned_memory(1000)
    recorded.end()

    assert 1000 in calls
    assert rows(session) == []


def test_an_allocator_that_is_no_pool_of_cupys_stays(session):
    calls = []

    def own(size):
        calls.append(size)
        return pinned_memory.PinnedMemoryPointer(Memory(size), 0)

    pinned_memory.set_pinned_memory_allocator(own)
    recorded = RecordedPinnedPool(cuda)
    recorded.begin(session, stacks=False)
    pinned_memory.alloc_pinned_memory(7)
    recorded.end()
    pinned_memory.alloc_pinned_memory(8)
    pinned_memory.set_pinned_memory_allocator()

    assert calls == [1, 7, 8]
    assert rows(session) == []


@pytest.mark.usefixtures("pool")
def test_what_the_program_installs_meanwhile_stays(session):
    other = PinnedMemoryPool(lambda size: pinned_memory.PinnedMemoryPointer(Memory(size), 0))
    recorded = RecordedPinnedPool(cuda)
    recorded.begin(session, stacks=False)
    pinned_memory.set_pinned_memory_allocator(other.malloc)
    recorded.end()
    kept = pinned_memory.alloc_pinned_memory(1000)

    assert kept.mem.pool() is other


def test_a_failure_of_the_allocator_is_the_programs_and_no_recordings(session):
    def fails(_size):
        raise MemoryError

    pinned_memory.set_pinned_memory_allocator(fails)
    recorded = RecordedPinnedPool(cuda)
    recorded.begin(session, stacks=False)
    recorded.end()
    with pytest.raises(MemoryError):
        pinned_memory.alloc_pinned_memory(1)
    pinned_memory.set_pinned_memory_allocator()
