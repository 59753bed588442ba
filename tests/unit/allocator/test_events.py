import sys
from collections import Counter

from gpuviz import _core
from gpuviz.data.tables import ACTIONS

MIB = 1 << 20


def rows(log, *columns):
    events = log.events()
    events["action"] = [ACTIONS[action] for action in events["action"]]
    return list(zip(*(list(events[column]) for column in columns), strict=True))


def test_a_malloc_and_a_free_leave_their_events_in_order(make):
    allocator, _ = make()
    log = _core.EventLog()
    allocator.attach(log)

    address = allocator.allocate(5 * MIB - 1, 3, stack=8)
    allocator.free(address, stack=9)
    allocator.empty_cache()

    assert rows(log, "action", "size", "requested_size", "stack", "pool", "stream") == [
        ("segment_alloc", 20 * MIB, 0, 8, 1, 3),
        ("alloc", 5 * MIB, 5 * MIB - 1, 8, 1, 3),
        ("free_requested", 5 * MIB, 5 * MIB - 1, 9, 1, 3),
        ("free_completed", 5 * MIB, 5 * MIB - 1, 9, 1, 3),
        ("segment_free", 20 * MIB, 0, 0, 1, 3),
        ("empty_cache", 20 * MIB, 0, 0, 0, 0),
    ]
    assert {address for (address,) in rows(log, "address")} == {address, 0}


def test_pools_are_numbered_as_the_tables_say(make):
    allocator, _ = make()
    log = _core.EventLog()
    allocator.create_pool()
    pool = allocator.create_pool()
    allocator.attach(log)

    allocator.allocate(1)
    allocator.begin_pool(pool)
    allocator.allocate(1)
    allocator.allocate(2 * MIB)
    allocator.end_pool(pool)

    assert [pool for action, pool in rows(log, "action", "pool") if action == "alloc"] == [0, 4, 5]


def test_a_snapshot_is_an_event_with_the_active_bytes(make):
    allocator, _ = make()
    log = _core.EventLog()
    allocator.allocate(1234)
    allocator.attach(log)

    allocator.memory_snapshot()

    assert rows(log, "action", "address", "size") == [("snapshot", 0, 1536)]


def test_nothing_is_pushed_after_detaching(make):
    allocator, _ = make()
    log = _core.EventLog()

    allocator.attach(log)
    allocator.detach()
    allocator.allocate(1234)

    assert len(log) == 0


def test_what_exists_can_be_described_as_the_events_that_lead_to_it(make):
    allocator, device = make("expandable_segments:True")
    allocator.allocate(5 * MIB, stack=4)
    pending = allocator.allocate(1234, stack=5)
    allocator.apply_settings(allocator.settings.updated("expandable_segments:False"))
    allocator.allocate(30 * MIB, 2, stack=6)
    device.occupy(1)
    allocator.record_stream(pending, 1)
    allocator.free(pending)
    log, unknown = _core.EventLog(), _core.EventLog()

    allocator.describe_state(log, stacks_are_valid=True)
    allocator.describe_state(unknown, stacks_are_valid=False)

    assert Counter(rows(log, "action", "size", "requested_size", "stack", "stream")) == Counter(
        [
            ("segment_map", 20 * MIB, 0, 4, 0),
            ("alloc", 5 * MIB, 5 * MIB, 4, 0),
            ("segment_map", 2 * MIB, 0, 5, 0),
            ("alloc", 1536, 1234, 5, 0),
            ("free_requested", 1536, 1234, 0, 0),
            ("segment_alloc", 30 * MIB, 0, 6, 2),
            ("alloc", 30 * MIB, 30 * MIB, 6, 2),
        ],
    )
    assert {stack for (stack,) in rows(unknown, "stack")} == {0}


def test_a_log_is_held_until_the_allocator_is_detached_or_has_another(make):
    allocator, _ = make()
    logs = [_core.EventLog(), _core.EventLog()]

    def references():
        return [sys.getrefcount(logs[0]), sys.getrefcount(logs[1])]

    free = references()
    counts = []
    for position in range(2):
        allocator.attach(logs[position])
        counts.append(references())
    allocator.detach()

    assert counts == [[free[0] + 1, free[1]], [free[0], free[1] + 1]]
    assert references() == free
