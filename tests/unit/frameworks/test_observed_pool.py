"""Segments of another allocator's pool, inferred from its allocations and its reported size."""

from types import SimpleNamespace

import pytest
from cupy.cuda import memory

from gpuviz import _core
from gpuviz.data.tables import ACTIONS


class ScriptedPool:
    """Returns given addresses and reports a given size."""

    def __init__(self):
        self.device = 0
        self.totals = {0: 0, 1: 0}
        self.next = []

    def will(self, address, *, total):
        """Set the address of the next request, and the size of the pool after it."""
        self.next.append((address, total))

    def malloc(self, size):
        address, self.totals[self.device] = self.next.pop(0)
        owned = memory.UnownedMemory(address, -(-size // 512) * 512, self, self.device)
        return memory.MemoryPointer(owned, 0)


class Observation:
    """A scripted pool with an observer, and the events of one session at a time."""

    def __init__(self, total_bytes=True):
        self.pool = ScriptedPool()
        self.observer = _core.CupyObserver(
            memory_module=memory,
            runtime_module=SimpleNamespace(),
            stream_module=SimpleNamespace(),
            current_device=lambda: self.pool.device,
            current_stream=lambda: 0x70,
            allocator=self.pool.malloc,
            total_bytes=(lambda: self.pool.totals[self.pool.device]) if total_bytes else None,
        )
        self._malloc = _core.observed_malloc(lambda: self.observer)
        self.session = None

    def begin(self):
        self.session = _core.Session()
        self.session.start()
        self.observer.set_session(self.session, stacks=False)

    def end(self):
        """Return (device, action, address, size) of every event."""
        self.observer.set_session(None)
        self.session.stop()
        columns = ("device", "action", "address", "size")
        return [
            (int(device), ACTIONS[action], int(address), int(size))
            for chunk in self.session.take(flush=True)
            for device, action, address, size in zip(*(chunk[c] for c in columns), strict=True)
        ]

    def malloc(self, size, address, *, total):
        self.pool.will(address, total=total)
        return self._malloc(size)


def segments(events, device=0):
    return [event[1:] for event in events if event[0] == device and "segment" in event[1]]


@pytest.fixture
def observation():
    observation = Observation()
    observation.begin()
    return observation


def test_the_size_of_a_pool_is_asked_of_the_pool_of_the_device_once_it_is_known():
    asked = []

    def total_of_the_current_device():
        asked.append("current")
        return 4096

    def total_bytes_of(owned):
        asked.append(owned.ptr)
        return None if owned.device_id else lambda: 1024

    pool = ScriptedPool()
    observer = _core.CupyObserver(
        memory_module=memory,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: pool.device,
        current_stream=lambda: 0x70,
        allocator=pool.malloc,
        total_bytes=total_of_the_current_device,
        total_bytes_of=total_bytes_of,
    )
    malloc = _core.observed_malloc(lambda: observer)
    for address in (0x10000, 0x20000):
        pool.will(address, total=0)
    kept = [malloc(1000) for _ in range(2)]
    of_first_device = list(asked)
    pool.device = 1
    pool.will(0x30000, total=0)
    kept.append(malloc(1000))

    assert of_first_device == ["current", "current", 0x10000]
    assert asked[3:] == ["current", "current", 0x30000, "current"]
    del kept


class ComputedMemory(memory.UnownedMemory):
    """Memory whose size is not the one in its field."""

    @property
    def size(self):
        return 12345


def test_attributes_that_a_class_of_the_program_computes_are_used():
    computed = ComputedMemory(0x10000, 1024, None, 0)
    observer = _core.CupyObserver(
        memory_module=memory,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: 0,
        current_stream=lambda: 0,
        allocator=lambda _: memory.MemoryPointer(computed, 24),
        total_bytes=None,
    )
    pointer = _core.observed_malloc(lambda: observer)(1000)

    assert (pointer.ptr, pointer.mem.size, pointer.device_id) == (0x10000 + 24, 12345, 0)


def test_a_segment_begins_whenever_the_pool_grows(observation):
    first = observation.malloc(1000, 0x10000, total=1024)
    second = observation.malloc(3000, 0x20000, total=1024 + 3072)
    del first
    again = observation.malloc(500, 0x10000, total=4096)
    rest = observation.malloc(500, 0x10200, total=4096)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x10000, 1024),
        ("segment_alloc", 0x20000, 3072),
    ]
    del second, again, rest


