"""The pool for other libraries, and the functions that torch finds in gpuviz's shared library."""

import ctypes
import os
import threading

import pytest

from gpuviz import _core
from gpuviz.data.tables import ACTIONS

MIB = 1 << 20
CAPACITY = 64 * MIB


class Opened:
    """Allocators on simulated devices, with the order in which they were opened."""

    def __init__(self):
        self.devices = {}
        self.allocators = {}

    def __call__(self, device):
        if device > 3:
            raise ValueError(f"no device {device}")
        self.devices[device] = _core.SimulatedDevice(CAPACITY, device)
        self.allocators[device] = _core.CachingAllocator(self.devices[device])
        return self.allocators[device]


class Torch:
    """What torch does with the functions, which it finds by their names."""

    def __init__(self):
        library = ctypes.CDLL(_core.__file__)
        self.malloc = library.gpuviz_torch_malloc
        self.malloc.restype = ctypes.c_void_p
        self.malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.free = library.gpuviz_torch_free
        self.free.restype = None
        self.free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.record_stream = library.gpuviz_torch_record_stream
        self.record_stream.restype = None
        self.record_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.empty_cache = library.gpuviz_torch_empty_cache
        self.empty_cache.restype = None
        self.set_memory_fraction = library.gpuviz_torch_set_memory_fraction
        self.set_memory_fraction.restype = None
        self.set_memory_fraction.argtypes = [ctypes.c_double, ctypes.c_int]


