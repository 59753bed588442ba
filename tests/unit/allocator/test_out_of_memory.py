import sys

import pytest

from gpuviz import _core
from gpuviz.data.tables import ACTIONS

MIB, GIB = 1 << 20, 1 << 30


def test_the_message_and_the_fields_say_what_was_wanted_and_what_there_is(make):
    allocator, _ = make(capacity=4 * GIB)
    allocator.allocate(2 * GIB)

    with pytest.raises(_core.OutOfMemoryError) as caught:
        allocator.allocate(800_000_000 * GIB)

    assert str(caught.value).startswith(
        "CUDA out of memory. Tried to allocate 800000000.00 GiB. GPU 0 has a total capacity of "
        "4.00 GiB of which 2.00 GiB is free. Of the allocated memory 2.00 GiB is allocated by "
        "gpuviz, and 0 bytes is reserved by gpuviz but unallocated.",
    )
    assert caught.value.requested_size == 800_000_000 * GIB
    assert (caught.value.device_free, caught.value.device_total) == (2 * GIB, 4 * GIB)
    assert (caught.value.allocated, caught.value.reserved) == (2 * GIB, 2 * GIB)
    assert caught.value.limit is None
    assert isinstance(caught.value, MemoryError)


def test_an_exabyte_is_refused_before_anything_is_tried(make):
    allocator, _ = make()
    before = allocator.memory_stats()

    with pytest.raises(_core.OutOfMemoryError, match="Tried to allocate more than 1EB memory"):
        allocator.allocate(1 << 60)

    assert allocator.memory_stats() == before


def test_half_the_device_twice_works_after_a_free(make):
    allocator, _ = make(capacity=1000 * MIB)
    first = allocator.allocate(510 * MIB)

    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(510 * MIB, 1)
    allocator.free(first)
    allocator.allocate(510 * MIB, 1)

    stats = allocator.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"]) == (1, 2)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_outside_0_to_1_is_refused(make, fraction):
    with pytest.raises(ValueError, match=r"Invalid fraction value: .*Allowed range: 0 to 1"):
        make()[0].set_memory_fraction(fraction)


def test_the_limit_counts_segments_and_is_named_in_the_message(make):
    allocator, _ = make(capacity=1000 * MIB)
    allocator.set_memory_fraction(0.5)
    allocator.free(allocator.allocate(500 * MIB))
    allocator.empty_cache()

    with pytest.raises(_core.OutOfMemoryError, match=r"500\.00 MiB allowed; ") as caught:
        allocator.allocate(500 * MIB + 1)

    assert caught.value.limit == 500 * MIB
    assert caught.value.alloc_size == 502 * MIB
    assert allocator.memory_fraction == 0.5


def test_pending_frees_are_waited_for_before_giving_up(make):
    allocator, device = make(capacity=1000 * MIB)
    for _ in range(20):
        address = allocator.allocate(160 * MIB)
        device.occupy(1)
        allocator.record_stream(address, 1)
        allocator.free(address)

    assert allocator.memory_stats()["num_ooms"] == 0
    assert allocator.memory_stats()["num_alloc_retries"] == 3


def test_the_event_carries_what_the_device_had_left(make):
    allocator, _ = make(capacity=100 * MIB)
    log = _core.EventLog()
    allocator.attach(log)

    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(200 * MIB + 1, stack=7)
    events = log.events()

    assert [ACTIONS[action] for action in events["action"]] == ["oom"]
    assert events["address"].tolist() == [100 * MIB]
    assert events["size"].tolist() == [200 * MIB + 512]
    assert events["requested_size"].tolist() == [200 * MIB + 1]
    assert events["stack"].tolist() == [7]


@pytest.mark.parametrize("conf", ["", "max_split_size_mb:40"])
def test_fragmented_cache_is_returned_to_serve_a_larger_request(make, conf):
    allocator, device = make(conf, capacity=200 * MIB)
    for address in [allocator.allocate(50 * MIB) for _ in range(4)]:
        allocator.free(address)

    allocator.allocate(150 * MIB)

    assert device.used <= 200 * MIB
    assert allocator.memory_stats()["allocated_bytes.all.current"] == 150 * MIB


def test_the_oldest_segments_go_first_when_garbage_is_collected(make):
    allocator, _ = make("garbage_collection_threshold:0.5", capacity=200 * MIB)
    allocator.set_memory_fraction(0.99)
    old = allocator.allocate(60 * MIB)
    allocator.free(old)
    for _ in range(5):
        allocator.free(allocator.allocate(50 * MIB, 1))

    allocator.allocate(20 * MIB, 2)
    streams = sorted(segment["stream"] for segment in allocator.memory_snapshot())

    assert streams == [1, 2]


def test_a_callback_can_free_memory_before_the_device_is_asked(make):
    allocator, _ = make()
    live = [allocator.allocate(30 * MIB), allocator.allocate(30 * MIB)]

    def free_one() -> bool:
        if live:
            allocator.free(live.pop())
            return True
        return False

    allocator.set_free_memory_callback(free_one)
    wanted = live[1]
    again = allocator.allocate(30 * MIB)
    allocator.set_free_memory_callback(None)
    allocator.allocate(30 * MIB)

    assert again == wanted
    assert len(live) == 1
    assert allocator.memory_stats()["num_device_alloc"] == 3


def test_an_error_in_the_callback_is_reported_and_the_request_goes_on(make, monkeypatch):
    allocator, _ = make()
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: reported.append(report.exc_value))

    def fail() -> bool:
        raise RuntimeError("1234")

    allocator.set_free_memory_callback(fail)
    address = allocator.allocate(30 * MIB)

    assert allocator.owns(address)
    assert [str(error) for error in reported] == ["1234"]


def test_a_last_resort_that_frees_something_saves_the_request():
    device = _core.SimulatedDevice(capacity=100 * MIB)
    allocator = _core.CachingAllocator(device)
    blocks = [allocator.allocate(60 * MIB)]

    def free_one():
        allocator.free(blocks.pop())
        return True

    allocator.set_last_resort(free_one)

    assert allocator.allocate(70 * MIB) != 0
    assert blocks == []
    counted = ("num_ooms", "num_alloc_retries", "num_sync_all_streams")
    assert [allocator.memory_stats()[key] for key in counted] == [0, 1, 1]
