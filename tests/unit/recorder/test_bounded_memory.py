"""``max_events``: the oldest events are discarded, and the final state is still correct."""

import random

import pytest

from gpuviz.recorder import pump
from tests.examples import share_of
from tests.unit.recorder.simulated_source import SimulatedSource
from tests.unit.recorder.test_contents import blocks, current

SIZES = (1, 512, 1234, 100_000, 1 << 20, 3_000_000, 15_000_000, 40_000_000)


class Program:
    """Random allocations and frees on all devices of a source."""

    def __init__(self, source, seed):
        self.source = source
        self.random = random.Random(seed)
        self.live = []

    def run(self, operations):
        for _ in range(operations):
            if self.live and self.random.random() < 0.48:
                address, device = self.live.pop(self.random.randrange(len(self.live)))
                self.source.free(address, device)
            else:
                device = self.random.randrange(len(self.source.allocators))
                size = self.random.choice(SIZES)
                self.live.append((self.source.allocate(size, device), device))
            if self.random.random() < 0.01:
                self.source.allocators[0].empty_cache()


@pytest.mark.parametrize("seed", range(share_of(1)))
@pytest.mark.parametrize("max_events", [1, 100, 1000])
def test_the_state_after_dropped_events_is_the_allocators(new_recorder, seed, max_events):
    source = SimulatedSource(devices=2)
    program = Program(source, seed)
    program.run(50)
    recorder = new_recorder(source, max_events=max_events)

    with recorder:
        for _ in range(20):
            program.run(60)
            so_far = recorder.recording
            for device, allocator in enumerate(source.allocators):
                live = allocator.memory_stats()
                assert current(so_far.memory_stats(device)).items() <= live.items()

    recording, status = recorder.recording, recorder.status()
    assert status.dropped_oldest > 0
    assert recording.manifest.dropped_oldest == status.dropped_oldest
    assert recording.table("memory_events").num_rows == (
        status.events - status.dropped_oldest + recording.manifest.initial_events
    )
    assert not recording.is_complete
    snapshot = [segment for one in source.allocators for segment in one.memory_snapshot()]
    assert sorted(blocks(recording.memory_snapshot())) == sorted(blocks(snapshot))


def test_memory_stays_bounded_and_the_newest_events_stay(source, new_recorder, monkeypatch):
    monkeypatch.setattr(pump, "INTERVAL_S", 3600)
    monkeypatch.setattr(pump, "FIRST_INTERVAL_S", 3600)
    recorder = new_recorder(source, max_events=1000)
    held = []

    with recorder:
        for number in range(100):
            for _ in range(100):
                source.free(source.allocate(number + 1))
            _ = recorder.recording
            held.append(recorder.status().bytes_in_memory)

    requested = recorder.recording.table("memory_events")["requested_size"].to_pylist()
    assert requested[-300:] == [100] * 300
    assert len(requested) <= 1300
    assert max(held) - held[0] < 1300 * 64 + 100_000
    assert any("oldest events were discarded" in note for note in recorder.recording.notes)


def test_nothing_is_dropped_up_to_max_events(source, new_recorder):
    with new_recorder(source, max_events=31) as recorder:
        for _ in range(10):
            source.free(source.allocate(1234))
            _ = recorder.recording

    assert recorder.status().dropped_oldest == 0
    assert recorder.recording.is_complete


def test_one_event_more_than_max_events_drops_the_oldest(source, new_recorder):
    with new_recorder(source, max_events=30) as recorder:
        for _ in range(10):
            source.free(source.allocate(1234))
            _ = recorder.recording

    assert recorder.status().dropped_oldest == 4
    assert recorder.recording.manifest.initial_events == 1