class Stream:
    """What all libraries can make of their streams."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


@pytest.fixture
def opened():
    return Opened()


@pytest.fixture
def pool(opened):
    return _core.SharedPool(opened, str)


@pytest.fixture
def torch(pool):
    pool.serve_torch()
    return Torch()


def rows(log, *columns):
    events = log.events()
    events["action"] = [ACTIONS[action] for action in events["action"]]
    return list(zip(*(list(events[column]) for column in columns), strict=True))


def test_a_device_is_opened_at_its_first_allocation(pool, opened):
    assert opened.allocators == {}

    address = pool.allocate(1000, 2, 0)

    assert list(opened.allocators) == [2]
    assert opened.allocators[2].owns(address)


@pytest.mark.parametrize("device", [-1, 64])
def test_an_impossible_device_is_refused(pool, device):
    with pytest.raises(IndexError, match="not one of the first 64"):
        pool.allocate(1, device, 0)


def test_an_error_while_a_device_is_opened_reaches_the_caller(pool):
    with pytest.raises(ValueError, match="no device 5"):
        pool.allocate(1, 5, 0)


def test_a_request_that_fails_raises_the_allocators_error(pool):
    with pytest.raises(_core.OutOfMemoryError, match=r"Tried to allocate 128\.00 MiB"):
        pool.allocate(2 * CAPACITY, 0, 0)


def test_torchs_functions_allocate_and_free_by_device_and_stream(torch, opened):
    log = _core.EventLog()
    torch.free(torch.malloc(1, 1, None), 1, 1, None)
    opened.allocators[1].attach(log)

    address = torch.malloc(3 * MIB, 1, 0x70)
    torch.free(address, 3 * MIB, 1, 0x70)

    assert rows(log, "action", "address", "requested_size", "stream")[1:] == [
        ("alloc", address, 3 * MIB, 0x70),
        ("free_requested", address, 3 * MIB, 0x70),
        ("free_completed", address, 3 * MIB, 0x70),
    ]


def test_no_bytes_are_the_null_pointer_for_torch(torch):
    assert torch.malloc(0, 0, None) is None

    torch.free(None, 0, 0, None)


def test_a_block_recorded_by_torch_for_another_stream_is_reused_after_it(torch, opened):
    address = torch.malloc(3 * MIB, 0, None)
    log = _core.EventLog()
    opened.allocators[0].attach(log)

    torch.record_stream(address, 0x71)
    torch.record_stream(0x1234, 0x71)
    torch.free(address, 3 * MIB, 0, None)

    assert rows(log, "action", "stream") == [("record_stream", 0x71), ("free_requested", 0)]


def test_torchs_empty_cache_releases_the_memory_of_all_devices(torch, opened):
    for device in (0, 1):
        torch.free(torch.malloc(3 * MIB, device, None), 3 * MIB, device, None)
    before = [device.used for device in opened.devices.values()]

    torch.empty_cache()

    assert before == [20 * MIB, 20 * MIB]
    assert [device.used for device in opened.devices.values()] == [0, 0]


def test_torchs_memory_fraction_limits_the_allocator(torch, opened):
    torch.set_memory_fraction(0.25, 3)

    assert opened.allocators[3].memory_fraction == 0.25


def test_freed_memory_waits_for_the_stream_of_its_last_use(pool, opened):
    address = pool.allocate(3 * MIB, 0, 5)
    log = _core.EventLog()
    opened.allocators[0].attach(log)

    pool.free_after(address, 0, 6)

    assert rows(log, "action") == [("free_requested",)]
    assert pool.allocate(3 * MIB, 0, 5) == address  # the stream is idle
    assert ("free_completed",) in rows(log, "action")


def test_memory_last_used_on_its_own_stream_is_free_at_once(pool, opened):
    address = pool.allocate(3 * MIB, 0, 5)
    log = _core.EventLog()
    opened.allocators[0].attach(log)

    pool.free_after(address, 0, 5)

    assert rows(log, "action") == [("free_requested",), ("free_completed",)]


@pytest.mark.parametrize("address", [0, 0x1234])
def test_a_free_never_raises_and_counts_what_it_cannot_free(pool, address):
    pool.allocate(1, 0, 0)

    pool.free(address, 0)
    pool.free_after(address, 0, 1)
    pool.free(address, 1)
    pool.free(address, -1)

    assert pool.lost_frees == (2 if address else 0)


def test_origins_are_captured_while_a_session_records(pool, opened):
    first = pool.allocate(1000, 0, 0)
    session = _core.Session()
    opened.allocators[0].attach(session.sink(0))
    pool.set_session(session)
    session.start()

    second = pool.allocate(1000, 0, 0)
    pool.free(first, 0)
    pool.set_session(None)
    pool.free(second, 0)
    session.stop()

    events = session.take(flush=True)[0]
    actions, stacks = events["action"], events["stack"]
    captured = [(ACTIONS[a], bool(s)) for a, s in zip(actions, stacks, strict=True)]
    assert captured == [
        ("alloc", True),
        ("free_requested", True),
        ("free_completed", True),
        ("free_requested", False),
        ("free_completed", False),
    ]
    assert set(events["thread"][:3]) == {threading.get_native_id()}


def test_threads_allocate_and_free_while_recordings_begin_and_end(torch, pool, opened):
    torch.free(torch.malloc(1, 0, None), 1, 0, None)
    rounds = 2000
    failures = []

    def work():
        for number in range(rounds):
            address = torch.malloc(1 + 13 * number % 5000, 0, None)
            if not address:
                failures.append(number)
            torch.free(address, 0, 0, None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        session = _core.Session(ring_capacity=1 << 14)
        session.start()
        opened.allocators[0].attach(session.sink(0))
        pool.set_session(session)
        pool.set_session(None)
        opened.allocators[0].detach()
        session.stop()
    stats = opened.allocators[0].memory_stats()

    assert failures == []
    assert stats["allocation.all.allocated"] == 4 * rounds + 1
    assert stats["allocation.all.current"] == 0
    assert pool.lost_frees == 0


def test_the_child_of_a_fork_cannot_allocate_and_frees_nothing(pool):
    address = pool.allocate(1000, 0, 0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pool.abandon_after_fork()
            pool.free(address, 0)
            pool.allocate(1000, 0, 0)
        except RuntimeError as error:
            code = 0 if "forked child" in str(error) else 2
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_child_of_a_fork_may_be_the_first_to_allocate(pool):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            pool.abandon_after_fork()
            pool.free(pool.allocate(1000, 0, 0), 0)
            code = pool.lost_frees
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def streams_of_a_pair(pool, opened, stream):
    """Return the streams of the events of an allocation and its free on one stream."""
    pool.free(pool.allocate(1000, 0, 0x30), 0)
    log = _core.EventLog()
    opened.allocators[0].attach(log)
    pool.free_after(pool.allocate(1000, 0, stream), 0, stream)
    assert rows(log, "action")[-1] == ("free_completed",)
    return {row[0] for row in rows(log, "stream")}


def test_the_default_stream_has_one_handle_for_all_libraries(pool, opened):
    for handle, expected in ((0, 0), (1, 0), (0x70, 0x70)):
        assert streams_of_a_pair(pool, opened, Stream(handle)) == {expected}
    assert streams_of_a_pair(pool, opened, 0x70) == {0x70}


def test_the_per_thread_default_stream_has_a_handle_by_thread(pool, opened):
    expected = threading.get_native_id() << 8 | 2
    assert streams_of_a_pair(pool, opened, Stream(2)) == {expected}


def test_what_is_no_stream_is_told(pool):
    with pytest.raises(AttributeError, match="__cuda_stream__"):
        pool.allocate(1000, 0, "0")
