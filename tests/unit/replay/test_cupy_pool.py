"""The model of CuPy's memory pool, against a plain implementation."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.data.tables import ACTIONS
from tests.unit.replay.recorded import MIB, record

KIND = _core.Operation
UNIT = 512


class PlainPool:
    """Lists of [address, size, is free, stream], one for each segment."""

    def __init__(self, capacity):
        self.capacity, self.limit, self.segments, self.made = capacity, None, [], 0

    @property
    def reserved(self):
        return sum(block[1] for segment in self.segments for block in segment)

    def malloc(self, requested, stream, new_address):
        """Return the address; ``new_address`` is where the device puts a new segment."""
        size = -(-requested // UNIT) * UNIT
        fitting = [
            (block[1], block[0], segment, block)
            for segment in self.segments
            for block in segment
            if block[2] and block[3] == stream and block[1] >= size
        ]
        if fitting:
            _, _, segment, block = min(fitting, key=lambda each: each[:2])
            if block[1] > size:
                rest = [block[0] + size, block[1] - size, True, stream]
                segment.insert(segment.index(block) + 1, rest)
            block[1:3] = [size, False]
            return block[0]
        if self.limit is not None and self.reserved + size > self.limit:
            return 0
        if self.reserved + size > self.capacity:
            self.release()
        if self.reserved + size > self.capacity:
            return 0
        self.made += 1
        self.segments.append([[new_address, size, False, stream]])
        return new_address

    def free(self, address):
        for segment in self.segments:
            for block in segment:
                if block[0] == address:
                    block[2] = True
            joined = [segment[0]]
            for block in segment[1:]:
                if block[2] and joined[-1][2]:
                    joined[-1][1] += block[1]
                else:
                    joined.append(block)
            segment[:] = joined

    def release(self):
        self.segments = [each for each in self.segments if len(each) > 1 or not each[0][2]]


def random_operations(random, count):
    """Yield (operation, block, argument, stream)."""
    live = []
    for number in range(count):
        drawn = random.random()
        if drawn < 0.55 or not live:
            size = random.randrange(1, random.choice([2000, 1 << 16, 4 * MIB]))
            yield KIND.malloc, number, size, random.choice([0, 0x10])
            live.append(number)
        elif drawn < 0.97:
            yield KIND.free, live.pop(random.randrange(len(live))), 0, 0
        elif drawn < 0.99:
            yield KIND.empty_cache, 0, 0, 0
        else:
            yield KIND.memory_limit, 0, random.randrange(10, 40) * MIB, 0


def replayed(operations, capacity):
    """Return the events and statistics of the native pool."""
    program = _core.ReplayProgram(
        operation=np.array([row[0].value for row in operations], np.uint8),
        id=np.array([row[1] for row in operations], np.uint32),
        argument=np.array([row[2] for row in operations], np.uint64),
        stream=np.array([row[3] for row in operations], np.uint64),
    )
    device, log = _core.SimulatedDevice(capacity), _core.EventLog()
    pool = _core.CupyPool(device)
    pool.attach(log)
    addresses = _core.Replayer(program, device, pool).run()["addresses"].tolist()
    return log.events(), addresses, pool.memory_stats()


@given(seed=st.integers(0, 1 << 32), capacity_mib=st.integers(8, 48))
def test_the_pool_serves_requests_as_a_plain_one_does(seed, capacity_mib):
    operations = list(random_operations(Random(seed), 300))
    events, addresses, stats = replayed(operations, capacity_mib * MIB)
    made = events["address"][events["action"] == ACTIONS.index("segment_alloc")].tolist()
    plain = PlainPool(capacity_mib * MIB)

    expected, places, most, failed = [], {}, 0, 0
    for kind, block, argument, stream in operations:
        if kind == KIND.malloc:
            upcoming = made[plain.made] if plain.made < len(made) else None
            address = plain.malloc(argument, stream, upcoming)
            failed += address == 0
            places[block] = address
            expected.append(address)
        elif kind == KIND.free and places[block]:
            plain.free(places[block])
        elif kind == KIND.empty_cache:
            plain.release()
        elif kind == KIND.memory_limit:
            plain.limit = argument if argument < plain.capacity else None
        most = max(most, plain.reserved)

    assert addresses == expected
    assert stats["reserved_bytes.all.current"] == plain.reserved
    assert stats["reserved_bytes.all.peak"] == most
    assert stats["num_ooms"] == failed
    assert stats["segment.all.current"] == len(plain.segments)
    free = [b for each in plain.segments if len(each) > 1 for b in each if b[2]]
    assert stats["inactive_split.all.current"] == len(free)
    assert stats["inactive_split_bytes.all.current"] == sum(block[1] for block in free)


def several(source):
    """A program with a request that does not fit at the end."""
    allocator = source.allocators[0]
    first = [allocator.allocate(30 * MIB + 1) for _ in range(4)]
    for each in first[1:]:
        allocator.free(each)
    allocator.empty_cache()
    allocator.allocate(3 * MIB)
    with pytest.raises(_core.OutOfMemoryError):
        allocator.allocate(1 << 50)


def test_a_replay_on_cupys_pool_is_a_recording_whose_numbers_are_those_of_its_events():
    replay = gpuviz.replay(record(several), settings="cupy")

    counted = dict(replay.manifest.memory_stats[0])
    derived = replay.memory_stats()
    assert replay.manifest.allocator == "observe"
    assert replay.manifest.allocator_name == "cupy.cuda.memory.MemoryPool"
    for name in ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes"):
        assert derived[f"{name}.all.peak"] == counted[f"{name}.all.peak"] > 0
        assert derived[f"{name}.all.current"] == counted[f"{name}.all.current"]
    assert derived["num_ooms"] == counted["num_ooms"] == 1
    assert derived["segment.all.peak"] == counted["segment.all.peak"] == 4
    assert derived["reserved_bytes.all.peak"] == 4 * (30 * MIB + 512)


def test_a_paced_replay_uses_cupys_pool_too():
    replay = gpuviz.replay(record(several), speed=1, settings="cupy")

    assert replay.memory_stats()["reserved_bytes.all.peak"] == 4 * (30 * MIB + 512)
    assert replay.manifest.allocator == "observe"
