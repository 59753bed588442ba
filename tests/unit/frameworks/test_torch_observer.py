"""Exact events from torch's trace, which has the requested sizes only."""

import random
from contextlib import suppress

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.frameworks.torch_trace import _state
from tests.examples import share_of
from tests.unit.frameworks.torch_trace import TRACED, Entry, Observation, entries

MIB = 1 << 20
PAGE = 2 * MIB
SETTINGS = (
    "",
    "max_split_size_mb:30",
    "expandable_segments:True",
    "roundup_power2_divisions:4",
    "max_split_size_mb:21,roundup_power2_divisions:[64:2,>:8]",
)


def recorded(settings, seed, path):
    """Return the events of a random program."""
    draw = random.Random(seed)
    gpu = gpuviz.SimulatedGPU(600 * MIB, settings=settings, real_time=False)
    streams = [gpu.Stream() for _ in range(2)]
    live = []
    with gpuviz.record(path, device=gpu) as recorder:
        for _ in range(300):
            action = draw.random()
            if action < 0.5 or not live:
                most = draw.choice([600, 5_000, 900_000, 3 * MIB, 40 * MIB])
                with draw.choice(streams), suppress(MemoryError):
                    live.append(gpu.empty(draw.randint(1, most)))
            elif action < 0.9:
                live.pop(draw.randrange(len(live)))
            elif action < 0.95:
                gpu.record_stream(draw.choice(live), draw.choice(streams))
            elif action < 0.97:
                gpu.empty_cache()
            else:
                gpu.synchronize()
    return recorder.recording.table("memory_events").to_pylist()


@pytest.mark.parametrize("settings", SETTINGS)
def test_events_are_those_of_the_allocator(settings, tmp_path):
    for seed in range(share_of(12)):
        events = recorded(settings, seed, tmp_path / f"{seed}.gpuviz")
        observation = Observation(settings)

        observation.trace(entries(events))

        expected = [
            (row["action"], row["address"], row["size"], row["requested_size"], row["pool"])
            for row in events
            if row["action"] in TRACED
        ]
        assert observation.end() == expected


def test_what_existed_before_is_described_and_its_frees_are_recorded():
    observation = Observation()
    observation.observer.describe(
        [
            (0, 0x1000000, 2 * MIB, 0x70, 0, 0, False, False),
            (0, 0x2000000, 20 * MIB, 0, 0, 3, True, False),
        ],
        [(0, 0x1000000, 512, 100, False), (0, 0x2000000, 4 * MIB, 4 * MIB, True)],
    )
    free = [
        Entry(action, 0, address, size, 0)
        for action, address, size in (
            (1, 0x1000000, 100),
            (2, 0x1000000, 100),
            (2, 0x2000000, 4 * MIB),
        )
    ]
    observation.trace([*free, Entry(1, 0, 0x7777000, 512, 0)])

    assert observation.end() == [
        ("segment_alloc", 0x1000000, 2 * MIB, 0, 0),
        ("segment_alloc", 0x2000000, 20 * MIB, 0, 3),
        ("alloc", 0x1000000, 512, 100, 0),
        ("alloc", 0x2000000, 4 * MIB, 4 * MIB, 3),
        ("free_requested", 0x2000000, 4 * MIB, 4 * MIB, 3),
        ("free_requested", 0x1000000, 512, 100, 0),
        ("free_completed", 0x1000000, 512, 100, 0),
        ("free_completed", 0x2000000, 4 * MIB, 4 * MIB, 3),
    ]


def test_what_happened_while_the_state_was_read_is_not_described_again():
    observation = Observation()
    segment = Entry(3, 0, 0x1000000, 2 * MIB, 0)
    observation.trace([segment, Entry(0, 0, 0x1000000, 100, 0)])
    observation.observer.describe(
        [(0, 0x1000000, 2 * MIB, 0, 0, 0, False, False)], [(0, 0x1000000, 512, 100, False)]
    )

    assert [action for action, *_ in observation.end()] == ["segment_alloc", "alloc"]


def test_a_failed_request_has_its_size_and_the_free_memory():
    observation = Observation()
    observation.trace([Entry(7, 0, 5 * MIB, 40 * MIB, 0)])

    ((action, free, size, requested, pool),) = observation.end()
    assert (action, free, size, requested) == ("oom", 5 * MIB, 40 * MIB, 40 * MIB)
    assert pool in (0, 1)


def test_nothing_is_recorded_without_a_session_and_for_impossible_devices():
    observation = Observation()
    observation.trace([Entry(3, -1, 0x1000000, 2 * MIB, 0), Entry(3, 64, 0x1000000, 2 * MIB, 0)])
    assert observation.end() == []

    observation.trace([Entry(3, 0, 0x1000000, 2 * MIB, 0)])
    second = _core.Session()
    second.start()
    observation.observer.set_session(second)
    observation.observer.set_session(None)
    second.stop()
    assert second.take(flush=True) == []


@pytest.mark.parametrize("settings", SETTINGS)
def test_samples_lead_from_each_state_to_the_next(settings, tmp_path):
    for seed in range(share_of(6)):
        path = tmp_path / f"{seed}.gpuviz"
        times = sorted({row["time"] for row in recorded(settings, seed, path)})
        recording = gpuviz.load(path)
        draw = random.Random(seed)
        observation = Observation(settings)
        observation.observer.describe([], [])

        moments = sorted(draw.sample(times, min(len(times), 8)))
        for moment in moments:
            observation.observer.update(*_state(recording.memory_snapshot(at=moment)))

        segments, pages, blocks = replayed(observation.end())
        last = recording.memory_snapshot(at=moments[-1])
        whole = {each["address"]: each["total_size"] for each in last if not each["is_expandable"]}
        assert segments == whole
        runs = (
            range(each["address"], each["address"] + each["total_size"], PAGE)
            for each in last
            if each["is_expandable"]
        )
        assert pages == set().union(*runs)
        expected = {
            (address, size, is_pending) for _, address, size, _, is_pending in _state(last)[1]
        }
        assert blocks == expected


def replayed(events):
    """Return the sizes of segments, the addresses of mapped pages, and the blocks at the end."""
    segments, pages, blocks = {}, set(), {}
    for action, address, size, *_ in events:
        if action == "segment_alloc":
            assert address not in segments
            segments[address] = size
        elif action == "segment_free":
            assert segments.pop(address) == size
        elif action == "segment_map":
            assert pages.isdisjoint(range(address, address + size, PAGE))
            pages.update(range(address, address + size, PAGE))
        elif action == "segment_unmap":
            assert pages.issuperset(range(address, address + size, PAGE))
            pages.difference_update(range(address, address + size, PAGE))
        elif action == "alloc":
            assert address not in blocks
            blocks[address] = (size, False)
        elif action == "free_requested":
            assert blocks[address] == (size, False)
            blocks[address] = (size, True)
        elif action == "free_completed":
            assert blocks.pop(address) == (size, True)
    return segments, pages, {(address, *known) for address, known in blocks.items()}
