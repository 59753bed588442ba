"""Recordings of what JAX has in use, with a library like JAX."""

import pytest

from gpuviz.conclusions.ranking import conclusions
from gpuviz.frameworks import jax_memory
from gpuviz.frameworks import other_allocators as framework
from gpuviz.recorder.recorder import Recorder
from tests.unit.frameworks.jax_library import (
    KIB,
    Array,
    Device,
    Jax,
    JaxRuntimeError,
    WithoutStatistics,
)
from tests.unit.recorder.simulated_source import SimulatedSource

REST = "JAX's memory outside of arrays"


INITIALIZE = JaxRuntimeError.__init__


@pytest.fixture
def jax(monkeypatch):
    monkeypatch.setattr(framework, "device_rows", SimulatedSource().devices)
    monkeypatch.setattr(framework, "used_bytes", lambda devices: [(each, 0) for each in devices])
    return Jax(monkeypatch)


class Source(SimulatedSource):
    """A source that lets the allocators of others be asked only where a test says so."""

    def __init__(self):
        super().__init__(0)


class Recorded:
    """A recording of JAX, in which `look` takes a sample."""

    def __init__(self):
        self.source = framework.WithOtherAllocators(Source(), stacks=True)
        self.recorder = Recorder(self.source, None, stacks=True, max_events=10_000)

    def __enter__(self):
        # Only `look` samples: the pump's own would be at times of its own.
        self.source.sample = list
        self.recorder.start()
        self.memory = self.source._allocators[1]
        return self

    def __exit__(self, *_):
        self.recording = self.recorder.stop()

    def look(self):
        self.memory._samples.take(is_due=True)

    def names(self):
        """Return what the innermost function of each allocation is called, and its bytes."""
        tables = self.recording.tables
        frames = {each["id"]: each["name"] for each in tables["frames"].to_pylist()}
        stacks = {each["id"]: each["frames"] for each in tables["stacks"].to_pylist()}
        return [
            (frames[stacks[each["stack"]][0]], each["size"])
            for each in tables["memory_events"].to_pylist()
            if each["action"] == "alloc"
        ]

    def levels(self):
        """Return the bytes in use after each event."""
        levels = self.recording.memory_levels
        return levels["allocated"].to_pylist()

    def lines(self):
        """Return the bytes that each source line allocated."""
        found = self.recording.lines().select(["source", "total_bytes"]).to_pylist()
        return {row["source"]: row["total_bytes"] for row in found}


def test_arrays_are_blocks_with_their_type_and_line_and_the_rest_is_one_block(jax):
    with Recorded() as recorded:
        client = jax.use_gpu()
        client.devices_of_this_process[0].use(10 * KIB)
        recorded.memory.poll()
        weights = Array(client, 4 * KIB)
        recorded.look()
        del weights
        recorded.look()

    assert recorded.names() == [
        (REST, 10 * KIB),
        (REST, 6 * KIB),
        ("uint8[4096]", 4 * KIB),
        (REST, 10 * KIB),
    ]
    assert max(recorded.levels()) == 10 * KIB
    assert recorded.lines()["weights = Array(client, 4 * KIB)"] == 4 * KIB
    # It has no line.
    assert REST in recorded.recording.lines()["site"].to_pylist()
    assert recorded.levels()[-1] == 10 * KIB
    assert recorded.recording.tables["pools"]["framework"].to_pylist() == ["jax"]


def test_the_highest_level_between_two_samples_is_kept(jax):
    client = jax.use_gpu()
    (device,) = client.devices_of_this_process
    device.use(5 * KIB, most=50 * KIB)
    with Recorded() as recorded:
        kept = Array(client, 2 * KIB)
        device.use(7 * KIB, most=60 * KIB)
        recorded.look()
        device.use(7 * KIB, most=60 * KIB)
        recorded.look()
        del kept

    levels = recorded.levels()
    # Not the level from before the recording.
    assert max(levels) == 60 * KIB
    assert levels.count(60 * KIB) == 1
    assert 50 * KIB not in levels


def test_what_was_in_use_before_the_recording_is_its_initial_state(jax):
    client = jax.use_gpu()
    client.devices_of_this_process[0].use(9 * KIB)
    before = Array(client, 4 * KIB)
    with Recorded() as recorded:
        recorded.look()
        before.is_gone = True
        client.devices_of_this_process[0].use(5 * KIB)

    assert recorded.recording.manifest.initial_events == 2
    levels = recorded.levels()
    assert (levels[0], max(levels), levels[-1]) == (9 * KIB, 9 * KIB, 5 * KIB)


def test_an_array_that_shares_the_memory_of_another_is_left_out(jax):
    with Recorded() as recorded:
        client = jax.use_gpu()
        client.devices_of_this_process[0].use(4 * KIB)
        first = Array(client, 4 * KIB)
        recorded.memory.poll()
        shared = Array(client, 4 * KIB)
        recorded.look()
        first.is_gone = True
        recorded.look()
        assert shared.shape == first.shape

    assert recorded.names() == [("uint8[4096]", 4 * KIB), ("uint8[4096]", 4 * KIB)]
    assert max(recorded.levels()) == 4 * KIB
    assert recorded.levels()[-1] == 4 * KIB