def test_segments_given_back_are_seen_at_the_next_allocation(observation):
    first = observation.malloc(1000, 0x10000, total=1024)
    kept = observation.malloc(1000, 0x20000, total=2048)
    del first
    observation.pool.totals[0] = 1024
    third = observation.malloc(1500, 0x30000, total=1024 + 1536)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x10000, 1024),
        ("segment_alloc", 0x20000, 1024),
        ("segment_free", 0x10000, 1024),
        ("segment_alloc", 0x30000, 1536),
    ]
    del kept, third


def test_an_address_may_be_taken_again_after_its_segment_went(observation):
    first = observation.malloc(1000, 0x10000, total=1024)
    del first
    observation.pool.totals[0] = 0
    second = observation.malloc(5000, 0x10000, total=5120)
    events = observation.end()

    assert [event[1:] for event in events] == [
        ("segment_alloc", 0x10000, 1024),
        ("alloc", 0x10000, 1024),
        ("free_requested", 0x10000, 1024),
        ("free_completed", 0x10000, 1024),
        ("segment_free", 0x10000, 1024),
        ("segment_alloc", 0x10000, 5120),
        ("alloc", 0x10000, 5120),
    ]
    del second


def test_a_retry_that_gives_segments_back_and_takes_another_is_seen_as_both(observation):
    small = observation.malloc(1000, 0x10000, total=1024)
    large = observation.malloc(8000, 0x20000, total=1024 + 8192)
    del large
    other = observation.malloc(2000, 0x30000, total=1024 + 2048)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x10000, 1024),
        ("segment_alloc", 0x20000, 8192),
        ("segment_free", 0x20000, 8192),
        ("segment_alloc", 0x30000, 2048),
    ]
    del small, other


@pytest.mark.parametrize("address", [0x10000, 0x20000])
@pytest.mark.parametrize("size", [512, 1024, 8192])
def test_a_retry_is_seen_whatever_it_takes_and_where(observation, size, address):
    first = observation.malloc(2000, 0x10000, total=2048)
    del first
    second = observation.malloc(size, address, total=size)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x10000, 2048),
        ("segment_free", 0x10000, 2048),
        ("segment_alloc", address, size),
    ]
    del second


def test_a_retry_that_takes_just_what_it_gave_back_is_seen(observation):
    first = observation.malloc(1000, 0x10000, total=1024)
    del first
    second = observation.malloc(1000, 0x20000, total=1024)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x10000, 1024),
        ("segment_free", 0x10000, 1024),
        ("segment_alloc", 0x20000, 1024),
    ]
    del second


def test_nothing_is_said_of_segments_where_totals_are_unknown():
    observation = Observation(total_bytes=False)
    observation.begin()
    first = observation.malloc(1000, 0x10000, total=0)
    del first

    assert [event[1] for event in observation.end()] == [
        "alloc",
        "free_requested",
        "free_completed",
    ]


def test_memory_held_before_observing_is_in_no_segment():
    observation = Observation()
    observation.pool.totals[0] = 10240
    observation.begin()
    cached = observation.malloc(1000, 0x10000, total=10240)
    grown = observation.malloc(1000, 0x20000, total=11264)
    del cached
    observation.pool.totals[0] = 1024
    after = observation.malloc(2000, 0x30000, total=3072)

    assert segments(observation.end()) == [
        ("segment_alloc", 0x20000, 1024),
        ("segment_alloc", 0x30000, 2048),
    ]
    del grown, after


def test_devices_are_told_apart(observation):
    first = observation.malloc(1000, 0x10000, total=1024)
    observation.pool.device = 1
    second = observation.malloc(3000, 0x20000, total=3072)
    del first
    events = observation.end()

    assert sorted(observation.observer.devices()) == [0, 1]
    assert segments(events, 0) == [("segment_alloc", 0x10000, 1024)]
    assert segments(events, 1) == [("segment_alloc", 0x20000, 3072)]
    assert [event[0] for event in events if event[1] == "free_requested"] == [0]
    del second


def test_a_second_session_begins_with_what_lives(observation):
    kept = observation.malloc(1000, 0x10000, total=1024)
    dropped = observation.malloc(1000, 0x20000, total=2048)
    observation.end()
    del dropped
    observation.begin()
    again = observation.malloc(1000, 0x20000, total=2048)
    del kept

    assert [event[1:] for event in observation.end()] == [
        ("segment_alloc", 0x10000, 1024),
        ("segment_alloc", 0x20000, 1024),
        ("alloc", 0x10000, 1024),
        ("alloc", 0x20000, 1024),
        ("free_requested", 0x10000, 1024),
        ("free_completed", 0x10000, 1024),
    ]
    del again
