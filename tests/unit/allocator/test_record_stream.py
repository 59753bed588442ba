import numpy as np
import pytest

from gpuviz import _core
from gpuviz.data.tables import ACTIONS

MIB = 1 << 20


def states(allocator):
    return [b["state"] for s in allocator.memory_snapshot() for b in s["blocks"]]


def test_memory_is_not_reused_while_another_stream_uses_it(make):
    allocator, device = make()
    address = allocator.allocate(MIB)
    device.occupy(5)
    allocator.record_stream(address, 5)
    allocator.free(address)

    while_busy = allocator.allocate(MIB)
    device.finish_all()
    afterwards = allocator.allocate(MIB)

    assert while_busy != address
    assert afterwards == address


def test_a_pending_block_stays_active_until_the_next_malloc(make):
    allocator, device = make()
    address = allocator.allocate(1234)
    device.occupy(5)
    allocator.record_stream(address, 5)

    allocator.free(address)
    pending = allocator.memory_stats()
    device.finish_all()

    assert states(allocator) == ["active_pending_free", "inactive"]
    assert pending["allocation.all.current"] == 0
    assert pending["active.all.current"] == 1
    allocator.allocate(20 * MIB)
    assert allocator.memory_stats()["active_bytes.small_pool.current"] == 0


def test_the_block_s_own_stream_never_delays_its_free(make):
    allocator, device = make()
    address = allocator.allocate(1234, 5)
    device.occupy(5)

    allocator.record_stream(address, 5)
    allocator.free(address)

    assert states(allocator) == ["inactive"]


def test_every_recorded_stream_must_have_passed(make):
    allocator, device = make()
    address = allocator.allocate(MIB)
    for stream in (5, 6, 5):
        device.occupy(stream)
        allocator.record_stream(address, stream)
    allocator.free(address)

    device.finish(5)
    allocator.allocate(20 * MIB)
    after_one = allocator.memory_stats()["active.small_pool.current"]
    device.finish(6)
    allocator.allocate(20 * MIB)

    assert after_one == 1
    assert allocator.memory_stats()["active.small_pool.current"] == 0


def test_the_completion_carries_the_stack_of_the_malloc_that_found_it(make):
    allocator, device = make()
    log = _core.EventLog()
    address = allocator.allocate(1234, stack=1)
    device.occupy(5)
    allocator.attach(log)
    allocator.record_stream(address, 5)
    allocator.free(address, stack=2)
    device.finish_all()

    allocator.allocate(1234, stack=3)
    events = log.events()

    assert [(ACTIONS[a], s) for a, s in zip(events["action"], events["stack"], strict=True)] == [
        ("record_stream", 0),
        ("free_requested", 2),
        ("free_completed", 3),
        ("alloc", 3),
    ]
    assert events["stream"].tolist() == [5, 0, 0, 0]
    assert np.all(np.diff(events["time_ns"]) >= 0)


def test_a_freed_block_cannot_be_recorded(make):
    allocator, _ = make()
    address = allocator.allocate(1234)
    allocator.free(address)

    with pytest.raises(ValueError, match="invalid device pointer"):
        allocator.record_stream(address, 5)
