"""CuPy's own memory objects with gpuviz's allocator on a simulated device; needs no GPU."""

import gc
from types import SimpleNamespace

import pytest
from cupy.cuda import memory

from gpuviz import _core

MIB = 1 << 20
STREAM = 0x7000


def out_of_memory(error):
    raised = memory.OutOfMemoryError(error.requested_size, error.reserved, error.limit or 0)
    raised.args = (str(error),)
    return raised


@pytest.fixture
def allocator():
    device = _core.SimulatedDevice(capacity=100 * MIB)
    return _core.CachingAllocator(device, _core.AllocatorSettings.parse(""))


def new_client(allocator):
    """Return a client whose current device and stream come from Python functions."""
    return _core.CupyAllocator(
        memory_module=memory,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: 0,
        current_stream=lambda: STREAM,
        open_device=lambda _: allocator,
        out_of_memory=out_of_memory,
    )


@pytest.fixture
def client(allocator):
    return new_client(allocator)


def live_bytes(allocator):
    return allocator.memory_stats()["requested_bytes.all.current"]


def test_a_pointer_is_cupys_own_and_frees_when_the_last_reference_goes(client, allocator):
    pointer = _core.cupy_malloc(lambda: client)(1234)
    shifted = pointer + 100

    assert type(pointer) is memory.MemoryPointer
    assert (pointer.mem.size, pointer.device_id, shifted.ptr) == (1234, 0, pointer.ptr + 100)
    del pointer
    assert live_bytes(allocator) == 1234
    del shifted
    assert live_bytes(allocator) == 0


def test_a_pointer_may_outlive_its_function(allocator):
    pointer = _core.cupy_malloc(lambda: new_client(allocator))(1234)
    gc.collect()

    assert live_bytes(allocator) == 1234
    del pointer
    assert live_bytes(allocator) == 0


def test_blocks_belong_to_the_current_stream(client, allocator):
    pointer = _core.cupy_malloc(lambda: client)(1234)

    assert allocator.block_at(pointer.ptr)["stream"] == STREAM


def test_nothing_is_allocated_for_size_0(client, allocator):
    pointer = _core.cupy_malloc(lambda: client)(0)

    assert (pointer.ptr, allocator.memory_stats()["allocation.all.allocated"]) == (0, 0)


def test_a_full_device_raises_cupys_exception_and_stays_usable(client):
    with pytest.raises(memory.OutOfMemoryError, match=r"Tried to allocate 200\.00 MiB"):
        _core.cupy_malloc(lambda: client)(200 * MIB)

    assert _core.cupy_malloc(lambda: client)(50 * MIB).mem.size == 50 * MIB


def test_events_carry_the_line_that_allocated(client, allocator):
    session = _core.Session()
    session.start()
    allocator.attach(session.sink(0))
    client.set_session(session)
    pointer = _core.cupy_malloc(lambda: client)(1234)
    del pointer
    client.set_session(None)
    allocator.detach()
    session.stop()

    chunk = session.take(flush=True)[0]
    stacks = session.new_stacks(1)
    assert list(chunk["requested_size"]) == [0, 1234, 1234, 1234]
    functions = [stacks[stack - 1][0][0].co_name for stack in chunk["stack"]]
    assert functions == ["test_events_carry_the_line_that_allocated"] * 4


def test_a_failing_current_device_is_reported_and_nothing_is_lost(allocator):
    def fail():
        raise RuntimeError("no device")

    client = _core.CupyAllocator(
        memory_module=memory,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=fail,
        current_stream=lambda: 0,
        open_device=lambda _: allocator,
        out_of_memory=out_of_memory,
    )

    with pytest.raises(RuntimeError, match="no device"):
        _core.cupy_malloc(lambda: client)(10)
    assert live_bytes(allocator) == 0


@pytest.mark.parametrize(
    ("size", "error", "text"),
    [
        (-1, OverflowError, r"^size must be from 0 to 2\*\*64 - 1 bytes, got -1$"),
        (1 << 64, OverflowError, r"^size must be from 0 to 2\*\*64 - 1 bytes, got 1844"),
        (1.5, TypeError, r"^size must be a number of bytes, got 1\.5$"),
        ("1", TypeError, r"^size must be a number of bytes, got '1'$"),
        (None, TypeError, r"^size must be a number of bytes, got None$"),
    ],
)
def test_a_wrong_size_is_named(client, size, error, text):
    with pytest.raises(error, match=text):
        _core.cupy_malloc(lambda: client)(size)


def test_an_abandoned_client_allocates_no_more_and_frees_nothing(client, allocator):
    pointer = _core.cupy_malloc(lambda: client)(1234)

    client.abandon()
    del pointer

    with pytest.raises(RuntimeError, match="forked child"):
        _core.cupy_malloc(lambda: client)(10)
    assert live_bytes(allocator) == 1234


class Pool:
    """A stand-in for the program's allocator that reports its size."""

    def __init__(self):
        self.allocator = _core.CachingAllocator(
            _core.SimulatedDevice(capacity=100 * MIB),
            _core.AllocatorSettings.parse(""),
        )
        self.total = 0
        self.freed = []

    def malloc(self, size):
        address = self.allocator.allocate(size)
        self.total += 512 * -(-size // 512)
        pool = self

        class Owner:
            def __del__(self):
                pool.freed.append(address)

        return memory.MemoryPointer(memory.UnownedMemory(address, size, Owner(), 0), 0)


@pytest.fixture
def pool():
    return Pool()


@pytest.fixture
def observed(pool):
    """An observer of the pool, in a session; (observer, session)."""
    observer = _core.CupyObserver(
        memory_module=memory,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: 0,
        current_stream=lambda: STREAM,
        allocator=pool.malloc,
        total_bytes=lambda: pool.total,
    )
    session = _core.Session()
    session.start()
    observer.set_session(session)
    yield observer, session
    observer.set_session(None)
    session.stop()


def events_of(session):
    from gpuviz.data.tables import ACTIONS

    session.stop()
    return [
        (ACTIONS[action], int(size), int(requested))
        for chunk in session.take(flush=True)
        for action, size, requested in zip(
            chunk["action"],
            chunk["size"],
            chunk["requested_size"],
            strict=True,
        )
    ]


def test_an_observed_pointer_keeps_the_programs_memory_until_it_goes(observed, pool):
    observer, session = observed
    pointer = _core.observed_malloc(lambda: observer)(1000)

    address = pointer.ptr
    assert pool.freed == []
    del pointer
    assert pool.freed == [address]
    assert events_of(session) == [
        ("segment_alloc", 1024, 0),
        ("alloc", 1000, 1000),
        ("free_requested", 1000, 1000),
        ("free_completed", 1000, 1000),
    ]


def test_an_error_of_the_programs_allocator_passes_through_and_is_recorded(observed, pool):
    observer, session = observed

    def fail(size):
        raise memory.OutOfMemoryError(size, 0)

    pool.allocator = SimpleNamespace(allocate=fail)
    with pytest.raises(memory.OutOfMemoryError):
        _core.observed_malloc(lambda: observer)(2000)
    assert events_of(session) == [("oom", 2000, 2000)]
