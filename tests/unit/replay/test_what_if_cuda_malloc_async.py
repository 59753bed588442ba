"""`Recording.what_if` with the allocator of the driver."""

import json
from pathlib import Path
from random import Random

import pytest

from tests.unit.advice.programs import recorded
from tests.unit.replay.recorded import record
from tests.unit.replay.segment_programs import (
    EXPANDABLE,
    MIB,
    small_only,
)


def test_the_calls_of_the_driver_have_an_estimated_time():
    def program(gpu):
        array = gpu.empty(1024 * MIB)
        del array
        return gpu.empty(1500 * MIB)

    rows = recorded(program).what_if(["", EXPANDABLE], capacity=2000 * MIB).to_pylist()

    # One segment, its release, the next segment.
    assert rows[1]["driver_calls"] == 3
    assert rows[1]["driver_ns"] == 2 * 60_000 + 45_000 + 50 * 2524 + 620 * 1024
    # Pages of 20 MiB.
    assert rows[2]["driver_calls"] == 75
    assert rows[2]["driver_ns"] == 75 * 45_000


def test_the_bounds_of_cuda_malloc_async_contain_what_the_driver_needs():
    def program(gpu):
        first = gpu.empty(40 * MIB)
        del first
        with gpu.Stream():
            other = gpu.empty(40 * MIB)
        del other
        return gpu.empty(70 * MIB), gpu.empty(1)

    (row,) = recorded(program).what_if("cudaMallocAsync").slice(1).to_pylist()

    assert row["peak_allocated"] == 70 * MIB + 1
    assert row["peak_reserved_lower"] == 72 * MIB
    # Powers of two: 64 MiB on each stream, 128 MiB, and 512 B, in units of 32 MiB.
    assert row["peak_reserved"] == 288 * MIB
    assert row["num_ooms"] == 0
    assert row["driver_calls"] is row["segments"] is row["fragmentation"] is None


def test_between_the_bounds_it_is_unknown_whether_requests_fail():
    recording = recorded(small_only)

    (row,) = recording.what_if("cudaMallocAsync", capacity=150 * MIB).slice(1).to_pylist()
    assert (row["peak_reserved_lower"], row["peak_reserved"]) == (128 * MIB, 128 * MIB)
    assert row["num_ooms"] == 0

    (row,) = recording.what_if("cudaMallocAsync", capacity=100 * MIB).slice(1).to_pylist()
    assert row["num_ooms"] is None


def random_sequence(streams, low, high, seed):
    """Yield what a program did on a real GPU: (block, size, stream), or (block,) for a free."""
    random, live, count = Random(seed), [], 0
    for _ in range(4000):
        if len(live) >= 60 or (live and random.random() < 0.45):
            yield (live.pop(random.randrange(len(live))),)
        else:
            yield count, int(2 ** random.uniform(low, high)), random.randrange(streams)
            live.append(count)
            count += 1


MEASURED = Path(__file__).parent / "data" / "cuda_malloc_async.json"


@pytest.mark.parametrize(
    ("streams", "low", "high", "seed", "reserved"), json.loads(MEASURED.read_text())
)
def test_the_bounds_of_cuda_malloc_async_hold_on_an_h200(streams, low, high, seed, reserved):
    def program(source):
        allocator, blocks = source.allocators[0], {}
        for block, *new in random_sequence(streams, low, high, seed):
            if new:
                blocks[block] = allocator.allocate(new[0], stream=new[1])
            else:
                allocator.free(blocks.pop(block))

    (row,) = record(program).what_if("cudaMallocAsync").slice(1).to_pylist()

    assert row["peak_reserved_lower"] <= reserved <= row["peak_reserved"]
    assert row["peak_reserved"] < 2.9 * row["peak_reserved_lower"] or reserved == 32 * MIB