def test_the_bytes_of_the_arena_are_recorded_beside_the_statistics_of_the_source(jax):
    with Recorded() as recorded:
        _, second = jax.use_gpu(Device(0), Device(1)).devices_of_this_process
        recorded.memory.poll()
        second.arena = 60 * KIB
        recorded.look()

    stats = recorded.recording.manifest.memory_stats
    assert stats[1] == {"jax_pool_bytes": 60 * KIB}
    assert "jax_pool_bytes" not in stats.get(0, {})


def test_parts_of_an_array_are_on_their_devices_and_the_hosts_memory_is_left_out(jax):
    with Recorded() as recorded:
        client = jax.use_gpu(Device(0), Device(1), Device(None))
        for device in client.devices_of_this_process:
            device.use(9 * KIB)
        first, second, elsewhere = client.devices_of_this_process
        kept = [
            Array(client, 2 * KIB, devices=[first, second]),
            Array(client, KIB, kind="pinned_host"),
            Array(client, KIB, devices=[elsewhere]),
            Array(client, 0),
        ]
        recorded.memory.poll()
        assert len(client.live_arrays()) == len(kept)

    events = recorded.recording.tables["memory_events"].to_pylist()
    found = [(each["device"], each["size"]) for each in events]
    assert sorted(found) == [(0, KIB), (0, 8 * KIB), (1, KIB), (1, 8 * KIB)]
    assert len({each["address"] for each in events if each["size"] == KIB}) == 2


def test_without_statistics_only_arrays_are_known(jax):
    with Recorded() as recorded:
        client = jax.use_gpu(WithoutStatistics(0))
        kept = Array(client, 4 * KIB)
        recorded.memory.poll()
        del kept

    assert recorded.names() == [("uint8[4096]", 4 * KIB)]


def test_an_array_without_a_traceback_has_only_its_type(jax):
    with Recorded() as recorded:
        client = jax.use_gpu(WithoutStatistics(0))
        kept = Array(client, 4 * KIB)
        kept.traceback = None
        recorded.memory.poll()

    assert recorded.names() == [("uint8[4096]", 4 * KIB)]
    assert recorded.recording.tables["frames"].num_rows == 1


def test_a_failed_request_is_recorded_and_explained(jax):
    with Recorded() as recorded:
        client = jax.use_gpu()
        client.devices_of_this_process[0].use(60 * KIB)
        kept = Array(client, 40 * KIB)
        recorded.memory.poll()
        error = JaxRuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16384 bytes."
        )
        other = JaxRuntimeError("INTERNAL: nothing of this kind")
        del kept

    (note,) = error.__notes__
    assert "16.0 KiB were requested. JAX may use 64.0 KiB of the device" in note
    rest = "temporary results, programs and constants"
    assert f"60.0 KiB in use: 40.0 KiB in 1 array and 20.0 KiB in {rest}." in note
    assert "The largest free block was 3.00 KiB." in note
    assert f"40.0 KiB at {__file__}:" in note
    assert not hasattr(other, "__notes__")
    (failed,) = (
        each
        for each in recorded.recording.tables["memory_events"].to_pylist()
        if each["action"] == "oom"
    )
    assert failed["requested_size"] == 16 * KIB
    # There is no verdict, which would need the segments of the arena.
    assert recorded.recording.out_of_memory() == ()
    first = conclusions(recorded.recording)[0]
    assert first.title == "1 allocation failed: out of memory."
    assert first.reason.startswith("The first requested 16.0 KiB at ")
    assert JaxRuntimeError.__init__ is INITIALIZE


def test_which_of_several_devices_had_too_little_is_not_guessed(jax):
    with Recorded() as recorded:
        jax.use_gpu(Device(0), Device(1))
        recorded.memory.poll()
        error = JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1048576 bytes.")

    assert not hasattr(error, "__notes__")
    assert recorded.recording.tables["memory_events"].num_rows == 0


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory allocating 281474976710656 bytes.", 1 << 48),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.50GiB.", 3 << 29),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 37.25 GiB.", 39996882944),
        ("RESOURCE_EXHAUSTED: too many requests", 0),
        ("INTERNAL: Out of memory allocating 8 bytes.", 0),
    ],
)
def test_the_request_is_read_from_the_error(message, size):
    assert jax_memory.failed_request(message) == size


def test_an_allocator_that_fails_ends_no_program(jax, monkeypatch):
    with Recorded() as recorded:
        client = jax.use_gpu(WithoutStatistics(0))
        kept = Array(client, KIB)
        recorded.memory.poll()

        def fail():
            raise JaxRuntimeError("INTERNAL: the device is gone")

        monkeypatch.setattr(client, "live_arrays", fail)
        recorded.look()
        del kept

    (note,) = recorded.recorder.status().notes
    assert note.startswith("JAX's memory was sampled: 1 sample took ")
    assert recorded.names() == [("uint8[1024]", KIB)]


def test_nothing_is_asked_of_a_jax_that_uses_no_gpu(jax):
    with Recorded() as recorded:
        jax.backends["cpu"] = None
        recorded.memory.poll()

    assert recorded.recorder.status().notes == ()
    assert recorded.recording.tables["memory_events"].num_rows == 0
    assert JaxRuntimeError.__init__ is INITIALIZE
