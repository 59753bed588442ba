"""Replays of memory limits, failed requests and private pools."""

import dataclasses

import pyarrow as pa
import pytest

import gpuviz
from gpuviz import _core
from gpuviz.data.tables import schemas
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource
from tests.unit.replay.recorded import (
    MIB,
    STREAM,
    named,
    record,
    requests,
)


def test_memory_limits_are_part_of_a_recording_and_of_its_replay():
    def program(source):
        allocator = source.allocators[0]
        allocator.set_memory_fraction(0.5)
        with pytest.raises(_core.OutOfMemoryError):
            allocator.allocate(allocator.device.total_memory // 2 + (1 << 20))
        allocator.set_memory_fraction(1.0)
        allocator.allocate(allocator.device.total_memory // 2 + (1 << 20))

    recording = record(program)
    total = recording.table("devices")["total_memory"][0].as_py()

    replayed = gpuviz.replay(recording)

    for one in (recording, replayed):
        rows = named(one)
        limits = [row["size"] for row in rows if row["action"] == "memory_limit"]
        assert limits == [total // 2, total]
        assert [row["action"] for row in rows if row["action"] in {"oom", "alloc"}] == [
            "oom",
            "alloc",
        ]


def test_a_memory_limit_from_before_the_recording_is_replayed():
    def program(source):
        with pytest.raises(_core.OutOfMemoryError):
            source.allocate(1 << 30)

    source = SimulatedSource(1)
    source.allocators[0].set_memory_fraction(0.001)
    with Recorder(source, None, stacks=False, max_events=1000) as recorder:
        program(source)

    replayed = gpuviz.replay(recorder.recording)

    assert len(requests(replayed, "oom")) == 1


def test_a_memory_limit_survives_the_events_that_were_discarded():
    def program(source):
        source.allocators[0].set_memory_fraction(0.5)
        for _ in range(10):
            for _ in range(100):
                source.free(source.allocate(1000))
            _ = Recorder._active.recording

    recording = record(program, max_events=200)

    first = recording.table("memory_events")["action"][0].as_py()
    assert (first, recording.manifest.initial_events >= 1) == ("memory_limit", True)


def test_a_destroyed_pool_returns_its_memory_in_the_replay():
    def program(source):
        allocator = source.allocators[0]
        pool = allocator.create_pool()
        allocator.begin_pool(pool)
        address = allocator.allocate(30 * MIB)
        allocator.end_pool(pool)
        allocator.free(address)
        allocator.release_pool(pool)
        allocator.allocate(30 * MIB)

    recording = record(program)

    replayed = gpuviz.replay(recording)

    assert [row["action"] for row in named(replayed)] == [row["action"] for row in named(recording)]
    key = "reserved_bytes.all.peak"
    assert replayed.memory_stats()[key] == recording.memory_stats()[key] == 30 * MIB


@pytest.mark.parametrize("speed", [0, 50])
def test_a_free_completes_when_it_did(speed):
    def program(source):
        device, allocator = source.allocators[0].device, source.allocators[0]
        device.occupy(STREAM)
        address = allocator.allocate(30 * MIB)
        allocator.record_stream(address, STREAM)
        allocator.free(address)
        allocator.allocate(30 * MIB)
        device.finish(STREAM)
        allocator.allocate(30 * MIB)

    recording = record(program)

    replayed = gpuviz.replay(recording, speed=speed)

    assert [row["action"] for row in named(replayed)] == [row["action"] for row in named(recording)]
    assert [row["action"] for row in named(recording)].count("segment_alloc") == 2


def test_private_pools_are_replayed_as_private_pools():
    def program(source):
        allocator = source.allocators[0]
        pools = [allocator.create_pool() for _ in range(3)]
        for pool in pools[::-1]:
            allocator.begin_pool(pool)
            allocator.allocate(1234)
            allocator.allocate(30 * MIB)
            allocator.end_pool(pool)
            allocator.allocate(5678)

    recording = record(program)
    replayed = gpuviz.replay(recording, speed=0)

    owners = [row["pool"] // 2 for row in named(replayed) if row["action"] == "alloc"]
    assert owners == [3, 3, 0, 2, 2, 0, 1, 1, 0]
    assert requests(replayed, "alloc") == requests(recording, "alloc")


def with_total_memory(recording, total):
    [row] = recording.table("devices").to_pylist()
    table = pa.Table.from_pylist([row | {"total_memory": total}], schemas()["devices"])
    return dataclasses.replace(recording, tables=dict(recording.tables) | {"devices": table})


def test_a_request_that_failed_is_freed_at_once_if_it_does_not_fail_again():
    def program(source):
        source.allocate(1 << 30)
        with pytest.raises(_core.OutOfMemoryError):
            source.allocate(1 << 34)
        source.allocate(1234)

    recording = record(program)
    again = gpuviz.replay(recording, speed=0)
    roomier = gpuviz.replay(with_total_memory(recording, 1 << 35), speed=0)

    key = "requested_bytes.all.current"
    assert requests(again, "oom") == requests(recording, "oom") != []
    assert requests(roomier, "oom") == []
    asked = [row[:2] for row in requests(roomier, "alloc", "free_requested")]
    assert asked == [
        ("alloc", 1 << 30),
        ("alloc", 1 << 34),
        ("free_requested", 1 << 34),
        ("alloc", 1234),
    ]
    assert [one.memory_stats()[key] for one in (again, roomier)] == [(1 << 30) + 1234] * 2
